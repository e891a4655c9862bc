import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { Stopped } from '../../src/graph/execute.ts'
import { defineTool } from '../../src/graph/tool.ts'
import { MasonError } from '../../src/state/errors.ts'
import { fold } from '../../src/state/fold.ts'
import { deferred } from '../support/deferred.ts'
import { checkInvariants } from '../support/invariants.ts'
import { type MemoryRun, memoryRun, modelsOf, planners, type Said, workOn } from '../support/memory-run.ts'
import { callTool, graphWith } from '../support/parts.ts'

const nodes = (memory: MemoryRun): string[] => memory.rows.map((row) => row.body.node)
const calls = (...names: string[]): Said => ({
  tool_calls: names.map((name, n) => ({ id: `c${n}`, name, arguments: { n } })),
})

describe('a walk', () => {
  test('lays one action a visit, and holds what its rows add up to', async () => {
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

  test('taken over after any action it ends as if nothing had happened, and no call has two actions', async () => {
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
  ])('a tool that %s is told so as a result, and the run goes on', async (_, work, fault) => {
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
      text: expect.stringMatching(fault),
    })
    expect(memory.ended?.outcome).toEqual({ status: 'completed', reason: 'answered' })
  })

  test('a tool that does not wait for its checkpoint still lays exactly that one action', async () => {
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

describe('a run that is stopped', () => {
  const stopAt = async (kind: 'cancel' | 'time', request: object = {}) => {
    const graph = await graphWith()
    const memory = memoryRun({ prompt: 'hello', ...request })
    const control = new AbortController()
    control.abort(new Stopped(kind === 'cancel' ? { kind, reason: 'changed my mind' } : { kind }))
    return { memory, ...(await workOn(graph, memory, { control })) }
  }

  test.each(['cancel', 'time'] as const)(
    'by %s before its first action still opens its turn',
    async (kind) => {
      const { memory, left, state } = await stopAt(kind)
      expect(left).toBe('ended')
      expect(nodes(memory)).toEqual(['load-session', 'end'])
      expect(state.prompts).toEqual(['hello'])
      checkInvariants(state)
    },
  )

  test('by its time limit gives what it has as the answer', async () => {
    const graph = await graphWith([
      callTool(
        'hang',
        (_args, signal) =>
          new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      ),
    ])
    const memory = memoryRun({ prompt: 'hang', limits: { timeout_ms: 60 } })
    await workOn(graph, memory, { models: planners(calls('hang')) })
    expect(memory.ended?.outcome).toEqual({ status: 'completed', reason: 'time' })
    expect(memory.ended?.result.answer).toMatch(/time was up/)
    expect(nodes(memory).at(-1)).toBe('end')
  })

  test('does not wait for a tool that ignores its signal, and what that tool lays later is refused', async () => {
    const release = deferred<string>()
    const graph = await graphWith([callTool('deaf', () => release.promise)])
    const memory = memoryRun({ prompt: 'hang', limits: { timeout_ms: 60 } })
    const unhandled = vi.fn()
    process.on('unhandledRejection', unhandled)
    await workOn(graph, memory, { models: planners(calls('deaf')) })
    const before = memory.rows.length
    release.resolve('too late')
    await new Promise((resolve) => setImmediate(resolve))
    expect(memory.rows).toHaveLength(before)
    process.off('unhandledRejection', unhandled)
    expect(unhandled).not.toHaveBeenCalled()
  })

  test('handed back in the middle it is taken up where it stood', async () => {
    const control = new AbortController()
    const graph = await graphWith([
      callTool('slow', () => {
        control.abort(new Stopped({ kind: 'hand_back' }))
        return 'x'
      }),
    ])
    const memory = memoryRun({ prompt: 'slow' })
    const models = planners(calls('slow'), { text: 'Done.' })
    expect((await workOn(graph, memory, { models, control })).left).toBe('handed_back')
    expect(memory.ended).toBeNull()
    expect((await workOn(graph, memory, { models })).left).toBe('ended')
    checkInvariants(fold(memory.rows))
  })
})

describe('a node that fails', () => {
  const broken = () =>
    planners(new MasonError('model_unauthorized', 'the key is wrong', { remedy: 'set another' }))

  test('ends the run with its code, its name and one end', async () => {
    const memory = memoryRun({ prompt: 'hello' })
    const { state } = await workOn(await graphWith(), memory, { models: broken() })
    expect(memory.ended).toMatchObject({
      outcome: { status: 'failed', reason: 'model_unauthorized' },
      result: {
        error: { code: 'model_unauthorized', node: 'planner', message: 'the key is wrong; set another' },
      },
    })
    expect(memory.rows.at(-1)?.body.result).toEqual({ status: 'failed', reason: 'model_unauthorized' })
    checkInvariants(state)
  })

  test('fails the run the same way when the worker dies before the end', async () => {
    const memory = memoryRun({ prompt: 'hello' })
    const graph = await graphWith()
    await workOn(graph, memory, { models: broken(), diesAfter: 3 })
    expect(memory.ended).toBeNull()
    const { left, state } = await workOn(graph, memory)
    expect(left).toBe('ended')
    expect(memory.ended).toMatchObject({
      outcome: { status: 'failed', reason: 'model_unauthorized' },
      result: {
        error: { code: 'model_unauthorized', node: 'planner', message: 'the key is wrong; set another' },
      },
    })
    checkInvariants(state)
  })

  test('beside a sibling that is still at work leaves no action after the end and no loose rejection', async () => {
    const release = deferred<void>()
    const prepare = (name: string, work: () => Promise<void>) =>
      defineTool({
        name,
        description: name,
        kinds: ['prepare'],
        input: z.strictObject({}),
        reads: [],
        writes: [],
        async run(_state, context) {
          await work()
          return context.checkpoint({ summary: name })
        },
      })
    const graph = await graphWith([
      prepare('fails', async () => {
        throw new Error('no such table')
      }),
      prepare('lingers', () => release.promise),
    ])
    const memory = memoryRun({ prompt: 'hello' })
    const unhandled = vi.fn()
    process.on('unhandledRejection', unhandled)
    const { state } = await workOn(graph, memory)
    release.resolve()
    await new Promise((resolve) => setImmediate(resolve))
    process.off('unhandledRejection', unhandled)
    expect(unhandled).not.toHaveBeenCalled()
    expect(memory.ended?.outcome).toMatchObject({
      status: 'failed',
      reason: 'node_failed',
      error: { node: 'fails' },
    })
    expect(memory.rows.at(-1)?.body.node).toBe('end')
    checkInvariants(state)
  })
})
