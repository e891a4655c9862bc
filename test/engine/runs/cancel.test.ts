// backends: both
// asserts: invariants

import { describe, expect } from 'vitest'
import { handBackRun } from '../../../src/engine/runs/release.ts'
import type { Database } from '../../../src/infra/database/database.ts'
import { unique } from '../../support/backend.ts'
import type { FakeModel } from '../../support/fake-model/fake-model.ts'
import { runtimeTest } from '../../support/integration-test.ts'
import { checkInvariants } from '../../support/invariants.ts'
import { codeOf, count, endLease, mustClaim, submitTo, until } from '../../support/runs.ts'
import { deadline, eventsOf, type TestRuntime } from '../../support/test-runtime.ts'

let model: FakeModel
let runtime: TestRuntime
let database: Database

const test = runtimeTest.extend('runtimeOptions', { scope: 'file' }, () => ({ maxRuns: 1 }))
test.beforeAll(({ database: d, model: m, runtime: r }) => {
  ;[database, model, runtime] = [d, m, r]
})

const api = () => runtime.of('default')
const script = (...planner: object[]) => {
  model.reset()
  model.script({ planner } as never)
}
/** A run that is in the middle of a model call. */
const busy = async (session_id = unique('s')) => {
  script({ hold: true, text: 'too late' })
  const { run } = await api().submit({ prompt: 'work', user_id: 'u1', session_id })
  await until(
    'the model call',
    () => model.requests('planner').length > 0 && model.held() === 1 && model.open() === 1,
  )
  return run
}
const endOf = async (runId: string) => {
  const state = await runtime.stateOf(runId)
  checkInvariants(state)
  return state.action_history.at(-1)?.at(-1)?.result
}

describe('cancelling', () => {
  test('a queued run settles it at once; never begun, it has no action; its session goes on', async () => {
    const session_id = unique('s')
    const first = await busy(session_id)
    const later = () => api().submit({ prompt: 'later', user_id: 'u1', session_id })
    const second = await later()
    const third = await later()
    const cancelled = await api().cancel(second.run.id, 'not needed')
    expect(cancelled).toMatchObject({ status: 'cancelled', started_at: null, answer: null, error: null })
    expect(cancelled.ended_at).not.toBeNull()
    expect(await count(database, 'actions WHERE run_id = $1', [cancelled.id])).toBe(0)
    script({ text: 'Third.' })
    await api().cancel(first.id, 'go on')
    expect(await api().wait(third.run.id, deadline())).toMatchObject({
      status: 'completed',
      answer: 'Third.',
    })
    const state = await runtime.stateOf(third.run.id)
    // the turn that never began stays empty
    expect(state.prompts).toEqual(['work', '', 'later'])
    expect(state.action_history.map((actions) => actions.length > 0)).toEqual([true, false, true])
    expect(state.action_history.flat().map(({ id }, at) => id - at)).toEqual(
      state.action_history.flat().map(() => 1),
    )
    const events = await eventsOf(api(), cancelled.id)
    expect(events.map(({ event }) => event)).toEqual(['status', 'done'])
  })

  test('a running one aborts its model call and ends', async () => {
    const run = await busy()
    expect((await api().cancel(run.id, 'enough')).status).toBe('running')
    const ended = await api().wait(run.id, deadline())
    expect(ended).toMatchObject({ status: 'cancelled', error: null, answer: null })
    await until('the model call to be gone', () => model.open() === 0)
    expect(await endOf(run.id)).toEqual({ status: 'cancelled', reason: 'enough' })
  })

  test('a running one works without a hint: its worker reads the request from the row', async () => {
    const run = await busy()
    await database.query('UPDATE runs SET cancel_requested_at = clock_timestamp() WHERE run_id = $1', [
      run.id,
    ])
    expect((await api().wait(run.id, deadline())).status).toBe('cancelled')
  })

  test('can be repeated, before and after; the first reason stays', async () => {
    const run = await busy()
    await Promise.all(['first', 'second', 'third'].map((reason) => api().cancel(run.id, reason)))
    await api().wait(run.id, deadline())
    expect((await api().cancel(run.id, 'again')).status).toBe('cancelled')
    const { rows } = await database.query<{ reason: string }>(
      'SELECT cancel_reason AS reason FROM runs WHERE run_id = $1',
      [run.id],
    )
    expect(await endOf(run.id)).toEqual({ status: 'cancelled', reason: rows[0]?.reason })
  })

  test('is refused for a run that has completed, and for one that is not there', async () => {
    script({ text: 'Done.' })
    const run = await runtime.complete({ prompt: 'x' })
    expect(await codeOf(api().cancel(run.id, 'x'))).toBe('run_ended')
    expect(await codeOf(api().cancel('run_x', 'x'))).toBe('not_found')
    expect(await codeOf(runtime.of(unique('b')).cancel(run.id, 'x'))).toBe('not_found')
  })

  test('as the run completes leaves one end, whichever comes first', async () => {
    for (let round = 0; round < 5; round++) {
      script({ text: 'Done.' })
      const { run } = await api().submit({ prompt: 'x', user_id: 'u1' })
      const cancelled = codeOf(
        until('an action', () => count(database, 'actions WHERE run_id = $1', [run.id])).then(() =>
          api().cancel(run.id, 'x'),
        ),
      )
      const ended = await api().wait(run.id, deadline())
      expect(['no error', 'run_ended']).toContain(await cancelled)
      expect(['completed', 'cancelled']).toContain(ended.status)
      expect((await endOf(run.id))?.status).toBe(ended.status)
    }
  })
})

describe('a run that was claimed and handed back', () => {
  // the only worker is busy, so this test can be another
  test('before its first action is left to the next worker, which opens its turn and ends it', async () => {
    const first = await busy()
    const { id } = await submitTo(database, 'other')
    expect(await handBackRun(database, await mustClaim(database), 1)).toBe(true)
    expect((await runtime.of('other').cancel(id, 'no')).status).toBe('queued')
    await api().cancel(first.id, 'free the worker')
    const ended = await runtime.of('other').wait(id, deadline())
    expect(ended.status).toBe('cancelled')
    const state = await runtime.stateOf(id, 'other')
    checkInvariants(state)
    expect(state.action_history[0]?.map((action) => action.node)).toEqual(['load-session', 'end'])
  })

  test('or whose worker died, is cancelled by the worker that takes over', async () => {
    const first = await busy()
    const { id } = await submitTo(database, 'other')
    await mustClaim(database, 'silent')
    expect((await runtime.of('other').cancel(id, 'no')).status).toBe('running')
    await endLease(database, id)
    await api().cancel(first.id, 'free the worker')
    expect((await runtime.of('other').wait(id, deadline())).status).toBe('cancelled')
    checkInvariants(await runtime.stateOf(id, 'other'))
  })
})
