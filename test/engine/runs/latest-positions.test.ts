// backends: either

import { expect } from 'vitest'
import { createLatestPositions } from '../../../src/engine/runs/latest-positions.ts'
import { readActionRows } from '../../../src/engine/runs/run-queries.ts'
import { deleteSession } from '../../../src/features/user-memory/store/delete-session.ts'
import type { Database } from '../../../src/infra/database/database.ts'
import { foldActions } from '../../../src/state/fold.ts'
import type { Sql } from '../../../src/state/ports/sql.ts'
import { test } from '../../support/integration-test.ts'
import { appendAction, entry, mustClaim, submitTo } from '../../support/runs.ts'

/** A turn of some actions, begun and ended. */
const turn = async (database: Database, session: string, actions: number): Promise<number> => {
  await submitTo(database, 'a', { session_id: session })
  const run = await mustClaim(database)
  for (let n = 0; n < actions; n++) await appendAction(database, run, entry(run.next_seq + n))
  await appendAction(database, run, {
    ...entry(run.next_seq + actions),
    outcome: { status: 'completed', reason: 'answered' },
    result: { answer: 'x', output_structure: [], error: null },
  })
  return run.turn
}

const counting = (database: Database): Sql & { rows: number } => {
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
const stored = async (database: Database, session: string, upTo: number) =>
  foldActions(await readActionRows(database, 'a', session, upTo))

test('a session that was seen before costs its new rows only, and is what all its rows add up to', async ({
  database,
}) => {
  const heads = createLatestPositions()
  const costs: number[] = []
  for (let n = 1; n <= 6; n++) {
    const last = await turn(database, 'long', 3)
    const sql = counting(database)
    expect(await heads.load(sql, 'a', 'long', last)).toEqual(await stored(database, 'long', last))
    costs.push(sql.rows)
  }
  // the row the head ends with, and the four of the turn since
  expect(costs.slice(1)).toEqual([5, 5, 5, 5, 5])
})

test('a session that was deleted and begun again is read again', async ({ database }) => {
  const heads = createLatestPositions()
  await heads.load(database, 'a', 'again', await turn(database, 'again', 2))
  await deleteSession(database, 'a', 'again')
  const last = await turn(database, 'again', 3)
  expect(await heads.load(database, 'a', 'again', last)).toEqual(await stored(database, 'again', last))
})

test('a turn older than the latest position is read as it was', async ({ database }) => {
  const heads = createLatestPositions()
  await turn(database, 'older', 1)
  await turn(database, 'older', 1)
  await heads.load(database, 'a', 'older', 2)
  expect(await heads.load(database, 'a', 'older', 1)).toEqual(await stored(database, 'older', 1))
})
