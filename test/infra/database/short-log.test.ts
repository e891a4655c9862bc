import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  checkpointLongLog,
  type EmbeddedDatabase,
  openEmbeddedDatabase,
} from '../../../src/infra/database/embedded.ts'

let database: EmbeddedDatabase
beforeAll(async () => {
  database = await openEmbeddedDatabase({})
})
afterAll(() => database.close())

const loggedSince = async (): Promise<number> => {
  const text = 'SELECT (pg_current_wal_lsn() - redo_lsn)::int8 AS bytes FROM pg_control_checkpoint()'
  return (await database.query<{ bytes: number }>(text)).rows[0]?.bytes ?? 0
}

describe('the write-ahead log of the embedded database', () => {
  test('is truncated by the worker once it is long, and not before', async () => {
    await database.query(
      `INSERT INTO businesses (tenant) SELECT 'b' || n FROM generate_series(1, 20000) AS n`,
    )
    const logged = await loggedSince()
    expect(logged).toBeGreaterThan(2_000_000)
    await checkpointLongLog(database.pglite, logged * 2)
    expect(await loggedSince()).toBeGreaterThanOrEqual(logged)
    await checkpointLongLog(database.pglite, logged)
    expect(await loggedSince()).toBeLessThan(100_000)
  })
})

describe('a statement of the embedded database', () => {
  test('is parsed once, whatever fails between', async () => {
    const text = 'SELECT tenant FROM businesses WHERE length(tenant) / $1::int > 0 LIMIT 1'
    const ask = (divisor: unknown) => database.query<{ tenant: string }>(text, [divisor])
    const first = await ask(1)
    await expect(ask(0)).rejects.toThrow('division by zero')
    await expect(database.query('SELECT nothing FROM businesses')).rejects.toThrow('nothing')
    await expect(ask('x')).rejects.toThrow()
    await database.transaction(async (sql) => {
      expect((await sql.query(text, [1])).rows).toEqual(first.rows)
    })
    expect((await ask(1)).rows).toEqual(first.rows)
    const kept = 'SELECT statement FROM pg_prepared_statements WHERE statement = $1'
    expect((await database.query(kept, [text])).rows).toHaveLength(1)
  })
})
