import { describe, expect, test } from 'vitest'
import { databaseFault, isUnavailable } from '../../src/infra/database/faults.ts'

const fault = (message: string, code?: string) =>
  databaseFault(Object.assign(new Error(message), code && { code }))

describe('a fault of the database', () => {
  test.each([
    ['cannot execute UPDATE in a read-only transaction', '25006'],
    ['server conn crashed?', '08P01'],
    ['terminating connection due to administrator command', '57P01'],
    ['connect ECONNREFUSED', 'ECONNREFUSED'],
    ['timeout expired', undefined],
    ['Connection terminated unexpectedly', undefined],
  ])('that passes is one of being out of reach: %s', (message, code) => {
    expect(isUnavailable(fault(message, code))).toBe(true)
  })

  test.each([
    ['duplicate key value', '23505'],
    ['unsupported Unicode escape sequence', '22P05'],
    ['something else', undefined],
  ])('that stays is left as it is: %s', (message, code) => {
    expect(fault(message, code)).toMatchObject({ message })
    expect(isUnavailable(fault(message, code))).toBe(false)
  })
})
