// backends: either
// asserts: invariants

import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished } from 'vitest'
import { type Database, queryOne } from '../../../src/infra/database/database.ts'
import type { RunView } from '../../../src/state/run-view.ts'
import { unique } from '../../support/backend.ts'
import type { FakeModel } from '../../support/fake-model/fake-model.ts'
import { runtimeTest } from '../../support/integration-test.ts'
import { openExecutorDatabase } from '../../support/payments.ts'
import { count, rowOf, until } from '../../support/runs.ts'
import { calling } from '../../support/script.ts'
import { deadline, eventsOf, type TestRuntime } from '../../support/test-runtime.ts'

const toolFolders = [fileURLToPath(new URL('../../support/gate-tools', import.meta.url))]
const test = runtimeTest.extend('runtimeOptions', { scope: 'file' }, { toolFolders, concurrency: 2 })

let database: Database
let runtime: TestRuntime
let model: FakeModel
test.beforeAll(({ database: d, runtime: r, model: m }) => {
  ;[database, runtime, model] = [d, r, m]
})

const api = () => runtime.of('default')
const endWait = async (
  ref: string,
  kind = 'job',
  outcome: object = { status: 'succeeded' },
  tenant = 'default',
) =>
  (
    await queryOne<{ ended: number }>(database, 'SELECT end_wait($1, $2, $3, $4::json) AS ended', [
      tenant,
      kind,
      ref,
      JSON.stringify(outcome),
    ])
  )?.ended
const waitsOf = async (runId: string) =>
  (await database.query('SELECT * FROM waits WHERE run_id = $1 ORDER BY call_index, part', [runId])).rows

/** Runs whose planner makes these calls at once, and then finishes. */
const script = (...calls: [string, object][]): void => {
  model.reset()
  model.script({ planner: [calling(...calls), { text: 'Done.' }] } as never)
}
const start = async (...calls: [string, object][]): Promise<string> => {
  script(...calls)
  const { run } = await api().submit({ prompt: 'Go on', user_id: 'u1', session_id: unique('s') })
  return run.id
}
const untilParked = (runId: string, status = 'waiting') =>
  until(`run ${runId} is ${status}`, async () => (await rowOf(database, runId)).status === status)
const wait = (runId: string): Promise<RunView> => api().wait(runId, deadline())
/** The indexes of the calls that have their result, in its order. */
const callsOf = async (runId: string) =>
  ((await runtime.stateOf(runId)).action_history[0] ?? []).flatMap(({ node, result }) =>
    node === 'gate_wait' ? [(result.call as { index: number }).index] : [],
  )
const resultOf = async (runId: string) =>
  (await runtime.stateOf(runId)).action_history[0]?.find(({ node }) => node === 'gate_wait')?.result

test('a run whose call waits is a row and no process; its end brings the outcome to the call, which was started once', async () => {
  const ref = unique('job')
  const id = await start(['gate_wait', { waits: [{ ref }] }])
  await untilParked(id)
  expect(await rowOf(database, id)).toMatchObject({ lease_owner: null, lease_until: null, stalls: 0 })
  expect(await api().run(id)).toMatchObject({ status: 'running', ended_at: null, input_request: null })
  expect(await endWait(ref)).toBe(1)
  expect(await endWait(ref, 'job', { status: 'otherwise' })).toBe(0)
  expect(await wait(id)).toMatchObject({ status: 'completed', answer: 'Done.' })
  expect(await resultOf(id)).toMatchObject({ text: 'succeeded' })
  expect(await waitsOf(id)).toMatchObject([{ ref_id: ref, outcome: { status: 'succeeded' } }])
})

describe('beside a wait', () => {
  test('the next turn of the session waits too, and lists, sessions and streams show a running run', async () => {
    const ref = unique('job')
    const id = await start(['gate_wait', { waits: [{ ref }] }])
    await untilParked(id)
    const { session_id = '' } = (await api().run(id)) ?? {}
    const next = await api().submit({ prompt: 'next', user_id: 'u1', session_id })
    const list = await api().runs({ session_id, status: 'running', limit: 10 })
    expect(list.data.map((run) => [run.id, run.status])).toEqual([[id, 'running']])
    expect((await api().session(session_id))?.turns.map(({ status }) => status)).toEqual([
      'running',
      'queued',
    ])
    expect((await rowOf(database, next.run.id)).status).toBe('queued')
    await endWait(ref)
    const statuses = (await eventsOf(api(), id)).flatMap((event) =>
      event.event === 'status' ? [event.data.status] : [],
    )
    expect(statuses).not.toContain('waiting')
    expect((await wait(next.run.id)).status).toBe('completed')
  })

  test('a question of a sibling call is answered: the answer wakes the run, and the wait still holds', async () => {
    const ref = unique('job')
    const id = await start(['gate_wait', { waits: [{ ref }] }], ['gate_wait', { ask: 'Well?' }])
    await untilParked(id, 'input_required')
    const question = (await api().run(id))?.input_request
    expect(question).toMatchObject({ question: 'Well?' })
    await api().answer(id, question?.id ?? '', 'yes')
    await untilParked(id)
    expect(await api().run(id)).toMatchObject({ status: 'running', input_request: null })
    expect(await callsOf(id)).toEqual([1])
    expect(await waitsOf(id)).toMatchObject([{ call_index: 0, done_at: null }])
    expect(await endWait(ref)).toBe(1)
    expect((await wait(id)).status).toBe('completed')
    expect(await callsOf(id)).toEqual([1, 0])
  })
})

test('two waits of one call are started together, and the call goes on when both have ended', async () => {
  const [one, two] = [unique('run'), unique('run')]
  const id = await start([
    'gate_wait',
    {
      waits: [
        { kind: 'run', ref: one },
        { kind: 'run', ref: two },
      ],
    },
  ])
  await untilParked(id)
  expect(await waitsOf(id)).toMatchObject([
    { part: 0, ref_id: one, done_at: null },
    { part: 1, ref_id: two, done_at: null },
  ])
  await endWait(two, 'run', { status: 'second' })
  await until('the first end was seen', async () => (await waitsOf(id))[1]?.seen_at)
  await untilParked(id)
  await endWait(one, 'run', { status: 'first' })
  await wait(id)
  expect(await resultOf(id)).toMatchObject({ text: 'first, second' })
})

test('a call that waits for one thing after the other has both outcomes, and one that is over its time is expired', async () => {
  const [one, two] = [unique('job'), unique('job')]
  const waits = [{ ref: one }, { ref: two, expires_in_ms: 1 }]
  const id = await start(['gate_wait', { waits, in_turn: true }])
  await untilParked(id)
  expect(await waitsOf(id)).toHaveLength(1)
  await endWait(one)
  await wait(id)
  expect(await resultOf(id)).toMatchObject({ text: 'succeeded, expired' })
})

test('cancelling a run that waits settles it at once, and its end names the payments that were sent', async ({
  backend,
}) => {
  const executor = openExecutorDatabase(backend, database, 1)
  onTestFinished(() => executor.close())
  const [sent, unsent] = [unique('pay'), unique('pay')]
  const id = await start([
    'gate_wait',
    { waits: [{ kind: 'payment', ref: sent }, { kind: 'payment', ref: unsent }, { ref: unique('job') }] },
  ])
  await untilParked(id)
  await insertPayment(executor, sent, id)
  await api().cancel(id, 'enough')
  const run = await api().run(id)
  expect(run).toMatchObject({ status: 'cancelled' })
  const end = (await runtime.stateOf(id)).action_history[0]?.at(-1)
  expect(end).toMatchObject({ node: 'end', result: { status: 'cancelled', payments: [sent] } })
  expect(end?.summary).toContain(sent)
  for (const row of await waitsOf(id)) expect(row).toMatchObject({ outcome: { status: 'cancelled' } })
  expect((await eventsOf(api(), id)).at(-1)?.event).toBe('done')
})

test('a wait for a payment that would expire is an error of its tool', async () => {
  const id = await start(['gate_wait', { waits: [{ kind: 'payment', ref: 'p', expires_in_ms: 1 }] }])
  expect((await wait(id)).status).toBe('completed')
  expect(await resultOf(id)).toMatchObject({ is_error: true, text: expect.stringContaining('never expires') })
})

test('two permits carry thirty runs that wait, none of which holds one, and all end', async () => {
  const runs = 30
  const [business, ref] = [unique('b'), unique('job')]
  model.reset()
  model.script({ planner: [calling(['gate_wait', { waits: [{ ref }] }])] } as never)
  const counted = (status: string) =>
    count(database, 'runs WHERE tenant = $1 AND status = $2 AND lease_owner IS NULL', [business, status])
  // so many steps that the result of the call is followed by the end
  const request = { prompt: 'Go on', user_id: 'u1', limits: { max_steps: 5 } }
  await Promise.all(Array.from({ length: runs }, () => runtime.of(business).submit(request)))
  await until('all wait', async () => (await counted('waiting')) === runs)
  expect(await endWait(ref, 'job', { status: 'succeeded' }, business)).toBe(runs)
  await until('all have ended', async () => (await counted('completed')) === runs)
  for (const node of ['gate_wait', 'end']) {
    const actions = `actions WHERE tenant = $1 AND body ->> 'node' = $2`
    expect(await count(database, actions, [business, node])).toBe(runs)
  }
})

/** A payment that its provider may have had. */
const insertPayment = async (executor: Database, id: string, runId: string): Promise<void> => {
  await executor.query(
    `INSERT INTO mandate_spend (spend_id, tenant, currency) VALUES ($1, 'default', 'USD')`,
    [id],
  )
  await executor.query(
    `INSERT INTO payments (payment_id, tenant, order_id, run_id, plan_seq, call_index, status, mandate_key, mandate_hash, spend_id,
       amount_minor, payee_issuer, checkout_id) VALUES ($1, 'default', $1, $2, 1, 0, 'sent', $1, $1, $1, 1, 'i', $1)`,
    [id, runId],
  )
}
