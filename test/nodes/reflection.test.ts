import { describe, expect, test } from 'vitest'
import { finishTodos, startTodos } from '../../src/nodes/planner/todo-progress.ts'
import { reflectByRule, toReflection } from '../../src/nodes/reflection/judge.ts'
import { updateTodoStatuses } from '../../src/nodes/reflection/reflection.node.ts'
import type { AnsweredCall } from '../../src/state/calls.ts'
import type { Todo } from '../../src/state/runtime-state.ts'
import { answer, todo } from '../support/actions.ts'
import { memoryRun, modelsOf, type Said, workOn } from '../support/memory-run.ts'
import { callTool, graphWith } from '../support/parts.ts'

const now = new Date('2025-01-01T12:00:00.000Z')
const answered = (id: number, tool: string, error?: string): AnsweredCall => ({
  call: { index: 0, id: 'c', tool, args: {} },
  action: { id, ...answer(tool, 0, error ? { text: error, is_error: true } : { text: 'fine' }) },
})
const judged = {
  reasoning: '',
  is_sufficient: true,
  knowledge_gap: '',
  follow_up_queries: [],
  judged: [],
  todos: [],
}
const move = (
  todos: Todo[],
  calls: AnsweredCall[],
  said: { id: string; status: Todo['status'] }[] = [],
  isPure = false,
) => updateTodoStatuses(todos, calls, { ...judged, todos: said }, now, { isPure: () => isPure })

describe('reflection by rule', () => {
  test('rates results without error as good', () => {
    expect(reflectByRule([answered(4, 'look')])).toMatchObject({
      is_sufficient: true,
      knowledge_gap: '',
      judged: [{ id: 4, relevance: 0.7, important: true }],
    })
  })

  test('names the errors as the gap, in few words however many there are', () => {
    const found = reflectByRule([answered(4, 'look'), answered(5, 'send', 'no answer')])
    expect(found).toMatchObject({ is_sufficient: false, knowledge_gap: 'send: no answer' })
    expect(found.judged[1]).toEqual({ id: 5, relevance: 0.1, important: false })
    const many = reflectByRule(Array.from({ length: 300 }, (_, id) => answered(id, 'send', 'x'.repeat(1000))))
    expect(many.knowledge_gap.length).toBeLessThanOrEqual(4000)
  })
})

describe("reflection by a model's reply", () => {
  test('fills what it left out and drops actions it made up', () => {
    const reply = {
      is_sufficient: false,
      judged: [
        { id: 4, relevance: 0.8 },
        { id: 99, relevance: 1 },
      ],
    }
    expect(toReflection(reply, [answered(4, 'look')])).toEqual({
      reasoning: '',
      is_sufficient: false,
      knowledge_gap: '',
      follow_up_queries: [],
      judged: [{ id: 4, relevance: 0.8, important: true }],
      todos: [],
    })
  })
})

describe('moving tasks after their calls', () => {
  const inWork = (more: Partial<Todo> = {}) => todo('a', { status: 'processing', ...more })

  test('one good result completes a task in work, only failures fail the try', () => {
    expect(move([inWork()], [answered(1, 'look', 'no'), answered(2, 'look')])[0]).toMatchObject({
      status: 'completed',
      completion_details: { tool_used: 'look' },
    })
    expect(move([inWork()], [answered(1, 'look', 'no answer')])[0]).toMatchObject({
      status: 'pending',
      retry: 1,
      retry_after: '2025-01-01T12:00:01.000Z',
      error_history: [{ tool_used: 'look', error: 'no answer' }],
    })
  })

  test('its own tools decide where a task suggests some', () => {
    const calls = [answered(1, 'look'), answered(2, 'send', 'no')]
    expect(move([inWork({ suggested_tools: ['send'] })], calls)[0]?.status).toBe('pending')
  })

  test('a pure tool is not waited for', () => {
    expect(move([inWork()], [answered(1, 'look', 'no')], [], true)[0]).toMatchObject({
      retry: 1,
      retry_after: null,
    })
  })

  test('out of retries a task has failed', () => {
    expect(move([inWork({ retry: 3 })], [answered(1, 'look', 'no')])[0]?.status).toBe('failed')
  })

  test('what the model says goes before the rules; tasks it does not know are left alone', () => {
    const said = [
      { id: 'a', status: 'failed' as const },
      { id: 'unknown', status: 'completed' as const },
    ]
    expect(move([inWork()], [answered(1, 'look')], said)[0]).toMatchObject({ status: 'pending', retry: 1 })
    expect(move([inWork()], [answered(1, 'look')], [{ id: 'a', status: 'processing' }])).toEqual([])
  })

  test('only tasks that changed are given', () => {
    expect(move([todo('idle'), inWork()], [answered(1, 'look')]).map(({ id }) => id)).toEqual(['a'])
  })
})

describe("the planner's moves of tasks", () => {
  const call = (tool: string) => ({ index: 0, id: 'c', tool, args: {} })

  test('calls start the ready tasks that suggest their tool, else the first that is ready', () => {
    const todos = [todo('a'), todo('b', { suggested_tools: ['send'] }), todo('c', { dependencies: ['a'] })]
    const started = (tool: string) =>
      startTodos(todos, [call(tool)])
        .filter(({ status }) => status === 'processing')
        .map(({ id }) => id)
    expect(started('send')).toEqual(['b'])
    expect(started('look')).toEqual(['a'])
  })

  test('nothing is started while a task is in work', () => {
    const todos = [todo('a', { status: 'processing' }), todo('b')]
    expect(startTodos(todos, [call('look')])).toBe(todos)
  })

  test('finishing completes what was open and not held up by a failed task', () => {
    const todos = [
      todo('a', { status: 'processing' }),
      todo('b', { dependencies: ['a'] }),
      todo('broken', { status: 'failed' }),
      todo('c', { dependencies: ['broken'] }),
    ]
    const after = finishTodos(todos, { now, tool: 'answer', output: 'x' })
    expect(after.map(({ status }) => status)).toEqual(['completed', 'completed', 'failed', 'pending'])
  })
})

describe('the reflection node', () => {
  const ran = async (pure: boolean, said: Said, fails = false) => {
    const tool = callTool('look', () => (fails ? Promise.reject(new Error('no')) : 'seen'), pure)
    const memory = memoryRun({ prompt: 'What?' })
    const models = modelsOf(({ role }, nth) =>
      role === 'reflection'
        ? said
        : nth === 1
          ? { tool_calls: [{ name: 'look', arguments: {} }] }
          : { text: 'Done.' },
    )
    await workOn(await graphWith([tool]), memory, { models })
    return {
      asked: models.requests.filter(({ role }) => role === 'reflection'),
      appended: memory.rows.find(({ body }) => body.node === 'reflection')?.body,
      status: memory.ended?.outcome.status,
    }
  }
  const good = {
    text: JSON.stringify({ is_sufficient: true, reasoning: 'It fits.', judged: [{ id: 4, relevance: 0.9 }] }),
  }

  test('asks no model where every result came without error from a pure tool', async () => {
    const { asked, appended } = await ran(true, good)
    expect(asked).toEqual([])
    expect(appended?.result).toMatchObject({ by: 'rules', is_sufficient: true })
  })

  test('asks a model about what failed, and about tools that change something', async () => {
    expect((await ran(true, good, true)).asked).toHaveLength(1)
    const { asked, appended } = await ran(false, good)
    expect(asked[0]?.messages[1]?.content).toMatch(
      /# Request\nWhat\?\n\n# Results\n## Action 4: look \{\}\n<data-\w+ origin="tool" trusted="no">\nseen\n/,
    )
    expect(appended).toMatchObject({
      preparation: 'It fits.',
      result: { by: 'model', judged: [{ id: 4, relevance: 0.9, important: true }] },
      usage: { total_tokens: 15 },
    })
  })

  test.each([
    ['no JSON', 'I think so'],
    ['JSON of another shape', '{"ok":1}'],
    ['nothing', ''],
  ])('falls back to rules when the reply is %s, and counts its tokens', async (_, text) => {
    const { appended, status } = await ran(false, { text })
    expect(appended).toMatchObject({
      result: { by: 'rules', is_sufficient: true },
      usage: { total_tokens: 15 },
    })
    expect(status).toBe('completed')
  })

  test('reads JSON in a code fence and beside words', async () => {
    for (const text of [`\`\`\`json\n${good.text}\n\`\`\``, `Here it is: ${good.text} – done.`])
      expect((await ran(false, { text })).appended?.result.by).toBe('model')
  })
})
