import { expect, test } from 'vitest'
import { streamRunEvents } from '../../../src/engine/events/event-stream.ts'
import type { Feed, SessionChange, SessionFollower } from '../../../src/engine/events/feed.ts'
import type { Poller } from '../../../src/engine/events/polling.ts'

const source = { business_id: 'shop', session_id: 's', run_id: 'r' }

/** A run whose rows are in memory, what its stream has sent, and what was read for it. */
const follow = () => {
  const reads: string[] = []
  const sent: string[] = []
  const rows: { seq: number; node: string }[] = []
  let status = 'queued'
  let follower: SessionFollower | undefined
  const after = (last: number) =>
    rows
      .filter(({ seq }) => seq > last)
      .map(({ seq, node }) => ({
        ...{ seq, run_id: 'r', turn: 1, body: { node }, patch: null },
        event: { event: 'action', id: seq, data: {} },
      }))
  const view = () => ({ id: 'r', turn: 1, status, input_request: null, consent_request: null })
  const poller = {
    readAfter: async (_: unknown, last: number) => {
      reads.push('runs')
      return { runs: [{ view: view(), range: { first_seq: null } }], rows: after(last), more: false }
    },
    readActions: async (_: unknown, last: number) => {
      reads.push('actions')
      return { runs: null, rows: after(last), more: false }
    },
  } as unknown as Poller
  const feed = {
    follow(_business: string, _session: string, one: SessionFollower) {
      follower = one
      return () => {}
    },
  } as unknown as Feed
  const stream = streamRunEvents(poller, feed, source, 0, new AbortController().signal)
  const ended = (async () => {
    for await (const { event, data } of stream)
      sent.push(event === 'status' ? (data as { status: string }).status : event)
  })()
  return {
    ...{ reads, sent, ended },
    commit(node: string, change: SessionChange, now = status): void {
      status = now
      rows.push({ seq: rows.length + 1, node })
      follower?.onChange(change)
    },
  }
}

test('a follower reads the run again for the first action of a claim and for the end, and else the actions alone', async () => {
  const { reads, sent, ended, commit } = follow()
  const until = (count: number) => expect.poll(() => sent.length).toBe(count)
  await until(1)
  commit('load-session', 'claimed', 'running')
  await until(3)
  for (const [at, node] of ['planner', 'choose_cart', 'reflection'].entries()) {
    commit(node, 'action')
    await until(4 + at)
  }
  commit('end', 'action', 'completed')
  await ended
  expect(sent).toEqual([
    ...['queued', 'action', 'running', 'action', 'action', 'action'],
    ...['action', 'completed', 'done'],
  ])
  expect(reads).toEqual(['runs', 'runs', 'actions', 'actions', 'actions', 'actions', 'runs'])
})
