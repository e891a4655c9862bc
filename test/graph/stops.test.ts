import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { defineTool } from '../../src/graph/definitions.ts'
import { MasonError } from '../../src/state/errors.ts'
import { foldActions } from '../../src/state/fold.ts'
import { RunStoppedError } from '../../src/state/run-stop.ts'
import { deferred } from '../support/deferred.ts'
import { checkInvariants } from '../support/invariants.ts'
import { type MemoryRun, memoryRun, planners, type Said, workOn } from '../support/memory-run.ts'
import { callTool, graphWith } from '../support/parts.ts'

const nodes = (memory: MemoryRun): string[] => memory.rows.map((row) => row.body.node)
/** A tool that is done once its work is. */
const prepare = (name: string, work: (signal: AbortSignal) => Promise<void>) =>
  defineTool({
    name,
    description: name,
    kinds: ['prepare'],
    input: z.strictObject({}),
    reads: [],
    writes: [],
    async run(_state, context, signal) {
      await work(signal)
      return context.checkpoint({ summary: name })
    },
  })
const calls = (...names: string[]): Said => ({
  tool_calls: names.map((name, n) => ({ id: `c${n}`, name, arguments: { n } })),
})

describe('a run whose planner repeats a call', () => {
  test.for([
    ['short', 'no rows'],
    ['in a blob', 'no rows '.repeat(8000)],
  ])(
    'that says the same each time, %s, ends at the third, whatever the clock in its data says',
    async ([, text]) => {
      let now = 0
      const look = defineTool({
        name: 'look',
        description: 'looks',
        kinds: ['call'],
        pure: true,
        input: z.strictObject({}),
        reads: [],
        writes: [],
        run: (_state, { checkpoint }) =>
          checkpoint({
            summary: 'looked',
            result: { text: text ?? '', fetched_at: ++now, took: { ms: now } },
          }),
      })
      const memory = memoryRun({ prompt: 'look' })
      const models = planners({ tool_calls: [{ name: 'look', arguments: {} }] })
      await workOn(await graphWith([look]), memory, { models })
      expect(memory.ended?.outcome).toMatchObject({ reason: 'no_progress' })
      expect(nodes(memory).filter((node) => node === 'look')).toHaveLength(3)
    },
  )

  test('that says something else each time goes on', async () => {
    let now = 0
    const look = callTool('look', () => `row ${++now}`)
    const memory = memoryRun({ prompt: 'look' })
    const replies = Array.from(
      { length: 12 },
      (): Said => ({ tool_calls: [{ name: 'look', arguments: {} }] }),
    )
    await workOn(await graphWith([look]), memory, { models: planners(...replies, { text: 'Done.' }) })
    expect([memory.ended?.outcome.reason, now]).toEqual(['answered', 12])
  })
})

describe('a run that is stopped', () => {
  const stopAt = async (kind: 'cancel' | 'time', request: object = {}) => {
    const graph = await graphWith()
    const memory = memoryRun({ prompt: 'hello', ...request })
    const control = new AbortController()
    control.abort(new RunStoppedError(kind === 'cancel' ? { kind, reason: 'changed my mind' } : { kind }))
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
        (_args, _context, signal) =>
          new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      ),
    ])
    const memory = memoryRun({ prompt: 'hang', limits: { timeout_ms: 60 } })
    await workOn(graph, memory, { models: planners(calls('hang')) })
    expect(memory.ended?.outcome).toEqual({ status: 'completed', reason: 'time' })
    expect(memory.ended?.result.answer).toMatch(/time was up/)
    expect(nodes(memory).at(-1)).toBe('end')
  })

  test('does not wait for a tool that ignores its signal, and refuses its later checkpoint', async () => {
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

  test('while its turn is being opened opens it once, whatever the opening waits for', async () => {
    const answers: ((hasWork: boolean) => void)[] = []
    const late = prepare('late', async () => {})
    const hasWork = () => new Promise<boolean>((resolve) => void answers.push(resolve))
    const memory = memoryRun({ prompt: 'hello' })
    const control = new AbortController()
    const worked = workOn(await graphWith([{ ...late, hasWork }]), memory, { control })
    await expect.poll(() => answers.length).toBe(1)
    control.abort(new RunStoppedError({ kind: 'cancel', reason: 'changed my mind' }))
    await expect.poll(() => answers.length).toBe(2)
    for (const answer of answers) answer(true)
    const { left, state } = await worked
    expect(left).toBe('ended')
    expect(nodes(memory)).toEqual(['load-session', 'end'])
    checkInvariants(state)
  })

  test('records the side effect that took place before its end', async () => {
    const memory = memoryRun({ prompt: 'pay' })
    memory.effect = { effect_id: 'e1', response: 'paid' }
    const control = new AbortController()
    const pays = callTool(
      'pays',
      async (_args, context) => {
        const request = { class: 'manual', request: '', send: async () => 'paid' } as const
        const response = await context.effect(request)
        control.abort(new RunStoppedError({ kind: 'cancel', reason: 'changed my mind' }))
        return response
      },
      false,
    )
    await workOn(await graphWith([pays]), memory, { models: planners(calls('pays')), control })
    expect(nodes(memory).slice(-2)).toEqual(['pays', 'end'])
    expect(memory.ended?.outcome.status).toBe('cancelled')
  })

  test('that is handed back in the middle continues from its last action', async () => {
    const control = new AbortController()
    const graph = await graphWith([
      callTool('slow', () => {
        control.abort(new RunStoppedError({ kind: 'hand_back' }))
        return 'x'
      }),
    ])
    const memory = memoryRun({ prompt: 'slow' })
    const models = planners(calls('slow'), { text: 'Done.' })
    expect((await workOn(graph, memory, { models, control })).left).toBe('handed_back')
    expect(memory.ended).toBeNull()
    expect((await workOn(graph, memory, { models })).left).toBe('ended')
    checkInvariants(foldActions(memory.rows))
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

describe('a run that fails while other branches are under way', () => {
  test('aborts them and does not wait for their results', async () => {
    const stopped = deferred<unknown>()
    const graph = await graphWith([
      prepare('breaks', async () => {
        throw new Error('out of order')
      }),
      prepare(
        'lingers',
        (signal) =>
          new Promise((_, reject) =>
            signal.addEventListener('abort', () => {
              stopped.resolve(signal.reason)
              reject(signal.reason)
            }),
          ),
      ),
    ])
    const unhandled = vi.fn()
    process.on('unhandledRejection', unhandled)
    const memory = memoryRun({ prompt: 'hello' })
    expect((await workOn(graph, memory)).left).toBe('ended')
    expect(memory.ended?.outcome).toMatchObject({ status: 'failed', error: { node: 'breaks' } })
    await stopped.promise
    await new Promise((resolve) => setImmediate(resolve))
    process.off('unhandledRejection', unhandled)
    expect(unhandled).not.toHaveBeenCalled()
  })
})

describe('a tool that asks a person', () => {
  test('may ask one question in a call: the answer to it is no answer to a second', async () => {
    const graph = await graphWith([
      callTool(
        'asks_twice',
        async (_args, context) => {
          const ask = (question: string) =>
            context.ask({ question, schema: {}, options: [], expires_in_ms: 1000 })
          await ask('Pay 10?')
          return JSON.stringify(await ask('Pay 1000?'))
        },
        false,
      ),
    ])
    const memory = memoryRun({ prompt: 'pay' })
    const models = planners(calls('asks_twice'), { text: 'Done.' })
    expect((await workOn(graph, memory, { models })).left).toBe('parked')
    memory.answer = { kind: 'answered', answer: true }
    await workOn(graph, memory, { models })
    const asked = memory.rows.find((row) => row.body.node === 'asks_twice')
    expect(asked?.body.result).toMatchObject({ is_error: true, code: 'node_failed' })
  })
})
