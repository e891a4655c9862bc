// backends: either

import { afterEach, describe, expect } from 'vitest'
import { systemClock } from '../../src/infra/lib/system-clock.ts'
import type { Models } from '../../src/state/ports/models.ts'
import type { FakeReply } from '../support/fake-model/fake-model.ts'
import { runtimeTest } from '../support/integration-test.ts'
import { patient } from '../support/models.ts'
import { openModels } from '../support/one-server.ts'
import { calling, say } from '../support/script.ts'
import { nodesOf } from '../support/test-runtime.ts'

/** Hasty only where a model is never to be waited for to the end: a busy machine answers none within it. */
let isHasty = false
const totalMs = 3000

const test = runtimeTest.extend('runtimeOptions', { scope: 'file' }, ({ model }) => {
  const open = (clocks: typeof patient) =>
    openModels({
      ...{ baseUrl: model.baseUrl, apiKey: 'test', model: 'fake', clocks, clock: systemClock },
      retry: { attempts: 2, baseMs: 5, maxMs: 20 },
    })
  const [hasty, calm] = [open({ firstByteMs: 600, idleMs: 600, totalMs }), open(patient)]
  const models: Models = { ...calm, call: (...asked) => (isHasty ? hasty : calm).call(...asked) }
  return { models }
})

afterEach(() => {
  isHasty = false
})

const status = (code: number): FakeReply => ({ failure: { status: code } })

describe('a model that fails', () => {
  test.for<[string, FakeReply, string]>([
    ['refuses the key', status(401), 'model_unauthorized'],
    ['calls the request wrong', status(400), 'model_bad_request'],
    ['never answers', { failure: 'stall_headers' }, 'model_timeout'],
    ['falls silent', { failure: 'stall_after_first_chunk', text: 'Half of an answer.' }, 'model_timeout'],
  ])(
    'and %s ends the run with the code, the node and one end',
    async ([_, failure, code], { model, runtime }) => {
      say(model, { planner: [failure] })
      isHasty = code === 'model_timeout'
      const run = await runtime.complete({ prompt: 'hello' })
      expect(run).toMatchObject({
        status: 'failed',
        finish_reason: null,
        answer: null,
        error: { code, node: 'planner' },
      })
      const state = await runtime.stateOf(run.id)
      expect(nodesOf(state)).toEqual(['load-session', 'user-context', 'planner', 'end'])
      expect(state.action_history[0]?.at(-1)?.result).toEqual({ status: 'failed', reason: code })
    },
  )

  test.for<[string, FakeReply, string]>([
    ['limits our rate', status(429), 'model_rate_limited'],
    ['is down', status(503), 'model_unavailable'],
    ['is cut off', { failure: 'cut', text: 'Half of an answer.' }, 'model_unavailable'],
    ['sends web pages', { failure: 'garbage' }, 'Welcome to nginx'],
  ])(
    'and %s is waited for until the time of the run is up; its tries leave no action',
    async ([_, failure, code], { model, runtime }) => {
      say(model, { planner: [failure] })
      const run = await runtime.complete({ prompt: 'hello', limits: { timeout_ms: 2500 } })
      expect(run).toMatchObject({
        status: 'failed',
        finish_reason: null,
        error: { code: 'model_unavailable', node: 'planner', detail: { first: expect.anything() } },
      })
      expect(JSON.stringify(run.error?.detail)).toContain(code)
      expect(nodesOf(await runtime.stateOf(run.id))).toEqual(['load-session', 'user-context', 'end'])
    },
  )

  test.for<[string, FakeReply]>([
    ['503', status(503)],
    ['429', status(429)],
    ['a reset', { failure: 'reset' }],
    ['a cut', { failure: 'cut', text: 'Half of an answer.' }],
  ])('once, by %s, is asked again', async ([_, failure], { model, runtime }) => {
    say(model, { planner: [failure, { text: 'Here I am.' }] })
    expect(await runtime.complete({ prompt: 'hello' })).toMatchObject({
      status: 'completed',
      answer: 'Here I am.',
    })
  })

  test('in reflection fails the run at reflection; what was done stays', async ({ model, runtime }) => {
    say(model, {
      planner: [calling(['calculate', { expression: '1/0' }])],
      reflection: [status(401)],
    })
    const run = await runtime.complete({ prompt: 'divide' })
    expect(run).toMatchObject({ status: 'failed', error: { code: 'model_unauthorized', node: 'reflection' } })
    expect(nodesOf(await runtime.stateOf(run.id)).slice(-3)).toEqual(['calculate', 'reflection', 'end'])
  })

  test('to make a call that checks, after three corrections, fails with the exchange and all its tokens', async ({
    model,
    runtime,
  }) => {
    say(model, { planner: [{ tool_calls: [{ name: 'calculate', arguments: '{"expression":' }] }] })
    const asked = model.requests('planner').length
    const run = await runtime.complete({ prompt: 'calculate' })
    expect(run).toMatchObject({
      status: 'failed',
      error: { code: 'bad_tool_call', node: 'planner', detail: { corrections: 4 } },
      usage: { total_tokens: 60 },
    })
    expect(model.requests('planner').length - asked).toBe(4)
  })
})
