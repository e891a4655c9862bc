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
