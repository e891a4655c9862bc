// backends: both

import { describe, expect } from 'vitest'
import { type Database, queryOne } from '../../../src/infra/database/database.ts'
import { toRoleDatabase } from '../../../src/infra/database/role-database.ts'
import type { Sql } from '../../../src/state/ports/sql.ts'
import { test } from '../../support/integration-test.ts'

const text = `
  SELECT $run_id::text || '$run_id' AS both, $epoch::int + $epoch AS twice, -- $comment
    $q$ $1 $q$ AS quoted, current_setting('mason.business', true) AS business, $none::json AS none`
const values = { epoch: 3, run_id: 'run_1', none: null }
const row = { both: 'run_1$run_id', twice: 6, quoted: ' $1 ', none: null }

const ways: [string, (database: Database, work: (sql: Sql) => Promise<unknown>) => Promise<unknown>][] = [
  ['alone', (database, work) => work(database)],
  ['in a transaction', (database, work) => database.transaction(work)],
  ['in a pipelined transaction', (database, work) => database.transaction(work, { pipelined: true })],
  ['on behalf of a business', (database, work) => database.asBusiness('default', work)],
  ['under another role', (database, work) => work(toRoleDatabase(database, 'mason_worker'))],
]

describe('named values', () => {
  test.for(ways)('are those of the statement %s', async ([name, run], { database }) => {
    const found = await run(database, (sql) => queryOne(sql, text, values))
    expect(found).toMatchObject(row)
    if (name === 'on behalf of a business') expect(found).toMatchObject({ business: 'default' })
  })

  test.for(ways)(
    'that are missing or unknown are refused %s, and the next statement is answered',
    async ([, run], { database }) => {
      const { none: _, ...missing } = values
      await expect(run(database, (sql) => sql.query(text, missing))).rejects.toMatchObject({
        code: 'internal',
        message: expect.stringMatching(/the statement has no value for \$none: SELECT \$run_id::text/),
        remedy: 'pass none, or null',
      })
      await expect(run(database, (sql) => sql.query(text, { ...values, user: 'u' }))).rejects.toThrow(
        /the statement does not use the value user: SELECT/,
      )
      expect(await run(database, (sql) => queryOne(sql, text, values))).toMatchObject(row)
    },
  )

  test('are bound anew each time', async ({ database }) => {
    const read = (epoch: number) =>
      queryOne<{ twice: number }>(database, text, { ...values, epoch }).then((found) => found?.twice)
    expect(await Promise.all([1, 2, 3].map(read))).toEqual([2, 4, 6])
  })
})
