import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool } from '../../src/graph/definitions.ts'
import { checkInvariants } from '../support/invariants.ts'
import { type MemoryRun, memoryRun, modelsOf, planners, type Said, workOn } from '../support/memory-run.ts'
import { callTool, graphWith } from '../support/parts.ts'

const nodes = (memory: MemoryRun): string[] => memory.rows.map((row) => row.body.node)
const calls = (...names: string[]): Said => ({
  tool_calls: names.map((name, n) => ({ id: `c${n}`, name, arguments: { n } })),
})

describe('a run of the graph', () => {
  test('appends one action a visit, and its state is the fold of its rows', async () => {
    const graph = await graphWith([callTool('look', () => 'seen')])
    const memory = memoryRun({ prompt: 'look twice' })
    const models = planners(calls('look', 'look'), { text: 'Seen twice.' })
    const { left, run, state } = await workOn(graph, memory, { models })
    expect(left).toBe('ended')
    expect(nodes(memory)).toEqual([
      'load-session',
      'user-context',
      'planner',
      'look',
      'look',
      'reflection',
      'planner',
      'answer',
      'end',
    ])
    expect(run.state).toEqual(state)
    expect(memory.ended?.result.answer).toBe('Seen twice.')
    checkInvariants(state)
  })

  test('tells each call of a model how much time the run has left', async () => {
    const graph = await graphWith([callTool('look', () => 'seen')])
    const memory = memoryRun({ prompt: 'look', limits: { timeout_ms: 5000 } })
    memory.workedMs = 2000
    const models = planners(calls('look'), { text: 'Seen.' })
    let nowMs = 0
    const call: typeof models.call = (request, signal) => {
      nowMs += 1000
      return models.call(request, signal)
    }
    const clock = {
      now: () => new Date(0),
      monotonicMs: () => nowMs,
      sleep: () => new Promise<void>(() => {}),
    }
    await workOn(graph, memory, { models: { ...models, call }, clock })
    expect(models.requests.map(({ timeLeftMs }) => timeLeftMs)).toEqual([3000, 2000])
  })

  /** Works on a run with a worker that dies after each of these numbers of actions, then with one that lives. */
  const withDeaths = async (deaths: readonly number[], impure: boolean) => {
    const done: string[] = []
    const tool = (name: string) => callTool(name, ({ n }) => `${done.push(`${name}${n}`)}`, !impure)
    const graph = await graphWith([tool('left'), tool('right')])
    const memory = memoryRun({ prompt: 'go on' })
    const script = [calls('left', 'right', 'left'), calls('right'), { text: 'Through.' }]
    const said = () =>
      modelsOf(({ role }) => {
        const plans = memory.rows.filter(({ body }) => body.node === 'planner').length
        return role === 'planner' ? (script[plans] ?? { text: '' }) : { text: '' }
      })
    for (const diesAfter of deaths) await workOn(graph, memory, { models: said(), diesAfter })
    const { left, state } = await workOn(graph, memory, { models: said() })
    return { memory, done, left, state }
  }

  test('that is taken over after any action ends the same, and no call has two actions', async () => {
    const whole = await withDeaths([], false)
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.integer({ min: 0, max: whole.memory.rows.length - 1 }), { maxLength: 4 }),
        fc.boolean(),
        async (deaths, impure) => {
          const { memory, state } = await withDeaths(
            deaths.sort((a, b) => a - b),
            impure,
          )
          expect(nodes(memory).toSorted()).toEqual(nodes(whole.memory).toSorted())
          expect(memory.ended?.outcome).toEqual({ status: 'completed', reason: 'answered' })
          checkInvariants(state)
        },
      ),
      { numRuns: 40 },
    )
  })

  test('calls that change something run in the order in which they were written', async () => {
    const { done } = await withDeaths([], true)
    expect(done).toEqual(['left0', 'right1', 'left2', 'right0'])
  })

  test('a tool that throws gives a result the model can act on', async () => {
    const graph = await graphWith([
      callTool('break', () => {
        throw new Error('out of paper')
      }),
    ])
    const memory = memoryRun({ prompt: 'print' })
    await workOn(graph, memory, { models: planners(calls('break'), { text: 'It has no paper.' }) })
    const { result } = memory.rows.find(({ body }) => body.node === 'break')?.body ?? {}
    expect(result).toMatchObject({
      is_error: true,
      text: 'Error: out of paper',
      call: { index: 0, id: 'c0' },
    })
    expect(memory.ended?.outcome.status).toBe('completed')
  })

  test.each([
    ['never calls checkpoint', async () => null as never, /returned without a checkpoint/],
    [
      'changes a field it does not declare',
      async (context: { checkpoint(draft: object, patch: object): unknown }) =>
        context.checkpoint({ summary: 's' }, { scenario: 'x' }) as never,
      /state\.scenario, which it does not declare/,
    ],
    [
      'leads to a node that is not there',
      async (context: { checkpoint(draft: object): unknown }) =>
        context.checkpoint({ summary: 's', next: ['nowhere'] }) as never,
      /leads to "nowhere", which is not there/,
    ],
  ])('a tool that %s gets that as its result, and the run goes on', async (_, work, message) => {
    const wrong = defineTool({
      name: 'wrong',
      description: 'wrong',
      kinds: ['call'],
      input: z.strictObject({ n: z.number() }),
      reads: [],
      writes: [],
      run: (_state, context) => work(context as never),
    })
    const memory = memoryRun({ prompt: 'try' })
    await workOn(await graphWith([wrong]), memory, { models: planners(calls('wrong'), { text: 'No.' }) })
    expect(memory.rows.find(({ body }) => body.node === 'wrong')?.body.result).toMatchObject({
      is_error: true,
      text: expect.stringMatching(message),
    })
    expect(memory.ended?.outcome).toEqual({ status: 'completed', reason: 'answered' })
  })

  type Context = { [method in 'checkpoint' | 'ask' | 'effect' | 'wait']: (given: unknown) => never }
  const results: [title: string, result: unknown, message: RegExp][] = [
    ['a text in place of a result', 'done', /result: .*expected object, received string/],
    ['a list in place of a result', ['done'], /result: .*received array/],
    ['a number as its text', { text: 5 }, /result\.text: .*expected string, received number/],
    ['a text as is_error', { text: 'x', is_error: 'yes' }, /result\.is_error: .*expected boolean/],
    ['a text as found', { found: 'none' }, /result\.found: .*expected number/],
    ['an unknown provenance', { provenance: 'internet' }, /result\.provenance: .*"web"/],
    ['a promise', { text: Promise.resolve('late') }, /result\.text: .*received Promise/],
    [
      'a promise inside',
      { items: [Promise.resolve(1)] },
      /JSON cannot hold what the action has as "0"; await it/,
    ],
    ['a Map', { prices: new Map([['a', 1]]) }, /JSON cannot hold what the action has as "prices"/],
    ['an error', { error: new Error('inside') }, /JSON cannot hold what the action has as "error"/],
    ['a BigInt', { n: 10n }, /JSON cannot hold what the action has as "n"/],
    ['a number that is none', { rows: [{ n: Number.NaN }] }, /JSON cannot hold what the action has as "n"/],
    ['a function', { f: () => 1 }, /JSON cannot hold what the action has as "f"/],
  ]
  const circle: Record<string, unknown> = {}
  circle.self = circle
  const send = async () => 'x'
  test.each<[string, (context: Context) => unknown, RegExp]>([
    ...results
      .map(
        ([title, result, message]) =>
          [
            `gives ${title}`,
            ({ checkpoint }: Context) => checkpoint({ summary: 's', result }),
            message,
          ] as const,
      )
      .map((row) => [...row] as [string, (context: Context) => unknown, RegExp]),
    [
      'gives a circle',
      ({ checkpoint }) => checkpoint({ summary: 's', result: circle }),
      /circular structure[\s\S]*'self'/,
    ],
    [
      'gives no action',
      ({ checkpoint }) => checkpoint(undefined),
      /checkpoint\(\) was called with wrong fields: is missing/,
    ],
    ['gives no summary', ({ checkpoint }) => checkpoint({ result: {} }), /summary: is missing/],
    ['asks a text', ({ ask }) => ask('Really?'), /ask\(\) was called .*expected object, received string/],
    [
      'asks without options',
      ({ ask }) => ask({ question: 'Really?' }),
      /schema: is missing; options: is missing; expires_in_ms: is missing/,
    ],
    [
      'sends without a class',
      ({ effect }) => effect({ request: 'x', send }),
      /effect\(\) was called .*class/,
    ],
    [
      'sends what is no text',
      ({ effect }) => effect({ class: 'manual', request: { a: 1 }, send }),
      /request: .*expected string/,
    ],
    [
      'sends keyed without a window',
      ({ effect }) => effect({ class: 'keyed', request: 'x', send }),
      /windowMs: is missing/,
    ],
    [
      'sends queryable without a look-up',
      ({ effect }) => effect({ class: 'queryable', request: 'x', send }),
      /lookup: must be a function/,
    ],
    [
      'waits for nothing that is known',
      ({ wait }) => wait({ kind: 'mail' }),
      /wait\(\) was called .*kind: .*"payment"\|"run"\|"job"; refId: is missing/,
    ],
  ])(
    'a tool that %s gets the field that is wrong as its result, and the run goes on',
    async (_, work, message) => {
      const wrong = defineTool({
        name: 'wrong',
        description: 'wrong',
        kinds: ['call'],
        input: z.strictObject({ n: z.number() }),
        reads: [],
        writes: [],
        run: async (_state, context) => (await work(context as never)) as never,
      })
      const memory = memoryRun({ prompt: 'try' })
      await workOn(await graphWith([wrong]), memory, { models: planners(calls('wrong'), { text: 'No.' }) })
      expect(memory.rows.find(({ body }) => body.node === 'wrong')?.body.result).toMatchObject({
        is_error: true,
        text: expect.stringMatching(message),
      })
      expect(memory.ended?.outcome).toEqual({ status: 'completed', reason: 'answered' })
    },
  )

  test.each([
    [undefined, 'an error without a message'],
    [null, 'an error without a message'],
    ['', 'an error without a message'],
    [Object.create(null), '{}'],
    [{ code: 'E1' }, '{"code":"E1"}'],
    [{ message: 'in an object' }, 'in an object'],
    [circle, 'an error without a message'],
    [new AggregateError([new Error('one'), new Error('two')]), 'one'],
    [
      new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED 127.0.0.1:9') }),
      'fetch failed: connect ECONNREFUSED 127.0.0.1:9',
    ],
    [new TypeError(''), 'TypeError'],
  ])('a tool that throws %o says what there is to say', async (thrown, text) => {
    const graph = await graphWith([
      callTool('break', () => {
        throw thrown
      }),
    ])
    const memory = memoryRun({ prompt: 'print' })
    await workOn(graph, memory, { models: planners(calls('break'), { text: 'No.' }) })
    expect(memory.rows.find(({ body }) => body.node === 'break')?.body.result.text).toBe(`Error: ${text}`)
    expect(memory.ended?.outcome.status).toBe('completed')
  })

  test('a tool that does not wait for its checkpoint still appends exactly that one action', async () => {
    const hasty = defineTool({
      name: 'hasty',
      description: 'hasty',
      kinds: ['call'],
      input: z.strictObject({ n: z.number() }),
      reads: [],
      writes: [],
      async run(_state, context) {
        context.checkpoint({ summary: 'first', result: { text: 'one' } }).catch(() => {})
        return null as never
      },
    })
    const memory = memoryRun({ prompt: 'try' })
    await workOn(await graphWith([hasty]), memory, { models: planners(calls('hasty'), { text: 'Yes.' }) })
    expect(memory.rows.filter(({ body }) => body.node === 'hasty')).toHaveLength(1)
    expect(memory.ended?.outcome).toEqual({ status: 'completed', reason: 'answered' })
  })

  test("data of a tool may have the router's names: calls, call, block, judged, draft", async () => {
    const phone = defineTool({
      name: 'phone',
      description: 'phone',
      kinds: ['call'],
      pure: true,
      input: z.strictObject({ n: z.number() }),
      reads: [],
      writes: [],
      run: (_state, context) =>
        context.checkpoint({
          summary: 'called',
          result: {
            text: 'called',
            call: '+49 30 1',
            calls: [{ index: 0, id: 'x', tool: 'phone', args: {} }],
            block: 'sequential',
            judged: [{ id: 1, relevance: 1, important: true }],
            draft: 'not an answer',
          },
        }),
    })
    const memory = memoryRun({ prompt: 'phone' })
    const models = planners(calls('phone', 'phone'), { text: 'Called twice.' })
    const { state } = await workOn(await graphWith([phone]), memory, { models })
    expect(memory.ended?.result.answer).toBe('Called twice.')
    expect(state.action_history[0]?.[0]?.relevance).toBe(0)
    checkInvariants(state)
  })
})
