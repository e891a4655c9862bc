// backends: either

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeEach, describe, expect } from 'vitest'
import { systemClock } from '../../src/infra/lib/system-clock.ts'
import type { Clock } from '../../src/state/ports/clock.ts'
import { deferred } from '../support/deferred.ts'
import type { FakeModel } from '../support/fake-model/fake-model.ts'
import { type GateServer, startGate } from '../support/gate-server.ts'
import { runtimeTest } from '../support/integration-test.ts'
import { calling, say } from '../support/script.ts'
import { deadline, eventsOf, nodesOf, type TestRuntime } from '../support/test-runtime.ts'

const gateTools = fileURLToPath(new URL('../support/gate-tools', import.meta.url))
let model: FakeModel
let gate: GateServer
let runtime: TestRuntime
/** Runs that may work for so long are out of time when the test says so. */
const long = 3_600_000
const timeIsUp = deferred()
const clock: Clock = {
  ...systemClock,
  sleep: (ms, signal) => (ms > long / 2 ? timeIsUp.promise : systemClock.sleep(ms, signal)),
}

const test = runtimeTest.extend('runtimeOptions', { scope: 'file' }, async ({}, { onCleanup }) => {
  const folder = await mkdtemp(join(tmpdir(), 'mason-tools-'))
  onCleanup(() => rm(folder, { recursive: true, force: true }))
  await writeFile(
    join(folder, 'shout.tool.ts'),
    `import { z } from '${import.meta.resolve('zod')}'
import { defineTool } from '${fileURLToPath(new URL('../../src/graph/definitions.ts', import.meta.url))}'
export default defineTool({
  name: 'shout', description: 'Says it loud', kinds: ['call'], pure: true,
  input: z.strictObject({ word: z.string() }), reads: ['prompts'], writes: [],
  run: (state, { call, checkpoint }) =>
    checkpoint({ summary: 'Shouted', result: { text: call?.input.word.toUpperCase() + ' ' + state.prompts.length } }),
})`,
  )
  return { clock, toolFolders: [folder, gateTools] }
})
test.beforeAll(async ({ model: m, runtime: r }) => {
  ;[model, runtime, gate] = [m, r, await startGate()]
  return () => gate.close()
})
beforeEach(() => gate.reset())

const knock = (key: string, tool: 'gate_read' | 'gate_write' = 'gate_read'): [string, object] => [
  tool,
  { url: gate.url, key },
]
const resultsOf = async (runId: string, node: string) =>
  (await runtime.stateOf(runId)).action_history
    .at(-1)
    ?.filter((action) => action.node === node)
    .map(({ result }) => result) ?? []

describe('tools', () => {
  test('adding one takes one file: the planner is offered it and its result comes back', async () => {
    say(model, { planner: [calling(['shout', { word: 'hey' }]), { text: 'HEY 1' }] })
    const run = await runtime.complete({ prompt: 'Shout hey' })
    const [first, second] = model.requests('planner').slice(-2)
    expect(JSON.stringify(first?.tools)).toContain('"shout"')
    expect(second?.messages.find(({ role }) => role === 'tool')?.content).toContain('\nHEY 1\n')
    expect(run.answer).toBe('HEY 1')
  })

  test('pure calls of one block are under way together, two of them to one tool', async () => {
    gate.onKnock(() => ({ hold: true }))
    say(model, { planner: [calling(knock('a'), knock('b'), ['shout', { word: 'c' }]), { text: 'Done.' }] })
    const running = runtime.complete({ prompt: 'all at once' })
    await gate.waitsFor(['a', 'b'])
    gate.release()
    const run = await running
    expect(run.answer).toBe('Done.')
    expect(
      (await resultsOf(run.id, 'gate_read')).map(({ call }) => (call as { index: number }).index).sort(),
    ).toEqual([0, 1])
  })

  test('twenty calls under way together leave no warning of too many listeners', async () => {
    const warned: string[] = []
    const warn = ({ name }: Error) => void warned.push(name)
    process.on('warning', warn)
    const keys = Array.from({ length: 20 }, (_, index) => `crowd-${index}`)
    gate.onKnock(() => ({ hold: true }))
    say(model, { planner: [calling(...keys.map((key) => knock(key))), { text: 'Done.' }] })
    const running = runtime.complete({ prompt: 'all twenty at once' })
    await gate.waitsFor(keys)
    gate.release()
    expect((await running).answer).toBe('Done.')
    process.off('warning', warn)
    expect(warned).toEqual([])
  })

  test('calls that change something keep their order, each after the other has its action', async () => {
    gate.onKnock(() => ({ hold: true }))
    const block = calling(knock('one', 'gate_write'), knock('two'), knock('three', 'gate_write'))
    say(model, { planner: [block, { text: 'Done.' }] })
    const running = runtime.complete({ prompt: 'in order' })
    for (const key of ['one', 'two', 'three']) {
      await gate.waitsFor([key])
      gate.release(key)
    }
    const run = await running
    expect(gate.knocks.map(({ key }) => key)).toEqual(['one', 'two', 'three'])
    expect(nodesOf(await runtime.stateOf(run.id)).filter((node) => node.startsWith('gate'))).toEqual([
      'gate_write',
      'gate_read',
      'gate_write',
    ])
  })

  test('one that throws gives an error the model can act on, and the run goes on', async () => {
    gate.onKnock(() => ({ error: 'no such door' }))
    say(model, { planner: [calling(knock('x')), { text: 'There is no such door.' }] })
    const run = await runtime.complete({ prompt: 'knock' })
    expect(run).toMatchObject({ status: 'completed', finish_reason: 'answered' })
    expect((await resultsOf(run.id, 'gate_read'))[0]).toMatchObject({
      is_error: true,
      text: 'Error: no such door',
    })
    expect(JSON.stringify(model.requests('planner').at(-1)?.messages)).toContain('no such door')
  })

  test('one that hangs is let go of by a cancel', async () => {
    gate.onKnock(() => ({ hold: true }))
    say(model, { planner: [calling(knock('x'))] })
    const { run } = await runtime.of('default').submit({ prompt: 'hang', user_id: 'u1' })
    await gate.waitsFor(['x'])
    await runtime.of('default').cancel(run.id, 'enough')
    expect(await runtime.of('default').wait(run.id, deadline())).toMatchObject({
      status: 'cancelled',
      answer: null,
    })
    await gate.waitsFor([])
    expect((await runtime.stateOf(run.id)).action_history.at(-1)?.at(-1)).toMatchObject({
      node: 'end',
      result: { status: 'cancelled', reason: 'enough' },
    })
  })

  test('one that hangs is let go of when the time is up, and the run ends with what it has', async () => {
    gate.onKnock(({ key }) => ({ hold: key === 'slow' }))
    say(model, { planner: [calling(knock('quick')), calling(knock('slow'))] })
    const running = runtime.complete({ prompt: 'hang', limits: { timeout_ms: long } })
    await gate.waitsFor(['slow'])
    timeIsUp.resolve()
    const run = await running
    expect(run).toMatchObject({ status: 'completed', finish_reason: 'time' })
    expect(run.answer).toMatch(/time was up.*- ok/s)
    await gate.waitsFor([])
  })

  test('a result of 100 KB stays out of the state; the model is shown what its prompt has space for and may open the rest', async () => {
    const large = `begin ${'ä'.repeat(50_000)} end`
    gate.onKnock(() => ({ text: large }))
    say(model, { planner: [calling(knock('x')), { text: 'Long.' }] })
    const run = await runtime.complete({ prompt: 'read it' })
    const [result] = await resultsOf(run.id, 'gate_read')
    expect(result).toMatchObject({ blob: expect.any(String), head: large.slice(0, 2000) })
    expect(Buffer.byteLength(JSON.stringify(result))).toBeLessThan(8000)
    const asked = model.requests('planner').at(-1)
    const shown = String(asked?.messages.find(({ role }) => role === 'tool')?.content)
    expect(shown).toContain(large.slice(0, 30_000))
    expect(shown).toContain('read_result')
    expect(shown).not.toContain(' end')
    expect(shown.length).toBeLessThan(large.length * 0.9)
    expect(JSON.stringify(asked?.tools)).toContain('"read_result"')
    const inlined = await runtime.of('default').state(run.id, true)
    expect(inlined?.action_history[0]?.find(({ node }) => node === 'gate_read')?.result.text).toBe(large)
  })

  test('an answer of 100 KB arrives whole', async () => {
    const long = 'A sentence of an answer. '.repeat(4000)
    say(model, { planner: [{ text: long }] })
    const run = await runtime.complete({ prompt: 'write' })
    expect(run.answer).toBe(long)
    const done = (await eventsOf(runtime.of('default'), run.id)).at(-1)
    expect(done).toMatchObject({ event: 'done', data: { answer: long } })
  })

  test('NUL and halves of surrogate pairs go through tools, models, database and events as they are', async () => {
    const odd = 'a\u0000b\ud800c\udfffd'
    gate.onKnock(() => ({ text: odd }))
    say(model, { planner: [calling(knock(odd)), { failure: 'nul_and_surrogates', text: 'x' }] })
    const run = await runtime.complete({ prompt: `odd ${odd}` })
    expect(run.status).toBe('completed')
    expect((await resultsOf(run.id, 'gate_read'))[0]?.text).toBe(odd)
    const state = await runtime.stateOf(run.id)
    expect(state.prompts).toEqual([`odd ${odd}`])
    expect(state.chat_history.at(-1)?.content).toBe(run.answer)
  })
})
