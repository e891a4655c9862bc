// backends: either

import { expect } from 'vitest'
import { settleRun } from '../../../src/engine/runs/settlement.ts'
import { unique } from '../../support/backend.ts'
import { type SeenEvent, type TestServer, takeEvents } from '../../support/http.ts'
import { adminToken, runtimeTest as test } from '../../support/integration-test.ts'
import { count, until } from '../../support/runs.ts'
import { say } from '../../support/script.ts'
import { deadline } from '../../support/test-runtime.ts'

const follow = (server: TestServer, business: string, after?: number) =>
  server.follow(`/v1/events?business_id=${business}`, {
    token: adminToken,
    ...(after !== undefined && { headers: { 'last-event-id': String(after) } }),
  })
const statusesOf = (events: SeenEvent[], id: string) =>
  events.flatMap(({ data }) => (data.run_id === id ? [data.status] : []))

test('a stream of a business has each new status of its runs, and no content', async ({
  runtime,
  server,
  model,
}) => {
  const business = unique('b')
  const api = runtime.of(business)
  const followed = await follow(server, business)
  const [ready] = await takeEvents(followed, 1)
  expect(ready).toEqual({ event: 'ready', id: expect.any(Number), data: { reset: false } })
  say(model, { planner: [{ text: 'Hello.' }] })
  const { run } = await api.submit({ prompt: 'the-secret-prompt', user_id: 'u' })
  await api.wait(run, deadline())
  // of a business next to it nothing is sent
  await runtime.of(unique('other')).submit({ prompt: 'x', user_id: 'u', delay_ms: 60_000 })
  const events = await takeEvents(followed, 3)
  expect(statusesOf(events, run.id)).toEqual(['queued', 'running', 'completed'])
  expect(events.at(-1)).toEqual({
    event: 'run',
    id: expect.any(Number),
    data: { run_id: run.id, session_id: run.session_id, status: 'completed', at: expect.any(String) },
  })
  followed.leave()
})

test('a stream resumes after its last event, also one of many runs, and says where some may be lost', async ({
  runtime,
  server,
  database,
}) => {
  const business = unique('b')
  const api = runtime.of(business)
  const submit = async () => (await api.submit({ prompt: 'x', user_id: 'u', delay_ms: 60_000 })).run
  const first = await submit()
  // a transaction of another database of the server holds the position back while it is open
  const ended = 'run_changes WHERE tenant = $1 AND xid < pg_snapshot_xmin(pg_current_snapshot())'
  await until('the first change is behind all that is open', () => count(database, ended, [business]))
  const followed = await follow(server, business)
  const [ready] = await takeEvents(followed, 1)
  followed.leave()
  const missed = [await submit(), await submit()]
  await api.cancel(first.id, undefined)
  const resumed = await follow(server, business, ready?.id ?? 0)
  const events = await takeEvents(resumed, 4)
  expect(events[0]).toEqual({ event: 'ready', id: ready?.id, data: { reset: false } })
  expect(events.slice(1).map(({ data }) => [data.run_id, data.status])).toEqual([
    ...missed.map(({ id }) => [id, 'queued']),
    [first.id, 'cancelled'],
  ])
  resumed.leave()
  // before the oldest change that is kept, and of another database
  for (const after of [1, 9_000_000_000]) {
    const lost = await follow(server, business, after)
    expect((await takeEvents(lost, 1))[0]?.data).toEqual({ reset: true })
    lost.leave()
  }
  expect(
    (await server.call('GET', '/v1/events', { token: adminToken, headers: { 'last-event-id': 'x' } })).status,
  ).toBe(422)
  await database.query('DELETE FROM sessions WHERE tenant = $1', [business])
})

test('a change whose transaction is open while later ones end is not lost', async ({
  runtime,
  server,
  elsewhere,
  database,
}) => {
  const business = unique('b')
  const api = runtime.of(business)
  const submit = async () => (await api.submit({ prompt: 'x', user_id: 'u', delay_ms: 60_000 })).run
  const [slow, quick] = [await submit(), await submit()]
  const followed = await follow(server, business)
  await takeEvents(followed, 1)
  // PGlite has one session: there the transactions follow each other
  if (database.kind === 'postgres')
    await elsewhere.asBusiness(business, async (sql) => {
      await settleRun(sql, business, slow.id, { status: 'cancelled', reason: '' })
      await api.cancel(quick.id, undefined)
    })
  else {
    await elsewhere.asBusiness(business, (sql) =>
      settleRun(sql, business, slow.id, { status: 'cancelled', reason: '' }),
    )
    await api.cancel(quick.id, undefined)
  }
  const events = await takeEvents(followed, 2)
  expect(events.map(({ data }) => data.run_id).sort()).toEqual([slow.id, quick.id].sort())
  followed.leave()
})
