// backends: either
// asserts: invariants

import { describe, expect, onTestFinished } from 'vitest'
import { readUnreadWords } from '../../../src/engine/runs/run-words.ts'
import { deleteSession } from '../../../src/features/user-memory/store/delete-session.ts'
import type { Database } from '../../../src/infra/database/database.ts'
import type { Sql } from '../../../src/state/ports/sql.ts'
import { unique } from '../../support/backend.ts'
import { deferred } from '../../support/deferred.ts'
import { test } from '../../support/integration-test.ts'
import { count, submitTo, untilBlocked } from '../../support/runs.ts'

/** The words of a run are read while its session is deleted: neither waits for what waits for it. */

const endRun = async (database: Database) => {
  const tenant = unique('b')
  const { id: run_id, session_id } = await submitTo(database, tenant)
  await database.query(`UPDATE runs SET status = 'cancelled' WHERE run_id = $1`, [run_id])
  const unread = () => count(database, 'unread_runs WHERE run_id = $1', [run_id])
  expect(await unread()).toBe(1)
  return { tenant, run_id, session_id, unread }
}

// two that wait for each other need a connection each
describe.runIf(process.env.MASON_TEST_BACKEND === 'served')('the words of a run are read', () => {
  test('as its session comes to be deleted: the deletion waits, and is done', async ({
    database,
    elsewhere,
  }) => {
    const { tenant, run_id, session_id, unread } = await endRun(database)
    const [chosen, resumed] = [deferred(), deferred()]
    onTestFinished(() => resumed.resolve())
    const slow: Pick<Database, 'transaction'> = {
      transaction: (work) =>
        elsewhere.transaction((sql) => {
          const query: Sql['query'] = async (...statement: Parameters<Sql['query']>) => {
            const result = await sql.query(...statement)
            chosen.resolve()
            await resumed.promise
            return result as never
          }
          return work({ ...sql, query })
        }),
    }
    const reading = readUnreadWords(slow)
    await chosen.promise
    const deleting = deleteSession(database, tenant, session_id)
    await untilBlocked(elsewhere, deleting)
    resumed.resolve()
    expect(await Promise.all([deleting, reading])).toEqual([true, undefined])
    expect([await unread(), await count(database, 'run_words WHERE run_id = $1', [run_id])]).toEqual([0, 0])
  })

  test('after its session began to be deleted: the run is passed over', async ({ database, elsewhere }) => {
    const { run_id, session_id, unread } = await endRun(database)
    await elsewhere.transaction(async (sql) => {
      await sql.query('SELECT 1 FROM runs WHERE run_id = $1 FOR UPDATE', [run_id])
      await readUnreadWords(database)
      expect(await unread()).toBe(1)
      await sql.query('DELETE FROM sessions WHERE session_id = $1', [session_id])
    })
    expect(await unread()).toBe(0)
  })
})
