import { describe, expect, test } from 'vitest'
import { renderAtif } from '../../../src/features/trajectories/atif.ts'
import { renderOpenAiExample } from '../../../src/features/trajectories/openai.ts'
import type { TrajectorySource } from '../../../src/features/trajectories/turn-replies.ts'
import type { RunView } from '../../../src/state/run-view.ts'
import type { ActionBody, Json, Todo } from '../../../src/state/runtime-state.ts'
import { answer, body, plan, stateOf, todo } from '../../support/actions.ts'
import { readAtif, readOpenAiExample } from '../../support/trajectory-formats.ts'

const usage = { prompt_tokens: 30, completion_tokens: 4, total_tokens: 34 }
const tools = ['calculate', 'read_file', 'update_todos'].map((name) => ({
  type: 'function' as const,
  function: { name, parameters: { type: 'object' } },
}))

const sourceOf = (
  bodies: readonly ActionBody[],
  {
    cost = [],
    patch = {},
    ...more
  }: Partial<Pick<RunView, 'answer' | 'turn'>> &
    Partial<Pick<TrajectorySource, 'cost'>> & { patch?: object } = {},
): TrajectorySource => {
  const run = {
    ...{ id: 'run_1', session_id: 's1', turn: 1, prompt: 'What is six times seven?', answer: null, usage },
    ...{ status: 'completed', finish_reason: 'answered', created_at: '2026-11-27T10:00:00.000Z' },
    ...more,
  }
  return { run: run as unknown as RunView, state: { ...stateOf(bodies), ...patch }, tools, cost }
}
const read = (source: TrajectorySource) => ({
  example: readOpenAiExample(renderOpenAiExample(source)),
  atif: readAtif(renderAtif(source)),
})
const withResult = (one: ActionBody, result: Record<string, Json>, more: Partial<ActionBody> = {}) => ({
  ...{ ...one, ...more },
  result: { ...one.result, ...result },
})
const finishing = (draft: string): ActionBody =>
  withResult(body('planner', { next: ['answer'] }), { draft, model: 'm' })

test('an id that a model gives twice is made unique, so that each result belongs to one call', () => {
  const again = (index: number) => [
    withResult(plan([{ tool: 'calculate', args: { expression: `${index}` }, id: 'call_0' }]), { model: 'm' }),
    answer('calculate', 0, { text: `result ${index}` }),
  ]
  const { example, atif } = read(sourceOf([body('load-session'), ...again(1), ...again(2), body('answer')]))
  const messages = example.messages as { tool_calls?: { id: string }[]; tool_call_id?: string }[]
  const ids = messages.flatMap(({ tool_calls = [] }) => tool_calls.map(({ id }) => id))
  expect(ids).toEqual(['call_0', expect.stringMatching(/^call_0_\d+$/)])
  expect(messages.flatMap(({ tool_call_id }) => tool_call_id ?? [])).toEqual(ids)
  expect(JSON.stringify(atif)).toContain(ids[1])
})

describe('the exports of a run that called its tools natively', () => {
  const calls = withResult(
    plan([{ tool: 'calculate', args: { expression: '6*7' }, id: 'call_a' }]),
    { reasoning: 'Easy.', model: 'm', dialect: 'tools' },
    { preparation: 'I compute it.', usage },
  )
  const result = {
    ...answer('calculate', 0, { text: '42\u2028<b>"' }),
    relevance: 0.7,
  }
  const source = sourceOf([body('load-session'), calls, result, finishing('It is 42.'), body('answer')], {
    answer: 'It is 42.',
    cost: [
      { currency: 'EUR', cost: 0.000005 },
      { currency: 'USD', cost: 0.3 },
    ],
    patch: { todos: [[todo('sum', { status: 'completed' })] as Todo[]] },
  })

  test('are chat messages whose calls and results pair by id, with the columns that a reward is made of', () => {
    expect(read(source).example).toEqual({
      messages: [
        { role: 'user', content: 'What is six times seven?' },
        {
          role: 'assistant',
          content: 'I compute it.',
          tool_calls: [
            {
              id: 'call_a',
              type: 'function',
              function: { name: 'calculate', arguments: '{"expression":"6*7"}' },
            },
          ],
        },
        { role: 'tool', tool_call_id: 'call_a', content: '42\u2028<b>"' },
        { role: 'assistant', content: 'It is 42.' },
      ],
      ...{ tools, run_id: 'run_1', status: 'completed', finish_reason: 'answered', usage },
      relevance: [{ tool_call_id: 'call_a', relevance: 0.7 }],
      todos: [{ id: 'sum', status: 'completed' }],
      cost: source.cost,
    })
  })

  test('are steps of the agent with what it thought, called, got back and cost', () => {
    const { agent, steps, final_metrics } = read(source).atif
    expect(agent).toMatchObject({ name: 'mason', model_name: 'm', tool_definitions: tools })
    expect(steps.map(({ source: from, message }) => [from, message])).toEqual([
      ['user', 'What is six times seven?'],
      ['system', 'load-session'],
      ['agent', 'I compute it.'],
      ['agent', 'It is 42.'],
      ['system', 'answer'],
    ])
    expect(steps[2]).toEqual({
      ...{
        step_id: 3,
        source: 'agent',
        message: 'I compute it.',
        model_name: 'm',
        reasoning_content: 'Easy.',
      },
      tool_calls: [{ tool_call_id: 'call_a', function_name: 'calculate', arguments: { expression: '6*7' } }],
      observation: {
        results: [
          {
            ...{ source_call_id: 'call_a', content: '42\u2028<b>"' },
            extra: { action_id: 3, node: 'calculate', relevance: 0.7 },
          },
        ],
      },
      metrics: { prompt_tokens: 30, completion_tokens: 4 },
      extra: { action_id: 2, node: 'planner', relevance: 0.5, usage },
    })
    expect(final_metrics).toMatchObject({
      ...{ total_prompt_tokens: 30, total_completion_tokens: 4, total_cost_usd: 0.3 },
      extra: { finish_reason: 'answered', todos: [{ id: 'sum', status: 'completed' }], cost: source.cost },
    })
  })

  test('have the answer as the user got it where another step worded it', () => {
    const { example, atif } = read({ ...source, run: { ...source.run, answer: '42!' } })
    expect(example.messages.at(-1)).toEqual({ role: 'assistant', content: '42!' })
    expect(atif.steps.at(-1)).toEqual({ step_id: 6, source: 'agent', message: '42!' })
  })

  test('have the calls that changed the plan, which are answered too', () => {
    const planned = withResult(calls, { plan_calls: [{ todos: [{ id: 'sum' }] }] })
    const { example, atif } = read(sourceOf([planned, answer('calculate', 0, { text: '42' })]))
    expect(example.messages.slice(2)).toEqual([
      { role: 'tool', tool_call_id: 'call_a', content: '42' },
      { role: 'tool', tool_call_id: '1_plan_0', content: 'The plan is updated.' },
    ])
    expect(atif.steps[1]?.tool_calls?.at(-1)).toEqual({
      ...{ tool_call_id: '1_plan_0', function_name: 'update_todos', arguments: { todos: [{ id: 'sum' }] } },
    })
  })
})

test('the exports of a run that was stopped, or waits, have a result of each call that has one', () => {
  const failed = {
    ...answer('read_file', 0, { text: 'Error: no such file', is_error: true }),
    relevance: 0.1,
  }
  const stopped = plan([{ tool: 'read_file' }, { tool: 'calculate' }], 'sequential', 'stop')
  const { example, atif } = read(sourceOf([stopped, failed, plan([{ tool: 'calculate' }])]))
  expect(example.messages.flatMap((one) => (one.role === 'tool' ? [one.content] : []))).toEqual([
    ...['Error: no such file', 'Not run: step 0 failed.', '[no result]'],
  ])
  expect(atif.steps.map(({ observation }) => observation?.results.map(({ content }) => content))).toEqual([
    ...[undefined, ['Error: no such file', 'Not run: step 0 failed.'], []],
  ])
  expect(atif.steps[1]?.observation?.results[0]?.extra).toMatchObject({ is_error: true, relevance: 0.1 })
})

test('the exports of a run whose model wrote the language have its calls as calls, and its refused replies aside', () => {
  const exchange = [{ wrote: '<execute_tools />', put_back: '<result index="0">Error: no call</result>' }]
  const wrote =
    '<parallel>\n<x><calculate>6*7</calculate></x>\n<mason_server><update_todos>{"goal":"g"}</update_todos></mason_server>\n</parallel>\n<execute_tools />'
  const asking = withResult(
    plan([{ tool: 'calculate', args: { expression: '6*7' } }]),
    { dialect: 'xml', wrote, exchange },
    { preparation: 'I look.' },
  )
  const { example, atif } = read(sourceOf([asking, answer('calculate', 0, { text: '42' })], { answer: '42' }))
  expect(example.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'tool', 'assistant'])
  expect(JSON.stringify(example)).not.toContain('no call')
  expect(atif.steps[1]).toMatchObject({ message: 'I look.', extra: { exchange } })
  expect(atif.steps[1]?.tool_calls?.map((call) => [call.function_name, call.arguments])).toEqual([
    ['calculate', { expression: '6*7' }],
    ['update_todos', { goal: 'g' }],
  ])
})

test('the exports of a later turn begin with the earlier ones, which are not learned again, and with what was known', () => {
  const talk = (content: string, role: string, turn: number) => ({ role, content, turn })
  const patch = {
    action_history: [[], []],
    chat_history: [talk('Hi', 'user', 1), talk('Hello', 'assistant', 1), talk('And?', 'user', 2)],
    memory: [{ content: 'Likes tea.' }],
    origin_files: [{ name: 'a.csv', type: 'text/csv' }],
  }
  const { example, atif } = read(sourceOf([body('load-session')], { turn: 2, patch }))
  const known = 'Remembered of the user:\n- Likes tea.\nFiles:\n- a.csv'
  expect(example.messages).toEqual([
    { role: 'system', content: known },
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: 'Hello', weight: 0 },
    { role: 'user', content: 'What is six times seven?' },
  ])
  expect(atif.steps.map(({ message, is_copied_context }) => [message, is_copied_context])).toEqual([
    ...[
      [known, true],
      ['Hi', true],
      ['Hello', true],
      ['What is six times seven?', undefined],
    ],
  ])
})
