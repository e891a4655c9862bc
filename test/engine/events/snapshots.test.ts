import { describe, expect, test } from 'vitest'
import { createSnapshotFilter } from '../../../src/engine/events/event-stream.ts'
import type { FollowedRun } from '../../../src/engine/runs/run-queries.ts'
import type { EventRow } from '../../../src/engine/sessions/action-queries.ts'

const run = (id: string, status = 'running') =>
  ({
    view: { id, turn: 1, status, input_request: null, consent_request: null },
    range: { first_seq: 1, next_seq: 1 },
  }) as unknown as FollowedRun
const todo = (id: string) => ({ todos: [{ id, task: id, status: 'pending' }] }) as never
const row = (seq: number, run_id: string) =>
  ({ seq, run_id, turn: 1, body: {}, patch: todo(`t${seq}`) }) as unknown as EventRow
const none = async () => []

describe('the snapshots of a follower', () => {
  test('are sent once, and again only for a run that was released', async () => {
    const snapshots = createSnapshotFilter()
    const look = async (...runs: FollowedRun[]) => {
      await snapshots.addRuns(runs, none)
      return [...snapshots.changedSnapshots(runs, 0)].map(({ event }) => event)
    }
    expect(await look(run('a'))).toEqual(['status'])
    expect(await look(run('a'))).toEqual([])
    expect(await look(run('b'))).toEqual(['status'])
    // nothing of it was kept
    expect(await look(run('a'))).toEqual(['status'])
  })

  test('of a run that ended before they were read still come with its actions', async () => {
    const snapshots = createSnapshotFilter()
    await snapshots.addRuns([run('a')], none)
    expect([...snapshots.changedSnapshots([run('a')], 0)]).toHaveLength(1)
    // two more turns have passed meanwhile
    await snapshots.addRuns([run('b', 'completed'), run('c')], none)
    const sent = [...snapshots.applyAction(row(1, 'a'))]
    expect(sent).toMatchObject([{ event: 'todos', id: 1, data: { run_id: 'a', todos: [{ id: 't1' }] } }])
  })
})
