import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { readCallInput } from '../../src/graph/call-drafts.ts'
import { type AnyTool, defineTool } from '../../src/graph/definitions.ts'
import type { Json } from '../../src/state/runtime-state.ts'
import { deferred } from '../support/deferred.ts'
import { memoryRun, modelsOf, workOn } from '../support/memory-run.ts'
import { callTool, graphWith } from '../support/parts.ts'

/** A tool that passes its result on to a step, or answers the call. */
const pass = (
  name: string,
  next: string | null,
  {
    kind = 'call',
    steps = next === null ? [] : [next],
    waits = false,
    input = {},
  }: {
    kind?: 'call' | 'step'
    steps?: string[]
    waits?: boolean
    input?: z.ZodRawShape
  } = {},
): AnyTool =>
  defineTool({
    name,
    description: name,
    kinds: [kind],
    pure: true,
    steps,
    input: z.object(input),
    reads: [],
    writes: [],
    async run(_state, context) {
      const given = readCallInput(context) as Record<string, Json>
      if (waits) await context.wait({ kind: 'job', refId: name })
      const result = { ...given, [`by_${name}`]: true, text: name }
      return context.checkpoint({ summary: name, result, ...(next && { next: [next] }) })
    },
  })

const order = { item: z.string() }
const chain = [
  pass('take_order', 'pack', { input: order }),
  pass('pack', 'send', { kind: 'step', waits: true, input: { ...order, by_take_order: z.literal(true) } }),
  pass('send', null, { kind: 'step', waits: true, input: { ...order, by_pack: z.literal(true) } }),
]
const call = (name: string, args: object = {}) => ({ name, arguments: args })
const planning = (...calls: { name: string; arguments: object }[]) =>
  modelsOf(({ role }, nth) => (role === 'planner' && nth === 1 ? { tool_calls: calls } : { text: 'Done.' }))

describe('a call with steps', () => {
  test('goes no further once the call beside it has come to a limit', async () => {
    const graph = await graphWith([
      pass('take', 'pack', { input: order }),
      pass('pack', null, { kind: 'step' }),
    ])
    const memory = memoryRun({ prompt: 'Order two lamps', limits: { max_cost: 1 } })
    const lamps = ['lamp', 'other lamp'].map((item) => call('take', { item }))
    const early = deferred<number>()
    let asked = 0
    const cost = async () => {
      if (!memory.rows.some(({ body }) => body.node === 'take')) return 0
      if (++asked === 1) return early.promise
      // the call that asked first hears what it had cost by then once the other has heard this
      setImmediate(() => early.resolve(0))
      return 1
    }
    await workOn(graph, memory, { models: { ...planning(...lamps), cost } })
    expect(asked).toBe(2)
    expect(memory.rows.filter(({ body }) => body.node === 'pack')).toEqual([])
    expect(memory.ended?.outcome).toEqual({ status: 'completed', reason: 'cost' })
  })

  test('goes from step to step by next, each with the result before it, and is answered by the last', async () => {
    const graph = await graphWith(chain)
    const memory = memoryRun({ prompt: 'Order a lamp' })
    const models = planning(call('take_order', { item: 'lamp' }))
    const names = () => memory.rows.map(({ body }) => body.node)
    // each wait parks the run, and belongs to the action before its step
    for (const step of ['pack', 'send']) {
      expect((await workOn(graph, memory, { models })).left).toBe('parked')
      expect(names()).not.toContain(step)
      const [ref] = [...memory.waits].find(([, outcome]) => outcome === null) ?? []
      expect(JSON.parse(ref ?? '{}')).toEqual({ plan_seq: memory.rows.length, index: 0, part: 0 })
      memory.waits.set(ref ?? '', { status: 'succeeded' })
    }
    expect((await workOn(graph, memory, { models })).left).toBe('ended')
    const own = memory.rows.filter(({ body }) => ['take_order', 'pack', 'send'].includes(body.node))
    expect(own.map(({ body }) => [body.node, body.next, body.result.call])).toMatchObject([
      ['take_order', ['pack'], { index: 0, open: true }],
      ['pack', ['send'], { index: 0, open: true }],
      ['send', ['reflection'], { index: 0 }],
    ])
    expect(own.at(-1)?.body.result).toMatchObject({ item: 'lamp', by_pack: true, by_send: true })
    expect(own.at(-1)?.body.result.call).not.toHaveProperty('open')
    expect(memory.ended?.outcome).toMatchObject({ status: 'completed', reason: 'answered' })
    // the model reads one answer, that of the last step
    const answers = models.requests.at(-1)?.messages.filter(({ role }) => role === 'tool') ?? []
    expect(JSON.stringify(answers)).not.toContain('by_take_order')
  })

  test('does not wait for its siblings, nor they for it', async () => {
    const graph = await graphWith([
      ...chain,
      pass('slow', null, { waits: true }),
      callTool('fast', () => 'fast'),
    ])
    const memory = memoryRun({ prompt: 'Go' })
    const models = planning(call('slow'), call('take_order', { item: 'lamp' }), call('fast'))
    expect((await workOn(graph, memory, { models })).left).toBe('parked')
    expect([...memory.waits.keys()]).toHaveLength(2)
    expect(memory.rows.map(({ body }) => body.node)).toEqual(expect.arrayContaining(['take_order', 'fast']))
    for (let turn = 0; turn < 5 && !memory.ended; turn++) {
      for (const ref of memory.waits.keys()) memory.waits.set(ref, { status: 'succeeded' })
      await workOn(graph, memory, { models })
    }
    const nodes = memory.rows.map(({ body }) => body.node)
    for (const name of ['slow', 'take_order', 'pack', 'send', 'fast'])
      expect(nodes.filter((node) => node === name)).toHaveLength(1)
  })

  test('goes on in another process at the step it has come to, of two in turn too', async () => {
    const graph = await graphWith(chain)
    const calls = [call('take_order', { item: 'a' }), call('take_order', { item: 'b' })]
    for (let diesAfter = 3; diesAfter < 12; diesAfter++) {
      const memory = memoryRun({ prompt: 'Order two' })
      const twice = planning(...calls)
      await workOn(graph, memory, { models: twice, diesAfter })
      for (let turn = 0; turn < 10 && !memory.ended; turn++) {
        for (const ref of memory.waits.keys()) memory.waits.set(ref, { status: 'succeeded' })
        await workOn(graph, memory, { models: twice })
      }
      expect(memory.ended?.outcome.status).toBe('completed')
      const sent = memory.rows.filter(({ body }) => body.node === 'send')
      expect(sent.map(({ body }) => body.result.item).sort()).toEqual(['a', 'b'])
    }
  })

  test('is answered with the error of a step that fails, or that does not fit the result before it', async () => {
    const broken = pass('send', null, { kind: 'step', input: { missing: z.string() } })
    const graph = await graphWith([pass('take_order', 'send', { input: order }), broken])
    const memory = memoryRun({ prompt: 'Order' })
    const models = planning(call('take_order', { item: 'lamp' }))
    await workOn(graph, memory, { models })
    const failed = memory.rows.find(({ body }) => body.node === 'send')?.body
    expect(failed).toMatchObject({ next: ['reflection'], result: { is_error: true, code: 'bad_tool_call' } })
    expect(memory.ended?.outcome.status).toBe('completed')
  })
})

describe('a graph with steps', () => {
  test.each<[string, AnyTool[]]>([
    ['tool "take_order" leads to the step "pack", which is not there', [pass('take_order', 'pack')]],
    ['tool "pack" is a step and of other kinds too', [{ ...pass('pack', null), kinds: ['call', 'step'] }]],
    [
      'tool "early" has steps and is not a call tool',
      [{ ...pass('early', 'pack'), kinds: ['prepare'] }, pass('pack', null, { kind: 'step' })],
    ],
  ])('is refused: %s', async (problem, tools) => {
    await expect(graphWith(tools)).rejects.toThrow(problem)
  })

  test('lets no tool lead to a step that it does not declare', async () => {
    const tools = [pass('take_order', 'pack', { steps: [] }), pass('pack', null, { kind: 'step' })]
    const memory = memoryRun({ prompt: 'Order' })
    await workOn(await graphWith(tools), memory, { models: planning(call('take_order')) })
    expect(memory.rows.find(({ body }) => body.node === 'take_order')?.body.result).toMatchObject({
      is_error: true,
      text: expect.stringContaining('leads to the step "pack", which it does not declare'),
    })
  })

  test('offers no step to the planner', async () => {
    const models = planning(call('take_order', { item: 'lamp' }))
    const memory = memoryRun({ prompt: 'Order' })
    await workOn(await graphWith(chain), memory, { models })
    const offered = models.requests.find(({ role }) => role === 'planner')?.tools?.map(({ name }) => name)
    expect(offered).toContain('take_order')
    expect(offered).not.toContain('pack')
  })
})
