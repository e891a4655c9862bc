import { readdirSync, readFileSync } from 'node:fs'
import { SpanStatusCode } from '@opentelemetry/api'
import { InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { toTracesUrl } from '../../../src/features/telemetry/exporter.ts'
import {
  createOtlpTracer,
  createSpanClock,
  parseTraceparent,
  toRootSpanIds,
} from '../../../src/features/telemetry/otlp-tracer.ts'
import { openTelemetry } from '../../../src/features/telemetry/telemetry.ts'
import { newRunId } from '../../../src/infra/lib/ids.ts'
import { systemClock } from '../../../src/infra/lib/system-clock.ts'
import { MasonError } from '../../../src/state/errors.ts'
import type { Log } from '../../../src/state/ports/log.ts'
import type { AcceptedRun, RunWork } from '../../../src/state/ports/tracer.ts'
import { RunStoppedError } from '../../../src/state/run-stop.ts'
import { until } from '../../support/runs.ts'
import { startTraceCollector } from '../../support/trace-collector.ts'

const ids = (run_id: string) => ({ run_id, business_id: 'b', session_id: 's', turn: 1 })
const accepted = (run_id: string, more: Partial<AcceptedRun> = {}): AcceptedRun => ({
  ...ids(run_id),
  entry: { by: 'http', route: '/v1/runs', beganAtMs: Date.now() },
  replayed: false,
  ...more,
})
const work = (run_id: string): RunWork => ({ ...ids(run_id), epoch: 1, claims: 1, worker_id: 'w' })

/** One process that traces, and what it would send. */
const openProcess = () => {
  const sent = new InMemorySpanExporter()
  const { tracer } = createOtlpTracer(new SimpleSpanProcessor(sent), '0')
  return { tracer, spans: () => sent.getFinishedSpans() }
}

afterEach(() => void vi.unstubAllEnvs())

describe('the trace of a run', () => {
  test('is named by the digits of its id, in every process alike', () => {
    const id = newRunId()
    expect(toRootSpanIds(id)).toEqual({
      traceId: id.slice(4),
      spanId: expect.stringMatching(/^[0-9a-f]{16}$/),
    })
    expect(toRootSpanIds(id)).toEqual(toRootSpanIds(id))
    expect(toRootSpanIds(newRunId()).spanId).not.toBe(toRootSpanIds(id).spanId)
    expect(toRootSpanIds('an id of another shape').traceId).toMatch(/^[0-9a-f]{32}$/)
  })

  test('is one tree over independent processes', async () => {
    const [api, worker] = [openProcess(), openProcess()]
    const id = newRunId()
    await worker.tracer.run(work(id), () =>
      worker.tracer.visit({ id: 'v', name: 'planner', kind: 'node', call: null }, async () => {}),
    )
    api.tracer.accepted(accepted(id))
    const [root] = api.spans()
    const [visit, run] = worker.spans()
    expect(root?.spanContext()).toMatchObject(toRootSpanIds(id))
    expect(root?.parentSpanContext).toBeUndefined()
    expect(run?.parentSpanContext).toMatchObject(toRootSpanIds(id))
    expect(visit?.parentSpanContext?.spanId).toBe(run?.spanContext().spanId)
    expect([root?.name, run?.name, visit?.name]).toEqual([
      'POST /v1/runs',
      'invoke_workflow mason',
      'plan planner',
    ])
  })

  test("links to the caller's trace; a repeated request belongs to the existing root span", () => {
    const { tracer, spans } = openProcess()
    const id = newRunId()
    const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
    const entry = { by: 'http', route: '/v1/runs', beganAtMs: Date.now(), traceparent } as const
    tracer.accepted(accepted(id, { entry }))
    tracer.accepted(accepted(id, { replayed: true }))
    const [root, again] = spans()
    expect(root?.links[0]?.context).toMatchObject({ traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) })
    expect(again?.parentSpanContext?.spanId).toBe(root?.spanContext().spanId)
    expect(again?.spanContext().spanId).not.toBe(root?.spanContext().spanId)
  })

  test('has errors by their code, and no reason of a cancel', async () => {
    const { tracer, spans } = openProcess()
    const words = 'the words of a user'
    await expect(
      tracer.run(work(newRunId()), async () => {
        throw new MasonError('database_unavailable', words)
      }),
    ).rejects.toThrow(words)
    await tracer.run(work(newRunId()), async (note) =>
      note({ exit: 'ended', outcome: { status: 'cancelled', reason: words } }),
    )
    const [failed, cancelled] = spans()
    expect(failed?.attributes['error.type']).toBe('database_unavailable')
    expect(cancelled?.attributes).toMatchObject({
      'mason.run.left': 'ended',
      'mason.run.status': 'cancelled',
    })
    expect(
      JSON.stringify(spans().map(({ attributes, events, status }) => [attributes, events, status])),
    ).not.toContain(words)
  })

  test('records an abort from outside by its kind, and not as an error', async () => {
    const { tracer, spans } = openProcess()
    const stopped = new RunStoppedError({ kind: 'cancel', reason: 'the words of a user' })
    const visit = tracer.visit({ id: 'v', name: 'planner', kind: 'node', call: null }, () =>
      Promise.reject(stopped),
    )
    await expect(visit).rejects.toBe(stopped)
    const [span] = spans()
    expect(span?.status.code).toBe(SpanStatusCode.UNSET)
    expect(span?.attributes['mason.stopped']).toBe('cancel')
    expect(span?.attributes).not.toHaveProperty('error.type')
    expect(JSON.stringify(span?.attributes)).not.toContain('the words')
  })

  test('is sampled as a whole: all processes decide alike', async () => {
    vi.stubEnv('OTEL_TRACES_SAMPLER', 'parentbased_traceidratio')
    vi.stubEnv('OTEL_TRACES_SAMPLER_ARG', '0.5')
    const [api, worker] = [openProcess(), openProcess()]
    for (let nth = 0; nth < 60; nth++) {
      const id = newRunId()
      api.tracer.accepted(accepted(id))
      await worker.tracer.run(work(id), () => worker.tracer.retrieval(async () => {}))
    }
    const traces = (spans: ReturnType<typeof api.spans>) =>
      new Set(spans.map((span) => span.spanContext().traceId))
    expect(traces(worker.spans())).toEqual(traces(api.spans()))
    expect(worker.spans()).toHaveLength(2 * api.spans().length)
    expect(api.spans().length).toBeGreaterThan(0)
    expect(api.spans().length).toBeLessThan(60)
  })

  test('has the service attributes of the environment', async () => {
    vi.stubEnv('OTEL_SERVICE_NAME', 'my-agents')
    vi.stubEnv('OTEL_RESOURCE_ATTRIBUTES', 'deployment.environment.name=test')
    const { tracer, spans } = openProcess()
    tracer.accepted(accepted(newRunId()))
    expect(spans()[0]?.resource.attributes).toMatchObject({
      'service.name': 'my-agents',
      'deployment.environment.name': 'test',
    })
  })
})

test('a traceparent is read as W3C writes it, and nothing else is', () => {
  const [trace, span] = ['a'.repeat(32), 'b'.repeat(16)]
  expect(parseTraceparent(`00-${trace}-${span}-01`)).toEqual({ traceId: trace, spanId: span, sampled: true })
  expect(parseTraceparent(`00-${trace}-${span}-00`)?.sampled).toBe(false)
  expect(parseTraceparent(`01-${trace}-${span}-01-more`)?.traceId).toBe(trace)
  for (const wrong of [
    undefined,
    '',
    `00-${trace}-${span}`,
    `00-${trace}-${span}-01-more`,
    `ff-${trace}-${span}-01`,
    `00-${'0'.repeat(32)}-${span}-01`,
    `00-${trace}-${'0'.repeat(16)}-01`,
    `00-${trace.toUpperCase()}-${span}-01`,
  ])
    expect(parseTraceparent(wrong)).toBeNull()
})

test('the path of the signal is appended to the base endpoint', () => {
  expect(toTracesUrl('http://c:4318')).toBe('http://c:4318/v1/traces')
  expect(toTracesUrl('http://c:4318/')).toBe('http://c:4318/v1/traces')
  expect(toTracesUrl('https://c/otlp/?a=b')).toBe('https://c/otlp/v1/traces?a=b')
})

test('the clock of spans goes on evenly, and follows the wall clock where that was set anew', () => {
  let [wall, monotonic] = [1000, 0]
  const now = createSpanClock(
    () => wall,
    () => monotonic,
  )
  monotonic = 0.4
  expect(now()).toBe(1000.4)
  ;[wall, monotonic] = [990, 2]
  expect(now()).toBe(1002)
  ;[wall, monotonic] = [5000, 3]
  expect(now()).toBe(5000)
})

describe('without an endpoint', () => {
  test('nothing of OpenTelemetry is loaded: only what is imported on demand imports it', () => {
    const folder = `${import.meta.dirname}/../../../src`
    const texts = readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts'))
      .map((path) => ({ path, text: readFileSync(`${folder}/${path}`, 'utf8') }))
    const users = texts.filter(({ text }) => text.includes(`from '@opentelemetry`)).map(({ path }) => path)
    expect(users.sort()).toEqual(['features/telemetry/exporter.ts', 'features/telemetry/otlp-tracer.ts'])
    const importers = texts.filter(({ text }) =>
      /^import(?! type)[^'"]*(exporter|otlp-tracer)\.ts'/m.test(text),
    )
    expect(importers.map(({ path }) => path)).toEqual([])
  })
})

describe('a collector', () => {
  const open = async (url: string, waits: { everyMs: number; timeoutMs: number }) => {
    const warned: Record<string, unknown>[] = []
    const log: Log = { debug() {}, info() {}, warn: (data) => void warned.push(data), error() {} }
    return { ...(await openTelemetry({ endpoint: url, clock: systemClock, log, ...waits })), warned }
  }

  test('that hangs costs spans and nothing else: a bounded number waits, the others are counted', async () => {
    await using collector = await startTraceCollector()
    collector.behave('hang')
    const telemetry = await open(collector.url, { everyMs: 5, timeoutMs: 50 })
    for (let nth = 0; nth < 3000; nth++) telemetry.tracer.accepted(accepted(newRunId()))
    // one batch of 512 is on its way, 2048 spans wait
    expect(telemetry.counts()).toMatchObject({ dropped: 3000 - 512 - 2048 })
    await telemetry.close()
    expect(telemetry.counts()).toMatchObject({ exported: 0 })
    expect(telemetry.warned).toHaveLength(1)
  })

  test('that refuses is logged once, without what it said', async () => {
    await using collector = await startTraceCollector()
    collector.behave(500)
    const telemetry = await open(collector.url, { everyMs: 1, timeoutMs: 20_000 })
    for (const failed of [1, 2]) {
      telemetry.tracer.accepted(accepted(newRunId()))
      await until('it refused', () => telemetry.counts()?.failed === failed)
    }
    expect(telemetry.warned).toEqual([
      { origin: collector.url, code: 500, exported: 0, failed: 1, dropped: 0 },
    ])
    await telemetry.close()
  })

  test('gets what is left when the process closes', async () => {
    await using collector = await startTraceCollector()
    const telemetry = await open(collector.url, { everyMs: 600_000, timeoutMs: 20_000 })
    const id = newRunId()
    telemetry.tracer.accepted(accepted(id))
    await telemetry.close()
    const [span] = await collector.received('root', () => true)
    expect(span?.traceId).toBe(id.slice(4))
  })
})
