import { describe, expect, test } from 'vitest'
import type { Graph } from '../../src/graph/build.ts'
import { MasonError } from '../../src/state/errors.ts'
import type { AdmittedRequest } from '../../src/state/run-request.ts'
import type { Action, RuntimeState, Todo } from '../../src/state/runtime-state.ts'
import { checkInvariants } from '../support/invariants.ts'
import { type MemoryRun, memoryRun, planners, type Said, workOn } from '../support/memory-run.ts'
import { callTool, graphWith } from '../support/parts.ts'

const look = (args: unknown = { q: 1 }): Said => ({ tool_calls: [{ name: 'look', arguments: args }] })
const todos = (...wanted: object[]) => ({ name: 'update_todos', arguments: { todos: wanted } })
const task = (id: string, more: object = {}) => ({ id, task: `do ${id}`, ...more })

type Ran = {
  memory: MemoryRun
  state: RuntimeState
  requests: ReturnType<typeof planners>['requests']
  plans: Action[]
  todos: readonly Todo[]
}
let graph: Graph | undefined

/** A run whose planner says this; `look` is a pure tool that answers "seen". */
const planned = async (said: (Said | Error)[], request: Partial<AdmittedRequest> = {}): Promise<Ran> => {
  graph ??= await graphWith([callTool('look', () => 'seen')])
  const memory = memoryRun({ prompt: 'What now?', ...request })
  const models = planners(...said)
  const { state } = await workOn(graph, memory, { models })
  checkInvariants(state)
  const requests = models.requests.filter(({ role }) => role === 'planner')
  const plans = (state.action_history[0] ?? []).filter(({ node }) => node === 'planner') as Action[]
  return { memory, state, requests, plans, todos: (state.todos[0] ?? []) as Todo[] }
}

describe('the planner', () => {
  test('text without calls is the end: the draft goes on as it stands', async () => {
    const { plans, memory } = await planned([{ text: '  Two\n\nlines \u0000 ' }])
    expect(plans[0]).toMatchObject({ result: { draft: '  Two\n\nlines \u0000 ' }, next: ['answer'] })
    expect(memory.ended?.result.answer).toBe('  Two\n\nlines \u0000 ')
  })

  test('text beside calls is the preparation', async () => {
    const { plans } = await planned([{ ...look(), text: 'Let me look.' }, { text: 'Seen.' }])
    expect(plans[0]).toMatchObject({
      preparation: 'Let me look.',
      next: ['look'],
      result: { block: 'parallel', calls: [{ index: 0, tool: 'look', args: { q: 1 } }] },
    })
  })

  test.each([
    [
      'a structure',
      { output: { structure: [{ id: 'a', expected: 'a', type: 'text' as const }] } },
      {},
      'structured_answer',
    ],
    [
      'the tool the request names',
      { output: { tool: 'answer' } },
      { name: 'structured_answer', arguments: {} },
      'answer',
    ],
    ['a structured answer without a structure', {}, { name: 'structured_answer', arguments: {} }, 'answer'],
  ])('finishes through the right output tool: %s', async (_, request, call, tool) => {
    const said = 'name' in call ? { text: 'x', tool_calls: [call as never] } : { text: 'x' }
    expect((await planned([said], request)).plans[0]?.next).toEqual([tool])
  })

  test('offers the tools the request allows, and update_todos', async () => {
    const { requests } = await planned([{ text: 'x' }], { tools: ['look'] })
    expect(requests[0]?.tools?.map(({ name }) => name)).toEqual(['look', 'update_todos', 'finish'])
  })

  test('a reply that only plans is answered, and the same action goes on', async () => {
    const { plans, requests, state } = await planned([
      { tool_calls: [todos(task('a'), task('b', { dependencies: ['a'] }))] },
      look(),
      { text: 'Done.' },
    ])
    expect(plans).toHaveLength(2)
    expect(requests[1]?.messages.at(-1)).toMatchObject({
      role: 'tool',
      content: expect.stringMatching(/plan is updated/),
    })
    expect(plans[0]?.usage.total_tokens).toBe(30)
    // text without calls changes no todo
    expect(state.todos[0]?.map(({ id, status }) => [id, status])).toEqual([
      ['a', 'processing'],
      ['b', 'pending'],
    ])
  })

  test('words beside an open plan announce work; beside a finished plan they are the answer', async () => {
    const open = await planned([
      { text: 'First a plan.', tool_calls: [todos(task('a'))] },
      look(),
      { text: 'Seen.' },
    ])
    expect(open.memory.ended?.result.answer).toBe('Seen.')
    const closed = await planned([
      { text: 'All done.', tool_calls: [todos(task('a', { status: 'completed' }))] },
    ])
    expect(closed.memory.ended?.result.answer).toBe('All done.')
    expect(closed.requests).toHaveLength(1)
  })

  test('a model that does not stop planning gets its text as the answer, or fails', async () => {
    const worded = await planned([{ text: 'I plan.', tool_calls: [todos(task('a'))] }])
    expect(worded.memory.ended?.result.answer).toBe('I plan.')
    const silent = await planned([{ tool_calls: [todos(task('a'))] }])
    expect(silent.memory.ended?.outcome).toMatchObject({ status: 'failed', reason: 'bad_tool_call' })
  })

  test('a cycle among tasks goes back to the model, and nothing of that reply counts', async () => {
    const cycle = todos(task('a', { dependencies: ['b'] }), task('b', { dependencies: ['a'] }))
    const {
      requests,
      todos: after,
      plans,
    } = await planned([
      { tool_calls: [todos(task('lost')), cycle] },
      { ...look(), text: 'Looking.' },
      { text: 'Done.' },
    ])
    expect(JSON.stringify(requests[1]?.messages)).toMatch(/cycle: a -> b -> a/)
    expect(after).toEqual([])
    expect(plans[0]?.result.exchange).toHaveLength(1)
  })

  test.each([
    ['bad JSON', look('{"q":'), /not a JSON object/],
    ['an unknown tool', { tool_calls: [{ name: 'fly', arguments: {} }] }, /there is no tool "fly"/],
    ['an empty reply', { text: '  ' }, /the reply was empty/],
  ])('%s is corrected within the same action', async (_, said, message) => {
    const { plans, requests } = await planned([said, { text: 'Then so.' }])
    expect(plans).toHaveLength(1)
    expect(plans[0]?.usage.total_tokens).toBe(30)
    expect(requests[1]?.messages.at(-1)).toMatchObject({
      role: 'user',
      content: expect.stringMatching(message),
    })
    const broken = requests[1]?.messages.filter(
      (message) => message.role === 'assistant' && message.content === '' && !message.tool_calls,
    )
    expect(broken).toEqual([])
  })

  test('each call of a refused reply is answered, as the chat format demands', async () => {
    const two = {
      tool_calls: [
        { name: 'look', arguments: {} },
        { name: 'fly', arguments: {} },
      ],
    }
    const { requests } = await planned([two, { text: 'No.' }])
    const added = requests[1]?.messages.slice(requests[0]?.messages.length)
    expect(added?.map(({ role }) => role)).toEqual(['assistant', 'tool', 'tool', 'user'])
  })

  test('after three corrections the run fails with the whole exchange and the tokens of all replies', async () => {
    const { memory, plans, requests, state } = await planned([{ text: 'Hm.', ...look('{') }])
    expect(requests).toHaveLength(4)
    expect(memory.ended?.outcome).toMatchObject({
      status: 'failed',
      reason: 'bad_tool_call',
      error: { node: 'planner' },
    })
    expect(plans[0]?.usage.total_tokens).toBe(60)
    expect(state.usage[0]?.total_tokens).toBe(60)
    const { exchange, dialect } = (plans[0]?.result ?? {}) as { exchange: object[]; dialect: string }
    expect(dialect).toBe('tools')
    expect(exchange).toHaveLength(4)
    expect(exchange[0]).toEqual({
      wrote: 'Hm.\nlook({)',
      put_back: expect.stringMatching(/not a JSON object/),
    })
  })

  test('tokens of replies before a failure of the model are not lost', async () => {
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
    const down = new MasonError('model_unavailable', 'down', { detail: { usage } })
    const { plans } = await planned([look('{'), down])
    expect(plans[0]?.usage.total_tokens).toBe(17)
  })

  test('streamed text of a refused reply is voided by a later attempt', async () => {
    const { memory } = await planned([{ text: 'Bad.', ...look('{') }, { text: 'Good.' }])
    expect(memory.texts.map(({ attempt, text }) => [attempt, text])).toEqual([
      [1, 'Bad.'],
      [2, 'Good.'],
    ])
  })

  test('is asked for a new plan when a step brought nothing new', async () => {
    const { requests, memory } = await planned([look(), look(), { text: 'Nothing new.' }])
    expect(JSON.stringify(requests[1]?.messages)).not.toMatch(/No progress/)
    expect(requests[2]?.messages.at(-1)?.content).toMatch(
      /No progress:\n<data-\w+ agent>\nlook was called.*twice\n/,
    )
    expect(memory.ended?.outcome.reason).toBe('answered')
    expect((await planned([look()])).memory.ended?.outcome.reason).toBe('no_progress')
  })
})
