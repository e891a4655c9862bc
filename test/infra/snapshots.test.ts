import { describe, expect, test } from 'vitest'
import { createSnapshots } from '../../src/infra/events/snapshots.ts'
import type { EventRow, FollowedRun } from '../../src/infra/runs/read.ts'

const run = (id: string, status = 'running') =>
  ({
    view: { id, turn: 1, status, input_request: null },
    range: { first_seq: 1, next_seq: 1 },
  }) as unknown as FollowedRun
const todo = (id: string) => ({ todos: [{ id, task: id, status: 'pending' }] }) as never
const row = (seq: number, run_id: string) =>
  ({ seq, run_id, turn: 1, body: {}, patch: todo(`t${seq}`) }) as unknown as EventRow
const none = async () => []

describe('the snapshots of a follower', () => {
  test('are told once, and anew only of a run that was let go of', async () => {
    const snapshots = createSnapshots()
    const look = async (...runs: FollowedRun[]) => {
      await snapshots.begin(runs, none)
      return [...snapshots.news(runs, 0)].map(({ event }) => event)
    }
    expect(await look(run('a'))).toEqual(['status'])
    expect(await look(run('a'))).toEqual([])
    expect(await look(run('b'))).toEqual(['status'])
    // nothing of it was kept
    expect(await look(run('a'))).toEqual(['status'])
  })

  test('of a run that ended before the look still come with its actions', async () => {
    const snapshots = createSnapshots()
    await snapshots.begin([run('a')], none)
    expect([...snapshots.news([run('a')], 0)]).toHaveLength(1)
    // two more turns have passed meanwhile
    await snapshots.begin([run('b', 'completed'), run('c')], none)
    const told = [...snapshots.follow(row(1, 'a'))]
    expect(told).toMatchObject([{ event: 'todos', id: 1, data: { run_id: 'a', todos: [{ id: 't1' }] } }])
  })
})
