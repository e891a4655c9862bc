// backends: both

import { describe, expect } from 'vitest'
import { unique } from '../../support/backend.ts'
import type { FakeModel } from '../../support/fake-model/fake-model.ts'
import { adminToken, runtimeTest as test } from '../../support/integration-test.ts'
import { eventsOf, nodesOf } from '../../support/test-runtime.ts'

/** What the planner's model answers from now on, in this order; the last answer repeats. */
const planner = (model: FakeModel, ...replies: object[]) => {
  model.reset()
  model.script({ planner: replies } as never)
}

describe('a run', () => {
  test('goes from the queue through the graph to the answer, one action a node', async ({
    model,
    runtime,
  }) => {
    planner(
      model,
      { tool_calls: [{ name: 'calculate', arguments: '{"expression":"6*7"}' }] },
      { text: 'It is 42.' },
    )
    const run = await runtime.complete({ prompt: 'What is six times seven?' })
    expect(run).toMatchObject({
      status: 'completed',
      finish_reason: 'answered',
      answer: 'It is 42.',
      turn: 1,
      error: null,
    })
    const state = await runtime.stateOf(run.id)
    expect(nodesOf(state)).toEqual([
      'load-session',
      'user-context',
      'planner',
      'calculate',
      'reflection',
      'planner',
      'answer',
      'end',
    ])
    expect(run.usage).toEqual(state.usage[0])
    expect(run.usage.total_tokens).toBeGreaterThan(0)
  })

  test('has a trajectory: what was thought, called, put back and answered', async ({
    model,
    runtime,
    server,
  }) => {
    const replies = [
      { text: 'I compute it.', tool_calls: [{ name: 'calculate', arguments: '{"expression":"6*7"}' }] },
      { text: 'It is 42.' },
    ]
    planner(model, ...replies)
    const { id } = await runtime.complete({ prompt: 'What is six times seven?' })
    const read = (path: string) => server.call('GET', `/v1/runs/${path}`, { token: adminToken })
    const { status, text, headers } = await read(`${id}/trajectory?format=xml`)
    expect([status, headers.get('content-type'), headers.get('x-mason-trajectory')]).toEqual([
      ...[200, 'text/plain; charset=utf-8', 'rendered'],
    ])
    expect(text).toMatch(
      /^<think>I compute it\.<\/think>\n<mason_server><calculate>\{"expression":"6\*7"\}<\/calculate><\/mason_server>\n<execute_tools \/>\n<result index="0">.*42.*<\/result>\n<answer>It is 42\.<\/answer>$/,
    )
    const refused = await read(`${id}/trajectory?format=yaml`)
    expect([refused.status, refused.text]).toEqual([422, expect.stringContaining('format')])
    expect((await read('run_none/trajectory')).status).toBe(404)
  })

  test('sends each action once, in order, and ends its stream with done', async ({ model, runtime }) => {
    planner(model, { text: 'Hello.' })
    const run = await runtime.complete({ prompt: 'Say hello' })
    const events = await eventsOf(runtime.of('default'), run.id)
    const ids = events.flatMap((event) => (event.event === 'action' ? [event.id] : []))
    expect(ids).toEqual([1, 2, 3, 4, 5])
    expect(events.at(-1)).toEqual({ event: 'done', data: run })
    const resumed = await eventsOf(runtime.of('default'), run.id, 3)
    expect(resumed.flatMap((event) => (event.event === 'action' ? [event.id] : []))).toEqual([4, 5])
  })

  test('inherits its session: ids go on, lists get one more entry, earlier turns are shown to the planner', async ({
    model,
    runtime,
  }) => {
    const session_id = unique('s')
    planner(model, { text: 'First.' })
    await runtime.complete({ prompt: 'one', session_id })
    planner(model, { text: 'Second.' })
    const second = await runtime.complete({ prompt: 'two', session_id })
    expect(second.turn).toBe(2)
    const state = await runtime.stateOf(second.id)
    expect(state.prompts).toEqual(['one', 'two'])
    expect(state.chat_history.map(({ role, content, turn }) => [role, content, turn])).toEqual([
      ['user', 'one', 1],
      ['assistant', 'First.', 1],
      ['user', 'two', 2],
      ['assistant', 'Second.', 2],
    ])
    expect(model.requests('planner').at(-1)?.messages).toContainEqual({
      role: 'assistant',
      content: expect.stringMatching(/^<(data-\w+) agent>\nFirst\.\n<\/\1>$/),
    })
  })
})
