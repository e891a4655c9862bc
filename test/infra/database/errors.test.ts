import { describe, expect, test } from 'vitest'
import { isDatabaseUnavailable, toDatabaseError } from '../../../src/infra/database/database-errors.ts'

const fault = (message: string, code?: string) =>
  toDatabaseError(Object.assign(new Error(message), code && { code }))

describe('an error of the database', () => {
  test.each([
    ['cannot execute UPDATE in a read-only transaction', '25006'],
    ['server conn crashed?', '08P01'],
    ['terminating connection due to administrator command', '57P01'],
    ['connect ECONNREFUSED', 'ECONNREFUSED'],
    ['timeout expired', undefined],
    ['Connection terminated unexpectedly', undefined],
  ])('that is transient means that the database is unavailable: %s', (message, code) => {
    expect(isDatabaseUnavailable(fault(message, code))).toBe(true)
  })

  test.each([
    ['duplicate key value', '23505'],
    ['unsupported Unicode escape sequence', '22P05'],
    ['something else', undefined],
  ])('that is permanent is passed on unchanged: %s', (message, code) => {
    expect(fault(message, code)).toMatchObject({ message })
    expect(isDatabaseUnavailable(fault(message, code))).toBe(false)
  })
})
