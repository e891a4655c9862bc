// backends: either

import { fileURLToPath } from 'node:url'
import { describe, expect } from 'vitest'
import { sumUsage } from '../../src/state/token-usage.ts'
import type { FakeModel } from '../support/fake-model/fake-model.ts'
import { type GateServer, startGate } from '../support/gate-server.ts'
import { closing, runtimeTest } from '../support/integration-test.ts'
import { until } from '../support/runs.ts'
import { calling, say } from '../support/script.ts'
import { deadline, eventsOf, nodesOf } from '../support/test-runtime.ts'

const gateTools = fileURLToPath(new URL('../support/gate-tools', import.meta.url))

const test = runtimeTest
  .extend('runtimeOptions', { scope: 'file' }, { toolFolders: [gateTools] })
  .extend('gate', { scope: 'file' }, closing(startGate))
test.beforeEach(({ gate }) => gate.reset())

const knock = (gate: GateServer, key: string): [string, object] => ['gate_write', { url: gate.url, key }]
const compute = (n: number): [string, object] => ['calculate', { expression: `${n}+${n}` }]
/** Something new at every step, without end. */
const endless = (model: FakeModel) =>
  say(model, { planner: Array.from({ length: 50 }, (_, n) => calling(compute(n))) })

describe('limits end a run as completed, with what there is and without a further call', () => {
  test.for([2, 6, 7, 8])('max_steps: %i', async (max_steps, { model, runtime }) => {
    endless(model)
    const run = await runtime.complete({ prompt: 'on and on', limits: { max_steps } })
    expect(run).toMatchObject({ status: 'completed', finish_reason: 'steps', error: null })
    expect(run.answer).toMatch(/limit of steps was reached/)
    expect((await runtime.stateOf(run.id)).action_history[0]?.length).toBeLessThanOrEqual(max_steps)
  })

  test('max_tokens', async ({ model, runtime }) => {
    endless(model)
    const run = await runtime.complete({ prompt: 'on and on', limits: { max_tokens: 40 } })
    expect(run).toMatchObject({ status: 'completed', finish_reason: 'tokens', usage: { total_tokens: 45 } })
    expect(run.answer).toMatch(/- 1\+1 = 2/)
  })

  test('no progress: the same call three times', async ({ model, runtime }) => {
    say(model, { planner: [calling(compute(1))] })
    const run = await runtime.complete({ prompt: 'again' })
    expect(run).toMatchObject({ status: 'completed', finish_reason: 'no_progress' })
    expect(run.answer).toMatch(/kept coming back/)
    expect(JSON.stringify(model.requests('planner').at(-1)?.messages)).toMatch(/Make a different plan/)
  })
})

describe('usage', () => {
  test('of a run is the sum of its actions, corrections and all roles included', async ({
    model,
    gate,
    runtime,
  }) => {
    const usage = { prompt_tokens: 100, completion_tokens: 7, total_tokens: 107 }
    say(model, {
      planner: [
        { ...calling(['nothing', {}]), usage },
        { ...calling(knock(gate, 'a')), usage },
        { text: '42', usage },
      ],
      reflection: [{ text: '{"is_sufficient":true}', usage }],
      output: [{ text: '{"answer":"Forty-two"}', usage }],
    })
    const run = await runtime.complete({ prompt: 'count', output: { style: 'in words' } })
    expect(run).toMatchObject({ answer: 'Forty-two', usage: { prompt_tokens: 500, total_tokens: 535 } })
    const actions = (await runtime.stateOf(run.id)).action_history[0] ?? []
    expect(sumUsage(actions.map((action) => action.usage))).toEqual(run.usage)
  })
})

describe('waiting', () => {
  test('a task that failed and may be retried later queues the run again, and it goes on then', async ({
    model,
    gate,
    runtime,
  }) => {
    gate.onKnock((_, nth) => ({ text: nth === 1 ? 'refused: busy' : 'open' }))
    const planned = calling(knock(gate, 'door'))
    const plan = {
      name: 'update_todos',
      arguments: { todos: [{ id: 'a', task: 'open the door', suggested_tools: ['gate_write'] }] },
    }
    say(model, {
      planner: [{ tool_calls: [plan, ...(planned.tool_calls ?? [])] }, planned, { text: 'It is open.' }],
      reflection: [
        { text: '{"is_sufficient":false,"knowledge_gap":"the door is shut"}' },
        { text: '{"is_sufficient":true,"todos":[{"id":"a","status":"completed","reason":"it is open"}]}' },
      ],
    })
    const run = await runtime.complete({ prompt: 'open' })
    expect(run).toMatchObject({ status: 'completed', answer: 'It is open.' })
    const state = await runtime.stateOf(run.id)
    expect(state.todos[0]).toMatchObject([
      { status: 'completed', retry: 1, error_history: [{ error: expect.stringMatching(/^Error: busy/) }] },
    ])
    // who waits may hear of the end before its worker has let go
    const lefts = await until('the worker to let go', () => {
      const found = runtime.held.filter((entry) => entry.run.claimed.run_id === run.id)
      return found.some(({ left }) => left === 'ended') && found.map(({ left }) => left)
    })
    expect(lefts).toEqual(['requeued', 'ended'])
    expect(nodesOf(state).filter((node) => node === 'gate_write')).toHaveLength(2)
  })

  test('a question parks the run; the answer is the result of that very call, which is not decided anew', async ({
    model,
    runtime,
  }) => {
    say(model, {
      planner: [
        calling(compute(3), ['ask_user', { question: 'Which year?', options: ['2024', '2025'] }]),
        { text: '2025 it is.' },
      ],
    })
    const waiting = await runtime.complete({ prompt: 'ask me' })
    expect(waiting).toMatchObject({
      status: 'input_required',
      input_request: { question: 'Which year?', options: ['2024', '2025'] },
    })
    const asked = model.requests('planner').length
    await runtime.of('default').answer(waiting.id, waiting.input_request?.id ?? '', '2025')
    const run = await runtime.of('default').wait(waiting.id, deadline())
    expect(run).toMatchObject({ status: 'completed', answer: '2025 it is.', input_request: null })
    const state = await runtime.stateOf(run.id)
    expect(nodesOf(state).slice(3)).toEqual([
      'calculate',
      'ask_user',
      'reflection',
      'planner',
      'answer',
      'end',
    ])
    expect(state.action_history[0]?.find(({ node }) => node === 'ask_user')?.result).toMatchObject({
      text: '2025',
      call: { index: 1 },
    })
    expect(model.requests('planner').length).toBe(asked + 1)
    const ids = (await eventsOf(runtime.of('default'), run.id)).flatMap((event) =>
      event.event === 'action' ? [event.id] : [],
    )
    expect(ids).toEqual(ids.map((_, at) => at + 1))
  })
})
