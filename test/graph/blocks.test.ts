import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Graph } from '../../src/graph/build.ts'
import { readCallInput } from '../../src/graph/call-drafts.ts'
import { type AnyTool, defineTool } from '../../src/graph/definitions.ts'
import type { ActionBody, Json } from '../../src/state/runtime-state.ts'
import { contentHash } from '../../src/state/text/content-hash.ts'
import { body, type Called, plan, todo } from '../support/actions.ts'
import { deferred } from '../support/deferred.ts'
import { checkInvariants } from '../support/invariants.ts'
import { type MemoryRun, memoryRun, planners, type Said, workOn } from '../support/memory-run.ts'
import { graphWith } from '../support/parts.ts'

/** What the tools of a test have done, in order: the start and the end of each call. */
type Journal = { events: string[]; inputs: Record<string, Json>[] }

/** A tool that takes its time or waits for an event of another call, fails where its arguments say so, and answers with its text. */
const workTool = (name: string, journal: Journal, more: Partial<AnyTool> = {}): AnyTool =>
  defineTool({
    ...{ name, description: name, kinds: ['call'], reads: [], writes: [] },
    input: z.object({
      id: z.string(),
      text: z.string().optional(),
      ms: z.number().optional(),
      after: z.string().optional(),
      fails: z.boolean().optional(),
    }),
    async run(_state, context) {
      const { id, text = id, ms = 0, after, fails = false } = readCallInput(context)
      journal.inputs.push({ id, text })
      journal.events.push(`${id} starts`)
      await new Promise((resolve) => setTimeout(resolve, ms))
      if (after !== undefined) await expect.poll(() => journal.events).toContain(after)
      journal.events.push(`${id} ends`)
      return context.checkpoint({ summary: name, result: { text, ...(fails && { is_error: true }) } })
    },
    ...more,
  })

const journal: Journal = { events: [], inputs: [] }
const python = { field: 'code', language: 'python' as const }
let graph: Graph

beforeAll(async () => {
  graph = await graphWith([
    workTool('work', journal),
    workTool('count', journal, {
      input: z.strictObject({ id: z.string(), n: z.int() }),
      async run(_state, context) {
        const { id, n } = readCallInput(context as never) as { id: string; n: number }
        journal.inputs.push({ id, n })
        return context.checkpoint({ summary: 'counted', result: { text: `${n + 1}` } })
      },
    }),
    workTool('run_python', journal, {
      input: z.strictObject({ code: z.string() }),
      raw: python,
      async run(_state, context) {
        const { code } = readCallInput(context as never) as { code: string }
        journal.inputs.push({ code })
        return context.checkpoint({ summary: 'ran', result: { text: 'ran' } })
      },
    }),
    workTool('begin', journal, {
      steps: ['finish_work'],
      async run(_state, context) {
        const { text = '' } = readCallInput(context as never) as { text?: string }
        return context.checkpoint({ summary: 'begun', result: { text }, next: ['finish_work'] })
      },
    }),
    workTool('finish_work', journal, {
      kinds: ['step'],
      input: z.record(z.string(), z.json()),
      run: async (_state, context) =>
        context.checkpoint({ summary: 'finished', result: { text: 'finished' } }),
    }),
  ])
})

/** A run whose planner has decided on this plan. */
const planned = (one: ActionBody, patch = {}, request: object = {}): MemoryRun => {
  journal.events.length = 0
  journal.inputs.length = 0
  const memory = memoryRun({ prompt: 'Go on', ...request })
  memory.rows.push(
    {
      seq: 1,
      turn: 1,
      body: body('load-session', { next: ['planner'] }),
      patch: { prompts: 'Go on', ...patch },
    },
    { seq: 2, turn: 1, body: one, patch: {} },
  )
  return memory
}
const models = () => planners({ text: 'Done.' })
const call = (id: string, more: object = {}): Called => ({ tool: 'work', args: { id, ...more } })
const ownActions = ({ rows }: MemoryRun): ActionBody[] =>
  rows.map((row) => row.body).filter(({ result }) => result.call !== undefined)

describe('native calls of which some only read', () => {
  /** In flight now, and at the most; the reads end once `together` of them have begun. */
  const readers = (together: number) => {
    const count = { now: 0, most: 0, order: [] as string[] }
    const all = deferred<void>()
    const tool = (name: string, more: Partial<AnyTool>): AnyTool =>
      defineTool({
        ...{ name, description: name, kinds: ['call'], reads: [], writes: [] },
        input: z.strictObject({ id: z.string(), method: z.string().optional() }),
        async run(_state, context) {
          const { id, method = 'GET' } = readCallInput(context) as { id: string; method?: string }
          count.now += 1
          count.most = Math.max(count.most, count.now)
          count.order.push(id)
          if (count.now === together) all.resolve()
          if (method === 'GET') await all.promise
          count.now -= 1
          return context.checkpoint({ summary: name, result: { text: id } })
        },
        ...more,
      })
    return { count, tool }
  }
  const byMethod = { effects: ({ method }: { method?: string }) => (method ? 'write' : 'read') } as const
  const said = (name: string, ...args: Record<string, string>[]): NonNullable<Said['tool_calls']> =>
    args.map((one) => ({ name, arguments: one }))

  test('all run side by side: four are in flight at once', async () => {
    const { count, tool } = readers(4)
    const memory = memoryRun({ prompt: 'look' })
    const tool_calls = said('look', { id: 'a' }, { id: 'b' }, { id: 'c' }, { id: 'd' })
    await workOn(await graphWith([tool('look', { effects: 'read' })]), memory, {
      models: planners({ tool_calls }, { text: 'Done.' }),
    })
    expect(count.most).toBe(4)
    expect(memory.rows.find(({ body: { node } }) => node === 'planner')?.body.result).toMatchObject({
      block: 'parallel',
    })
  })

  test('run side by side up to the first that changes something, and from there on in order', async () => {
    const { count, tool } = readers(2)
    const memory = memoryRun({ prompt: 'look' })
    const put = { method: 'PUT' }
    const tool_calls = said(
      'api',
      { id: 'a' },
      { id: 'b' },
      { id: 'c', ...put },
      { id: 'd' },
      { id: 'e', ...put },
    )
    const graph = await graphWith([tool('api', byMethod)])
    await workOn(graph, memory, { models: planners({ tool_calls }, { text: 'Done.' }) })
    expect(count).toMatchObject({ most: 2, order: ['a', 'b', 'c', 'd', 'e'] })
    expect(memory.rows.find(({ body: { node } }) => node === 'planner')?.body.result).toMatchObject({
      block: 'sequential',
      leading_reads: 2,
    })
    expect(
      ownActions(memory)
        .map(({ result }) => result.text)
        .slice(2),
    ).toEqual(['c', 'd', 'e'])
  })

  test('keep their lanes in a worker to which the tool says something else', async () => {
    const { count, tool } = readers(2)
    const memory = memoryRun({ prompt: 'look' })
    const tool_calls = said('api', { id: 'a' }, { id: 'b' }, { id: 'c', method: 'PUT' })
    const models = planners({ tool_calls }, { text: 'Done.' })
    await workOn(await graphWith([tool('api', byMethod)]), memory, { models, diesAfter: 3 })
    count.now = 0
    const later = readers(2)
    await workOn(await graphWith([later.tool('api', { effects: 'write' })]), memory, { models })
    expect(later.count).toMatchObject({ most: 2, order: ['a', 'b', 'c'] })
  })

  test('with a function that throws, or says nothing, count as changes', async () => {
    for (const effects of [
      () => undefined as never,
      (): never => {
        throw new Error('no')
      },
    ]) {
      const { count, tool } = readers(1)
      const memory = memoryRun({ prompt: 'look' })
      const models = planners({ tool_calls: said('look', { id: 'a' }, { id: 'b' }) }, { text: 'Done.' })
      await workOn(await graphWith([tool('look', { effects })]), memory, { models })
      expect(count).toMatchObject({ most: 1, order: ['a', 'b'] })
    }
  })
})

describe('a sequential block that stops on failure', () => {
  test('does not run the rest: it has no action, and the model reads why', async () => {
    const memory = planned(
      plan([call('a'), call('b', { fails: true }), call('c'), call('d')], 'sequential', 'stop'),
    )
    const asked = models()
    const { state } = await workOn(graph, memory, { models: asked })
    expect(journal.events).toEqual(['a starts', 'a ends', 'b starts', 'b ends'])
    expect(memory.rows.map((row) => row.body.node)).toEqual([
      ...['load-session', 'planner', 'work', 'work', 'reflection', 'planner', 'answer', 'end'],
    ])
    const results = asked.requests
      .find(({ role }) => role === 'planner')
      ?.messages.filter(({ role }) => role === 'tool')
    expect(results?.map(({ content }) => content).slice(2)).toEqual([
      'Not run: step 1 failed.',
      'Not run: step 1 failed.',
    ])
    checkInvariants(state)
  })

  test('of native calls, and of an action of an earlier version, goes on', async () => {
    for (const onFailure of ['go_on', undefined] as const) {
      const memory = planned(plan([call('a', { fails: true }), call('b')], 'sequential', onFailure))
      await workOn(graph, memory, { models: models() })
      expect(journal.events).toEqual(['a starts', 'a ends', 'b starts', 'b ends'])
    }
  })

  test('leaves the tasks of what did not run as they were before, and fails a try of those whose calls failed', async () => {
    const calls = [
      { ...call('a'), todos: ['first'] },
      { ...call('b', { fails: true }), todos: ['second'] },
      { ...call('c'), todos: ['second'] },
      { ...call('d'), todos: ['third'] },
      { ...call('e'), todos: ['first'] },
    ]
    const todos = ['first', 'second', 'third'].map((id) => todo(id, { status: 'processing' }))
    const memory = planned(plan(calls, 'sequential', 'stop'), { todos })
    const { state } = await workOn(graph, memory, { models: models(), diesAfter: 5 })
    expect(state.todos.at(-1)?.map(({ id, status, retry }) => [id, status, retry])).toEqual([
      ['first', 'processing', 0],
      ['second', 'pending', 1],
      ['third', 'pending', 0],
    ])
  })
})

describe('lanes', () => {
  const resource = (exclusive: string, ...args: Parameters<typeof call>): Called => ({
    ...call(...args),
    exclusive,
  })

  test('keep the order of the calls that name one resource, beside all others, and wait for no other lane', async () => {
    const calls = [
      resource('page', 'p1', { after: 'b2 ends' }),
      resource('page', 'p2'),
      resource('box', 'b1'),
      resource('box', 'b2'),
      call('free', { after: 'p2 ends' }),
    ]
    await workOn(graph, planned(plan(calls)), { models: models() })
    const at = (event: string) => journal.events.indexOf(event)
    expect(journal.events.slice(0, 3)).toEqual(['p1 starts', 'b1 starts', 'free starts'])
    expect(at('p2 starts')).toBeGreaterThan(at('p1 ends'))
    expect(at('b2 starts')).toBeGreaterThan(at('b1 ends'))
    expect(at('b2 ends')).toBeLessThan(at('p1 ends'))
    expect(at('p2 ends')).toBeLessThan(at('free ends'))
  })

  test('do not stop one another: a call that fails is followed by the next of its lane', async () => {
    const calls = [resource('box', 'a', { fails: true }), resource('box', 'b')]
    await workOn(graph, planned(plan(calls)), { models: models() })
    expect(journal.events).toEqual(['a starts', 'a ends', 'b starts', 'b ends'])
  })

  test('come to an end at a limit together, and no action is beyond it', async () => {
    const calls = ['a', 'b', 'c'].flatMap((lane) =>
      [1, 2, 3].map((n) => resource(lane, `${lane}${n}`, { ms: n })),
    )
    const memory = planned(plan(calls), {}, { limits: { max_steps: 9 } })
    const { left } = await workOn(graph, memory, { models: models() })
    expect([left, memory.ended?.outcome.reason]).toEqual(['ended', 'steps'])
    expect(memory.rows.length).toBeLessThanOrEqual(9)
  })

  test('in the planner’s action are those of the tools that name a resource', async () => {
    const boxed = await graphWith([
      workTool('work', journal, { exclusive: 'box', pure: true }),
      workTool('free', journal, { pure: true }),
    ])
    const memory = memoryRun({ prompt: 'Go on' })
    const tool_calls = ['work', 'free', 'work'].map((name, n) => ({ name, arguments: { id: `${n}`, ms: 5 } }))
    await workOn(boxed, memory, { models: planners({ tool_calls }, { text: 'Done.' }) })
    const decided = memory.rows.find(({ body: { node } }) => node === 'planner')?.body.result
    expect(decided).toMatchObject({
      block: 'parallel',
      calls: [{ exclusive: 'box' }, {}, { exclusive: 'box' }],
    })
    expect(Object.keys((decided?.calls as object[] | undefined)?.[1] ?? {})).toEqual([
      'index',
      'id',
      'tool',
      'args',
    ])
  })
})

describe('the arguments of a later step', () => {
  const steps = (...calls: Called[]): ActionBody => plan(calls, 'sequential', 'stop')

  test('have the results, of the expected type, and their hash is in the action; the plan stays as it was written', async () => {
    const memory = planned(
      steps(
        { tool: 'count', args: { id: 'one', n: 1 } },
        { tool: 'count', args: { id: 'at {results[0]}', n: '{results[0]}' } },
        { tool: 'run_python', args: { code: 'print("{results[1]}", results[0])' } },
      ),
    )
    await workOn(graph, memory, { models: models() })
    const code = 'results = ["2", None]\nprint("3", results[0])'
    expect(journal.inputs).toEqual([{ id: 'one', n: 1 }, { id: 'at 2', n: 2 }, { code }])
    const marks = ownActions(memory).map(({ result }) => result.call)
    expect(marks).toEqual([
      { index: 0, id: 'call_0' },
      { index: 1, id: 'call_1', resolved_sha256: contentHash({ id: 'at 2', n: 2 }) },
      { index: 2, id: 'call_2', resolved_sha256: contentHash({ code }) },
    ])
    expect(memory.rows[1]?.body).toMatchObject({
      result: { calls: [{}, { args: { n: '{results[0]}' } }, {}] },
    })
  })

  test('have the whole text of a result that is in a blob', async () => {
    const text = `${'long '.repeat(20_000)}end`
    const memory = planned(steps(call('a', { text }), call('b', { text: '{results[0]}' })))
    await workOn(graph, memory, { models: models() })
    expect(ownActions(memory)[0]?.result.blob).toBeDefined()
    expect(journal.inputs[1]?.text).toBe(text)
  })

  test.each<[string, string, Called, string]>([
    [
      'over 1 MB',
      'x'.repeat(2 ** 20 + 1),
      call('b', { text: '{results[0]}' }),
      'Error: the results that step 1 refers to are over 1 MB; make a step',
    ],
    [
      'of another type',
      'many',
      { tool: 'count', args: { id: 'n', n: '{results[0]}' } },
      'Error: the arguments of count, with the results in them, are invalid: ',
    ],
  ])('are an error result where a result is %s, and the block ends there', async (_, text, second, error) => {
    const memory = planned(steps(call('a', { text }), second, call('c')))
    await workOn(graph, memory, { models: models() })
    const [, failed, ...rest] = ownActions(memory)
    expect([String(failed?.result.text).startsWith(error), failed?.result.code, rest]).toEqual([
      true,
      'bad_tool_call',
      [],
    ])
  })

  test('are as they were written in any other block', async () => {
    const memory = planned(plan([call('a'), call('b', { text: '{results[0]}' })], 'sequential', 'go_on'))
    await workOn(graph, memory, { models: models() })
    expect(journal.inputs[1]?.text).toBe('{results[0]}')
  })

  test('that a take-over resolves otherwise fail the run', async () => {
    const one = steps(call('a', { text: 'now' }), { tool: 'begin', args: { id: 'b', text: '{results[0]}' } })
    const memory = planned(one)
    await workOn(graph, memory, { models: models(), diesAfter: 4 })
    const answered = memory.rows[2]
    if (!answered) throw new Error('the first step has no action')
    answered.body = { ...answered.body, result: { ...answered.body.result, text: 'later' } }
    await workOn(graph, memory, { models: models() })
    expect(memory.ended?.outcome).toMatchObject({
      status: 'failed',
      reason: 'internal',
      error: {
        node: 'finish_work',
        message: expect.stringContaining('call 1 of begin was begun with other results'),
      },
    })
  })
})

test('a run that is taken over between any two actions ends the same, in blocks of every kind', async () => {
  const kinds = ['parallel', 'stop', 'go_on'] as const
  const call = fc.record({
    tool: fc.constantFrom('work', 'begin'),
    text: fc.constantFrom('plain', 'of {results[0]}'),
    fails: fc.boolean(),
    exclusive: fc.constantFrom(undefined, 'box', 'page'),
  })
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...kinds),
      fc.array(call, { minLength: 1, maxLength: 5 }),
      fc.uniqueArray(fc.integer({ min: 2, max: 12 }), { maxLength: 4 }),
      async (kind, calls, deaths) => {
        const one = plan(
          calls.map(({ tool, text, fails, exclusive }, index) => ({
            tool,
            args: { id: `${index}`, text: index === 0 ? 'first' : text, fails },
            ...(exclusive && { exclusive }),
          })),
          kind === 'parallel' ? 'parallel' : 'sequential',
          kind === 'stop' ? 'stop' : 'go_on',
        )
        const outline = async (dies: readonly number[]) => {
          const memory = planned(one)
          for (const diesAfter of dies) await workOn(graph, memory, { models: models(), diesAfter })
          const { state } = await workOn(graph, memory, { models: models() })
          checkInvariants(state)
          const own = ownActions(memory).map(({ node, result }) => ({
            node,
            call: result.call,
            text: result.text,
          }))
          return { outcome: memory.ended?.outcome, own: own.map((action) => JSON.stringify(action)).sort() }
        }
        expect(await outline(deaths.sort((a, b) => a - b))).toEqual(await outline([]))
      },
    ),
    { numRuns: 60 },
  )
})
