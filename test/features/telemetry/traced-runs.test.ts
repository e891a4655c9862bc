// backends: either

import { createServer, request as forward } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect } from 'vitest'
import { recallWaitMs } from '../../../src/features/user-memory/store/quick-embedder.ts'
import type { Database } from '../../../src/infra/database/database.ts'
import { systemClock } from '../../../src/infra/lib/system-clock.ts'
import type { Log } from '../../../src/state/ports/log.ts'
import { openBackend, unique } from '../../support/backend.ts'
import { moment } from '../../support/clock.ts'
import type { FakeModel } from '../../support/fake-model/fake-model.ts'
import { startServer, type TestServer } from '../../support/http.ts'
import { closing, runtimeTest } from '../../support/integration-test.ts'
import { lessonOf } from '../../support/memory.ts'
import { readMetric } from '../../support/metrics.ts'
import { endLease, rowOf, until } from '../../support/runs.ts'
import { calling, say } from '../../support/script.ts'
import { deadline, openTestRuntime, type TestRuntime } from '../../support/test-runtime.ts'
import { type SeenSpan, startTraceCollector, type TraceCollector } from '../../support/trace-collector.ts'

/** Real runs, and what a collector got of them. */

let model: FakeModel
let collector: TraceCollector
let runtime: TestRuntime
let database: Database
let server: TestServer

/** The fake model, with embeddings beside it. */
const startVendor = async (model: FakeModel) => {
  const embed = (texts: readonly string[]) => ({
    object: 'list',
    model: 'vectors',
    data: texts.map((text, index) => ({ index, embedding: [1, text.length % 7, 2, 3], object: 'embedding' })),
    usage: { prompt_tokens: 3 * texts.length, total_tokens: 3 * texts.length },
  })
  const front = createServer(async (request, response) => {
    if (request.url !== '/v1/embeddings') {
      const { method, headers, url } = request
      const onward = forward(
        { host: '127.0.0.1', port: model.port, path: url, method, headers },
        (answer) => {
          response.writeHead(answer.statusCode ?? 500, answer.headers)
          answer.pipe(response)
        },
      )
      onward.on('error', () => response.destroy())
      response.on('close', () => onward.destroy())
      return void request.pipe(onward)
    }
    let text = ''
    for await (const part of request) text += String(part)
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(embed((JSON.parse(text) as { input: string[] }).input)))
  })
  await new Promise<void>((resolve) => void front.listen(0, '127.0.0.1', resolve))
  return {
    baseUrl: `http://127.0.0.1:${(front.address() as AddressInfo).port}/v1`,
    async close() {
      front.closeAllConnections()
      await new Promise<void>((resolve) => void front.close(() => resolve()))
    },
  }
}

/** Spans must not contain these: texts of a user, a model, a tool's arguments, a memory. */
const said = ['zanzibar', 'kilimanjaro', '6*7', 'serengeti', 'ngorongoro', 'the-key-of-this-test']

const traced = (otlpEndpoint: string, baseUrl: string) => ({
  otlpEndpoint,
  openai: { apiKey: 'the-key-of-this-test', baseUrl, model: 'thinker', embeddingModel: 'vectors' },
})
/** The wait for the vector of a question does not end: a slow machine does not search by words alone. */
const patientClock = {
  ...systemClock,
  sleep: (ms: number, signal?: AbortSignal) =>
    systemClock.sleep(ms === recallWaitMs ? 3_600_000 : ms, signal),
}
const traceWaits = { everyMs: 20, timeoutMs: 20_000 }

const test = runtimeTest
  .extend('vendor', { scope: 'file' }, async ({ model }, { onCleanup }) => {
    const vendor = await startVendor(model)
    onCleanup(() => vendor.close())
    return vendor
  })
  .extend('collector', { scope: 'file' }, closing(startTraceCollector))
  .extend('runtimeOptions', { scope: 'file' }, ({ vendor, collector }) => ({
    models: null,
    config: traced(collector.url, vendor.baseUrl),
    traceDelays: traceWaits,
    maxRuns: 1,
    clock: patientClock,
    // so long that no renewal comes between: a worker that is overtaken learns of it from the epoch
    leaseMs: 600_000,
    // looks once as it is started: so a test says when
    memory: { everyMs: 600_000 },
  }))
  .extend('server', { scope: 'file' }, async ({ runtime }, { onCleanup }) => {
    const server = await startServer({ runtime, auth: 'off' })
    onCleanup(() => server.close())
    return server
  })
test.beforeAll(({ model: m, collector: c, database: d, runtime: r, server: s }) => {
  ;[model, collector, database, runtime, server] = [m, c, d, r, s]
})

const named = (name: string, runId?: string) => (span: SeenSpan) =>
  span.name === name && (runId === undefined || span.traceId === runId.slice(4))
const one = async (name: string, runId: string): Promise<SeenSpan> => {
  const [span] = await collector.received(name, named(name, runId))
  if (!span) throw new Error(`there is no ${name}`)
  return span
}
const inTrace = (runId: string): SeenSpan[] =>
  collector.spans
    .filter(({ traceId }) => traceId === runId.slice(4))
    .sort((a, b) => a.beganAt - b.beganAt || b.endedAt - a.endedAt)

/** The tree as text; also what docs/telemetry.md shows. */
const waterfall = (spans: readonly SeenSpan[]): string => {
  const start = spans[0]?.beganAt ?? 0
  const depth = (span: SeenSpan): number => {
    const parent = spans.find(({ spanId }) => spanId === span.parentSpanId)
    return parent ? depth(parent) + 1 : 0
  }
  const at = (ms: number): string => (ms - start).toFixed(1).padStart(8)
  return spans
    .map((span) => `${at(span.beganAt)} ${at(span.endedAt)}  ${'  '.repeat(depth(span))}${span.name}`)
    .join('\n')
}

const lesson = JSON.stringify({
  memories: [lessonOf('preference', 'I never eat serengeti beans', 'The user never eats serengeti beans.')],
  profile: [],
  summary: 'The user asked about ngorongoro.',
})

describe('a run that came by HTTP', () => {
  const user_id = unique('u')
  const traceparent = `00-${'c'.repeat(32)}-${'d'.repeat(16)}-01`
  let runId = ''

  test('is one trace: request, work, nodes, tools and models, and what is learned of it begins after its result', async () => {
    say(model, {
      planner: [calling(['calculate', { expression: '6*7' }]), { text: 'It is 42, says kilimanjaro.' }],
      distill: [{ text: lesson }],
    })
    const reply = await server.call('POST', '/v1/runs/wait', {
      json: { user_id, prompt: 'I never eat serengeti beans. What is six times seven in zanzibar?' },
      headers: { traceparent },
    })
    const answeredAt = moment()
    expect(reply.body).toMatchObject({ status: 'completed', answer: 'It is 42, says kilimanjaro.' })
    runId = reply.body.id
    // nothing is learned yet, and the answer is out
    expect(collector.spans.filter(named('learn_from_run'))).toEqual([])
    runtime.startMemoryWork()

    const learn = await one('learn_from_run', runId)
    const root = await one('POST /v1/runs/wait', runId)
    const run = await one('invoke_workflow mason', runId)
    expect(run.endedAt).toBeLessThanOrEqual(learn.beganAt)
    // the clock of spans may be as far off the wall's
    expect(learn.beganAt).toBeGreaterThan(answeredAt - 50)
    expect(root.beganAt).toBeLessThanOrEqual(run.beganAt)

    expect(root).toMatchObject({
      parentSpanId: '',
      links: [{ traceId: 'c'.repeat(32), spanId: 'd'.repeat(16) }],
      attributes: { 'http.route': '/v1/runs/wait', 'mason.run.id': runId, 'mason.business.id': 'default' },
    })
    expect([run.parentSpanId, learn.parentSpanId]).toEqual([root.spanId, root.spanId])
    expect(run.attributes).toMatchObject({
      'gen_ai.operation.name': 'invoke_workflow',
      'gen_ai.conversation.id': reply.body.session_id,
      'mason.run.epoch': 1,
      'mason.run.left': 'ended',
      'mason.run.status': 'completed',
      'mason.run.reason': 'answered',
    })

    const spans = inTrace(runId)
    const parentOf = (span: SeenSpan): string =>
      spans.find(({ spanId }) => spanId === span.parentSpanId)?.name ?? 'none'
    const visits = spans.filter(({ attributes }) => attributes['mason.node'] !== undefined)
    expect(visits.map(({ name }) => name)).toEqual([
      'load-session',
      'execute_tool user-context',
      'plan planner',
      'execute_tool calculate',
      'invoke_agent reflection',
      'plan planner',
      'execute_tool answer',
      'end',
    ])
    expect(new Set(visits.map(parentOf))).toEqual(new Set(['invoke_workflow mason']))
    expect(visits.map(({ attributes }) => attributes['mason.action.id'])).toEqual([1, 2, 3, 4, 5, 6, 7, 8])

    const chats = spans.filter(({ attributes }) => attributes['gen_ai.operation.name'] === 'chat')
    const places = chats.map((span) => `${span.attributes['mason.model.role']} in ${parentOf(span)}`)
    expect(places).toEqual([
      'planner in plan planner',
      'planner in plan planner',
      'distill in learn_from_run',
    ])
    for (const { name, attributes, kind } of chats) {
      expect(name).toBe(`chat ${attributes['mason.model.alias']}`)
      expect(kind).toBe(3)
      expect(attributes).toMatchObject({
        'gen_ai.request.model': 'thinker',
        'gen_ai.usage.input_tokens': 10,
        'gen_ai.usage.output_tokens': 5,
        'mason.model.tries': 1,
      })
      expect(attributes['gen_ai.provider.name']).toBeTruthy()
    }
    expect(chats[0]?.attributes['gen_ai.response.finish_reasons']).toEqual(['tool_calls'])
    if (process.env.SHOW_WATERFALL) process.stdout.write(`${waterfall(spans)}\n`)
  })

  test('of a later turn shows what was looked up in memory, with its embedding', async () => {
    say(model, { planner: [{ text: 'Beans.' }], distill: [{ text: '{}' }] })
    const reply = await server.call('POST', '/v1/runs/wait', {
      json: { user_id, prompt: 'What do I never eat?' },
    })
    expect(reply.body.status).toBe('completed')
    const { id } = reply.body
    const retrieval = await one('retrieval memory', id)
    const recall = await one('execute_tool recall-memory', id)
    const [embedding] = await collector.received(
      'embeddings',
      ({ traceId, attributes }) =>
        traceId === id.slice(4) && attributes['gen_ai.operation.name'] === 'embeddings',
    )
    // the memory, and the turn that taught it
    expect(retrieval).toMatchObject({
      parentSpanId: recall.spanId,
      attributes: { 'mason.memory.found': 2, 'gen_ai.data_source.id': 'memory' },
    })
    expect(embedding).toMatchObject({
      parentSpanId: retrieval.spanId,
      attributes: { 'gen_ai.request.model': 'vectors', 'gen_ai.usage.input_tokens': 3 },
    })
  })

  test('that fails shows the code of its error, its node and its attempt', async () => {
    say(model, { planner: [{ failure: { status: 400, body: { error: { message: 'no zanzibar' } } } }] })
    const reply = await server.call('POST', '/v1/runs/wait', { json: { user_id, prompt: 'zanzibar' } })
    expect(reply.body.status).toBe('failed')
    const { id } = reply.body
    const run = await one('invoke_workflow mason', id)
    const code = reply.body.error.code
    expect(run).toMatchObject({ status: 2, attributes: { 'error.type': code, 'mason.run.status': 'failed' } })
    const chat = await one('chat', id)
    expect(chat).toMatchObject({ status: 2, attributes: { 'error.type': code, 'mason.model.tries': 1 } })
  })
})

test('a worker that takes a run over goes on in its trace', async () => {
  await runtime.startWorker({ concurrency: 1, maxRuns: 1 })
  say(model, { planner: [{ hold: true, text: 'lost' }, { text: 'Taken over.' }] })
  const api = runtime.of('default')
  const { run } = await api.submit({ user_id: 'u2', prompt: 'zanzibar' })
  await until('the planner is asked', () => model.held() === 1)
  await endLease(database, run.id)
  // its wake-up makes the idle worker claim
  const other = await api.submit({ user_id: 'u3', prompt: 'kilimanjaro' })
  await until('another has it', async () => (await rowOf(database, run.id)).epoch === 2)
  const view = await api.wait(run, deadline())
  expect(view).toMatchObject({ status: 'completed', answer: 'Taken over.' })
  model.release()
  await api.wait(other.run, deadline())
  const works = await collector.received('claims', named('invoke_workflow mason', run.id), 2)
  const root = await one('submit', run.id)
  const facts = works.map(({ attributes, parentSpanId }) => [
    attributes['mason.run.epoch'],
    attributes['mason.run.left'],
    parentSpanId,
  ])
  expect(facts).toEqual([
    [1, 'lost', root.spanId],
    [2, 'ended', root.spanId],
  ])
  expect(new Set(works.map(({ attributes }) => attributes['mason.worker.id'])).size).toBe(2)
})

test('the exported spans contain no text of a user, model or tool, and no key', () => {
  const text = collector.raw.join('\n').toLowerCase()
  expect(text).toContain('invoke_workflow')
  expect(said.filter((word) => text.includes(word))).toEqual([])
})

test('spans are counted by result in /metrics', async () => {
  const { text } = await server.call('GET', '/metrics')
  expect(text).toMatch(/mason_trace_spans_total\{result="exported"\} [1-9]/)
  expect(text).toMatch(/mason_trace_spans_total\{result="dropped"\} 0/)
})

test.for(['refused', 500, 'hang'] as const)(
  'a collector that is %s changes nothing for a run',
  async (how, { vendor }) => {
    const apart = await openBackend()
    const dead = await startTraceCollector()
    const warned: string[] = []
    const log: Log = { debug() {}, info() {}, warn: (_, message) => void warned.push(message), error() {} }
    if (how === 'refused') await dead[Symbol.asyncDispose]()
    else dead.behave(how)
    say(model, { planner: [{ text: 'Here.' }] })
    const own = { ...apart, config: { ...apart.config, ...traced(dead.url, vendor.baseUrl) } }
    const quiet = await openTestRuntime(own, { log, traceDelays: { everyMs: 5, timeoutMs: 100 } })
    try {
      expect(await quiet.complete({ prompt: 'zanzibar' })).toMatchObject({
        status: 'completed',
        answer: 'Here.',
      })
      const spans = (result: string) => readMetric(quiet, `mason_trace_spans_total{result="${result}"}`)
      await until('spans have failed', async () => (await spans('failed')) > 0)
      expect(await spans('exported')).toBe(0)
    } finally {
      await quiet.close()
      if (how !== 'refused') await dead[Symbol.asyncDispose]()
      await apart.drop()
    }
    expect(warned.filter((message) => message.includes('traces'))).toHaveLength(1)
  },
)
