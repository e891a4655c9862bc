import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Database } from '../../src/infra/database/database.ts'
import { appendAction, finishRun } from '../../src/infra/runs/append.ts'
import { readRows } from '../../src/infra/runs/run-log.ts'
import { createSessionHeads } from '../../src/infra/runs/session-heads.ts'
import { deleteSession } from '../../src/infra/sessions/delete.ts'
import { fold } from '../../src/state/fold.ts'
import type { Sql } from '../../src/state/ports.ts'
import { type Backend, openBackend } from '../support/backend.ts'
import { entry, mustClaim, submitTo } from '../support/spine.ts'

let backend: Backend
let database: Database
beforeAll(async () => {
  backend = await openBackend()
  database = await backend.openDatabase()
})
afterAll(async () => {
  await database?.close()
  await backend?.drop()
})

/** A turn of some actions, begun and ended. */
const turn = async (session: string, actions: number): Promise<number> => {
  await submitTo(database, 'a', { session_id: session })
  const run = await mustClaim(database)
  for (let n = 0; n < actions; n++) await appendAction(database, run, entry(run.next_seq + n))
  await finishRun(database, run, {
    ...entry(run.next_seq + actions),
    outcome: { status: 'completed', reason: 'answered' },
    result: { answer: 'x', output_structure: [], error: null },
  })
  return run.turn
}

const counting = (): Sql & { rows: number } => {
  const counted = {
    rows: 0,
    async query<Row>(text: string, values?: readonly unknown[]) {
      const answered = await database.query<Row>(text, values)
      counted.rows += answered.rows.length
      return answered
    },
  }
  return counted
}
const stored = async (session: string, upTo: number) => fold(await readRows(database, 'a', session, upTo))

test('a session that was seen before costs its new rows only, and is what all its rows add up to', async () => {
  const heads = createSessionHeads()
  const costs: number[] = []
  for (let n = 1; n <= 6; n++) {
    const last = await turn('long', 3)
    const sql = counting()
    expect(await heads.load(sql, 'a', 'long', last)).toEqual(await stored('long', last))
    costs.push(sql.rows)
  }
  // the row the head ends with, and the four of the turn since
  expect(costs.slice(1)).toEqual([5, 5, 5, 5, 5])
})

test('a session that was deleted and begun anew is read anew', async () => {
  const heads = createSessionHeads()
  await heads.load(database, 'a', 'again', await turn('again', 2))
  await deleteSession(database, 'a', 'again')
  const last = await turn('again', 3)
  expect(await heads.load(database, 'a', 'again', last)).toEqual(await stored('again', last))
})

test('an older turn than the head is read as it was', async () => {
  const heads = createSessionHeads()
  await turn('older', 1)
  await turn('older', 1)
  await heads.load(database, 'a', 'older', 2)
  expect(await heads.load(database, 'a', 'older', 1)).toEqual(await stored('older', 1))
})
