import { expect, test } from 'vitest'
import { renderTrajectory } from '../../src/features/trajectories/trajectory.ts'
import { openEgress } from '../../src/infra/egress/egress.ts'
import { silentLog } from '../../src/infra/lib/silent-log.ts'
import { createModelGateway } from '../../src/models/call/model-gateway.ts'
import { createModelHealth } from '../../src/models/health/model-health.ts'
import { createOpenAIProvider } from '../../src/models/providers/openai/openai-provider.ts'
import { createModelChooser } from '../../src/models/routing/choose-model-and-key.ts'
import type { Action } from '../../src/state/runtime-state.ts'
import { type FakeModel, startFakeModel } from '../support/fake-model/fake-model.ts'
import { memoryRun, workOn } from '../support/memory-run.ts'
import { createCountingClock, patient, quickRetry } from '../support/models.ts'
import { callTool, graphWith } from '../support/parts.ts'
import { caller, endpoint, model, route, vendor, view } from '../support/registry-view.ts'
import { responseFormats } from '../support/response-formats.ts'

/** A route of two vendors: a model that writes its calls, and one behind it that calls natively. Both are real HTTP. */
const openRoute = (written: FakeModel, native: FakeModel) => {
  const clock = createCountingClock()
  const entryOf = (name: 'written' | 'native', server: FakeModel) =>
    model(name, {
      vendor: vendor(`of-${name}`),
      dialect: name === 'written' ? 'xml' : 'tools',
      endpoint: endpoint(name, {
        ...{ vendor_id: `of-${name}`, base_url: server.baseUrl, timeouts: patient, allow_private: true },
      }),
    })
  const health = createModelHealth({ sql: null, hints: null, clock, log: silentLog })
  const openai = createOpenAIProvider({
    egress: openEgress(),
    formats: responseFormats,
    clock,
    log: silentLog,
  })
  return createModelGateway({
    registry: {
      view: view({
        models: [entryOf('written', written), entryOf('native', native)],
        routesByRole: { planner: route(['written', 'native']) },
      }),
    },
    chooser: createModelChooser(health),
    providers: { openai, http: openai },
    meter: {
      reserve: async () => ({ granted: true }),
      settle: () => {},
      flush: async () => {},
      [Symbol.asyncDispose]: async () => {},
    },
    unread: { keep: () => {} },
    ...{ health, clock, log: silentLog, retry: quickRetry, redact: (text: string) => text },
  }).for(caller())
}

test('a run goes on with the native model of its route when the one that writes is down, and no reasoning reaches another vendor', async () => {
  await using written = await startFakeModel()
  await using native = await startFakeModel()
  const call =
    '<think>of the writer</think>\n<mason_server><look>{"q":"a"}</look></mason_server>\n<execute_tools />'
  written.script({
    planner: [{ text: `${call}\n<result index="0">made up</result>` }, { failure: { status: 503 } }],
  })
  native.script({
    planner: [
      { reasoning: 'of the caller', tool_calls: [{ name: 'look', arguments: { q: 'b' } }] },
      { text: 'Seen both.' },
    ],
  })
  const graph = await graphWith([callTool('look', ({ q }) => `seen ${String(q)}`)])
  const memory = memoryRun({ prompt: 'What now?' })
  const { state } = await workOn(graph, memory, { models: openRoute(written, native) })
  expect(memory.ended?.result.answer).toBe('Seen both.')
  const actions = (state.action_history[0] ?? []) as Action[]
  const plans = actions.filter(({ node }) => node === 'planner')
  expect(plans.map(({ result }) => result.dialect)).toEqual(['xml', 'tools', 'tools'])
  expect(plans[0]?.result).toMatchObject({ wrote: call })
  expect(Number(plans[0]?.result.cut)).toBeGreaterThan(0)
  const trajectory = renderTrajectory(actions, { serverOf: () => undefined, answer: 'Seen both.' })
  expect(trajectory.origin).toBe('mixed')
  // what the writer wrote is there as it is, then the native call as the language has it
  expect(trajectory.text).toContain(`${call}\n<result index="0">seen a</result>\n`)
  expect(trajectory.text).toContain('<mason_server><look>{"q":"b"}</look></mason_server>')
  const [first] = written.requests('planner')
  expect(first?.body.stop).toEqual(['<result'])
  expect(first?.body.tools).toBeUndefined()
  const [asked, again] = native.requests('planner').map(({ body }) => body)
  expect(asked?.stop).toBeUndefined()
  expect(JSON.stringify(asked?.messages)).toContain('seen a')
  expect(JSON.stringify(asked?.messages)).not.toContain('of the writer')
  expect(JSON.stringify(again?.messages)).toContain('of the caller')
  const sentToWriter = JSON.stringify(written.requests('planner').map(({ body }) => body.messages))
  expect(sentToWriter).not.toContain('of the caller')
})

test('a prompt that is too long for the model that writes is asked of the native one', async () => {
  await using written = await startFakeModel()
  await using native = await startFakeModel()
  written.script({ planner: [{ failure: { status: 413 } }] })
  native.script({ planner: [{ text: 'Seen.' }] })
  const memory = memoryRun({ prompt: 'What now?' })
  await workOn(await graphWith([]), memory, { models: openRoute(written, native) })
  expect(memory.ended?.result.answer).toBe('Seen.')
  expect([written, native].map((one) => one.requests('planner').length)).toEqual([1, 1])
})
