import { describe, expect, test } from 'vitest'
import { checkVectorVersion } from '../../../src/infra/database/migrations.ts'

describe('the pgvector of a server', () => {
  test.each(['0.7.0', '0.7.4', '0.8.0', '0.10.1', '1.0', '1.0.0-rc1'])('%s is enough', (version) => {
    expect(checkVectorVersion({ vector: version, vector_available: null })).toBeNull()
    expect(checkVectorVersion({ vector: null, vector_available: version })).toBeNull()
  })

  test.each([
    ['not there', null, null, /not installed/, /^install pgvector 0\.7\.0 or later/],
    ['there and too old', null, '0.6.2', /0\.6\.2 on the server is too old: 0\.7\.0/, /^install/],
    [
      'switched on and too old',
      '0.5.1',
      '0.5.1',
      /0\.5\.1 is too old/,
      /^install.*then.*ALTER EXTENSION vector UPDATE/,
    ],
    [
      'switched on and behind',
      '0.6',
      '0.8.1',
      /0\.6 is too old/,
      /^run as a superuser.*ALTER EXTENSION vector UPDATE$/,
    ],
  ])('%s: says so, and what to do', (_, vector, vector_available, text, remedy) => {
    const fault = checkVectorVersion({ vector, vector_available })
    expect(fault?.text).toMatch(text)
    expect(fault?.remedy).toMatch(remedy)
  })
})
