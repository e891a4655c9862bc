// backends: both
// asserts: invariants

import { describe, expect } from 'vitest'
import { expireInputs } from '../../../src/engine/runs/input-answers.ts'
import type { Database } from '../../../src/infra/database/database.ts'
import type { RunView } from '../../../src/state/run-view.ts'
import { unique } from '../../support/backend.ts'
import type { FakeModel } from '../../support/fake-model/fake-model.ts'
import { runtimeTest } from '../../support/integration-test.ts'
import { checkInvariants } from '../../support/invariants.ts'
import { codeOf, count, rowOf, until } from '../../support/runs.ts'
import { deadline, eventsOf, nodesOf, type TestRuntime } from '../../support/test-runtime.ts'

let model: FakeModel
let runtime: TestRuntime
let database: Database
/** Questions that expired, whichever process expired them: the worker checks every ten seconds too. */
let expired = 0
const counting = (opened: Database): Database => ({
  ...opened,
  async query<Row>(text: string, values?: readonly unknown[]) {
    const answer = await opened.query<Row>(text, values)
    if (text.includes('{"kind":"expired"}')) expired += answer.rows.length
    return answer
  },
})

const test = runtimeTest.extend('runtimeOptions', { scope: 'file' }, () => ({ wrap: { database: counting } }))
test.beforeAll(({ database: d, model: m, runtime: r }) => {
  ;[database, model, runtime] = [d, m, r]
})

const api = () => runtime.of('default')
const question = (text: string, more: object = {}) => ({
  name: 'ask_user',
  arguments: { question: text, ...more },
})
const script = (...planner: object[]) => {
  model.reset()
  model.script({ planner } as never)
}
/** A run that waits for the answer to its first question. */
const ask = async (...calls: object[]): Promise<RunView> => {
  script({ tool_calls: calls }, { text: 'Thank you.' })
  const run = await runtime.complete({ prompt: 'Ask me something', session_id: unique('s') })
  expect(run).toMatchObject({ status: 'input_required', ended_at: null })
  return run
}
const openOf = (run: RunView): string => run.input_request?.id ?? ''
const wait = (run: RunView): Promise<RunView> => api().wait(run.id, deadline())
const checkEnded = async (run: RunView): Promise<void> => {
  const state = await runtime.stateOf(run.id)
  checkInvariants(state)
  expect(await count(database, 'input_requests WHERE run_id = $1 AND answered_at IS NULL', [run.id])).toBe(0)
  expect((await eventsOf(api(), run.id)).at(-1)).toEqual({ event: 'done', data: await api().run(run.id) })
}

describe('a run that asks a person', () => {
  test('is a row and no process: its question is open, its lease is free, its session waits', async () => {
    const run = await ask(question('Which colour?', { options: ['red', 'blue'] }))
    expect(run.input_request).toMatchObject({
      question: 'Which colour?',
      options: ['red', 'blue'],
      schema: { type: 'string', enum: ['red', 'blue'] },
    })
    expect(await rowOf(database, run.id)).toMatchObject({ lease_owner: null, lease_until: null, stalls: 0 })
    const next = await api().submit({ prompt: 'next', user_id: 'u1', session_id: run.session_id })
    const answered = await api().answer(run.id, openOf(run), 'blue')
    expect(answered.input_request).toBeNull()
    expect(await wait(run)).toMatchObject({ status: 'completed', answer: 'Thank you.', input_request: null })
    await checkEnded(run)
    expect((await api().wait(next.run.id, deadline())).status).toBe('completed')
  })

  test('goes on with the stored call: the planner is not asked again before the answer is its result', async () => {
    const run = await ask(question('How many?', { answer_type: 'number' }))
    expect(model.requests('planner')).toHaveLength(1)
    await api().answer(run.id, openOf(run), 7)
    await wait(run)
    expect(model.requests('planner')).toHaveLength(2)
    const state = await runtime.stateOf(run.id)
    const asked = state.action_history[0]?.find((action) => action.node === 'ask_user')
    expect(asked?.result).toMatchObject({ call: { index: 0 }, text: '7', answer: 7 })
    expect(nodesOf(state).filter((node) => node === 'load-session')).toHaveLength(1)
  })

  test('asks several questions one by one, and keeps what its other calls did', async () => {
    const run = await ask(
      question('First?'),
      { name: 'calculate', arguments: { expression: '6*7' } },
      question('Second?'),
    )
    expect(run.input_request?.question).toBe('First?')
    await api().answer(run.id, openOf(run), 'one')
    const second = await wait(run)
    expect(second).toMatchObject({ status: 'input_required', input_request: { question: 'Second?' } })
    expect(await codeOf(api().answer(run.id, openOf(run), 'again'))).toBe('input_answered')
    await api().answer(run.id, openOf(second), 'two')
    expect((await wait(run)).status).toBe('completed')
    const nodes = nodesOf(await runtime.stateOf(run.id))
    expect(nodes.filter((node) => node === 'calculate')).toHaveLength(1)
    expect(nodes.filter((node) => node === 'ask_user')).toHaveLength(2)
    await checkEnded(run)
  })
})

describe('an answer', () => {
  test('that does not match the schema is refused with its errors, and the question stays open', async () => {
    const run = await ask(question('How many?', { answer_type: 'number' }))
    const error = await api()
      .answer(run.id, openOf(run), 'many')
      .catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'invalid_request', detail: { errors: [{ pointer: '/answer' }] } })
    expect((await api().run(run.id))?.input_request?.id).toBe(openOf(run))
    await api().answer(run.id, openOf(run), 3)
    expect((await wait(run)).status).toBe('completed')
  })

  test('that does not match an object is refused with a pointer to each field, by RFC 6901', async () => {
    const run = await ask(question('Where?'))
    const schema = { type: 'object', properties: { 'a/b': { type: 'number' } }, additionalProperties: false }
    await database.query('UPDATE input_requests SET schema = $2::json WHERE run_id = $1', [
      run.id,
      JSON.stringify(schema),
    ])
    const error = await api()
      .answer(run.id, openOf(run), { 'a/b': 'x', c: 1 })
      .catch((reason: unknown) => reason)
    const errors = [{ pointer: '/answer/a~1b' }, { pointer: '/answer/c', detail: 'unknown field' }]
    expect(error).toMatchObject({ detail: { errors } })
    await api().cancel(run.id, undefined)
  })

  test('counts once, also when ten come at the same moment', async () => {
    const run = await ask(question('Which?'))
    const codes = await Promise.all(
      Array.from({ length: 10 }, (_, at) => codeOf(api().answer(run.id, openOf(run), `answer ${at}`))),
    )
    expect(codes.filter((code) => code === 'no error')).toHaveLength(1)
    expect(codes.filter((code) => code === 'input_answered')).toHaveLength(9)
    expect((await wait(run)).status).toBe('completed')
    const winner = codes.indexOf('no error')
    const state = await runtime.stateOf(run.id)
    const asked = state.action_history[0]?.find((action) => action.node === 'ask_user')
    expect(asked?.result.answer).toBe(`answer ${winner}`)
    expect(await codeOf(api().answer(run.id, openOf(run), 'late'))).toBe('input_answered')
  })

  test('to a question that is not there, or of another business, is not found', async () => {
    const run = await ask(question('Which?'))
    expect(await codeOf(api().answer(run.id, 'inp_x', 'x'))).toBe('not_found')
    expect(await codeOf(runtime.of(unique('b')).answer(run.id, openOf(run), 'x'))).toBe('not_found')
    await api().cancel(run.id, undefined)
  })
})

describe('a question without an answer', () => {
  test('expires: the run goes on with an error as its result, and a late answer is refused', async () => {
    const run = await ask(question('Is anybody there?'))
    expired = 0
    await database.query(
      `UPDATE input_requests SET expires_at = clock_timestamp() - interval '1 second' WHERE request_id = $1`,
      [openOf(run)],
    )
    expect(await codeOf(api().answer(run.id, openOf(run), 'late'))).toBe('input_answered')
    await Promise.all([1, 2, 3].map(() => expireInputs(database)))
    expect((await wait(run)).status).toBe('completed')
    expect(expired).toBe(1)
    const state = await runtime.stateOf(run.id)
    const asked = state.action_history[0]?.find((action) => action.node === 'ask_user')
    expect(asked?.result).toMatchObject({ is_error: true })
    await checkEnded(run)
  })

  test('goes with its run when that is cancelled: at once, with one end', async () => {
    const run = await ask(question('Which?'))
    const cancelled = await api().cancel(run.id, 'never mind')
    expect(cancelled).toMatchObject({ status: 'cancelled', input_request: null })
    expect(await codeOf(api().answer(run.id, openOf(run), 'x'))).toBe('input_answered')
    const state = await runtime.stateOf(run.id)
    expect(state.action_history[0]?.at(-1)).toMatchObject({
      node: 'end',
      result: { status: 'cancelled', reason: 'never mind' },
    })
    await checkEnded(run)
  })

  test('and a cancel, an answer and its expiry at one moment leave exactly one outcome', async () => {
    for (let round = 0; round < 4; round++) {
      const run = await ask(question('Which?'))
      const codes = await Promise.all([
        codeOf(api().answer(run.id, openOf(run), 'x')),
        codeOf(api().cancel(run.id, 'stop')),
        codeOf(expireInputs(database)),
        codeOf(api().cancel(run.id, 'stop')),
      ])
      expect(codes.filter((code) => !['no error', 'input_answered', 'run_ended'].includes(code))).toEqual([])
      const ended = await until('the end', async () => {
        const view = await wait(run)
        return view.status === 'input_required' ? null : view
      })
      expect(['cancelled', 'completed']).toContain(ended.status)
      await checkEnded(run)
    }
  })
})

describe('a cancel that comes as the run is about to wait', () => {
  test('ends it then and there', async () => {
    script({ hold: true, tool_calls: [question('Which?')] })
    const { run } = await api().submit({ prompt: 'x', user_id: 'u1' })
    await until(
      'the model call',
      () => model.requests('planner').length > 0 && model.held() === 1 && model.open() === 1,
    )
    // known by the row alone: the worker polls once a second, and parks before that
    await database.query(
      `UPDATE runs SET cancel_requested_at = clock_timestamp(), cancel_reason = '"no"' WHERE run_id = $1`,
      [run.id],
    )
    model.release()
    expect(await api().wait(run.id, deadline())).toMatchObject({ status: 'cancelled' })
    checkInvariants(await runtime.stateOf(run.id))
    expect(await count(database, 'input_requests WHERE run_id = $1', [run.id])).toBe(0)
  })
})
