// backends: either

import { describe, expect } from 'vitest'
import { openMetricsServer } from '../../src/app/http/metrics-server.ts'
import type { Log } from '../../src/state/ports/log.ts'
import type { FakeModel } from '../support/fake-model/fake-model.ts'
import { runtimeTest } from '../support/integration-test.ts'
import { parseMetrics, readMetric } from '../support/metrics.ts'
import { calling, say } from '../support/script.ts'

const lines: Record<string, unknown>[] = []
const log: Log = {
  debug() {},
  info: (data, message) => void lines.push({ ...data, message }),
  warn() {},
  error() {},
}
const test = runtimeTest.extend('runtimeOptions', { scope: 'file' }, ({ model }: { model: FakeModel }) => ({
  log,
  models: null,
  config: {
    openai: { apiKey: 'k', baseUrl: model.baseUrl, model: 'thinker', embeddingModel: 'vectors' },
  },
}))

describe('the metrics of a process', () => {
  test('count runs by their end, waits, appends, tools and models, and a line says how a run ended', async ({
    model,
    runtime,
  }) => {
    const steps = calling(['calculate', { expression: '6*7' }], ['read_result', { action_id: 999 }])
    say(model, { planner: [steps, { text: 'It is 42.' }] })
    const run = await runtime.complete({ prompt: 'six times seven' })
    const actions = (await runtime.stateOf(run.id)).action_history[0]?.length ?? 0
    const metrics = parseMetrics(await runtime.metrics.text())
    const values = (...names: string[]) => names.map((name) => metrics.get(name) ?? 0)
    expect(
      values(
        'mason_runs_ended_total{status="completed",reason="answered"}',
        'mason_run_duration_seconds_count{status="completed"}',
        'mason_queue_wait_seconds_count',
        'mason_tool_duration_seconds_count{tool="calculate"}',
        'mason_tool_errors_total{tool="calculate",code="node_failed"}',
        'mason_leases_lost_total',
        'mason_append_duration_seconds_count',
      ),
    ).toEqual([1, 1, 1, 1, 0, 0, actions])
    const failed = [...metrics].filter(([name]) =>
      name.startsWith('mason_tool_errors_total{tool="read_result"'),
    )
    expect(failed.map(([, count]) => count)).toEqual([1])
    const [requests] = [...metrics].filter(([name]) =>
      /^mason_model_requests_total\{.*model="thinker",code="ok"\}$/.test(name),
    )
    expect(requests?.[1]).toBe(model.requests().length)
    expect(values('mason_model_request_duration_seconds_count{model="thinker"}')).toEqual([requests?.[1]])
    expect(lines.filter(({ message }) => message === 'a run ended')).toEqual([
      {
        run_id: run.id,
        business_id: 'default',
        status: 'completed',
        reason: 'answered',
        actions,
        tokens: run.usage.total_tokens,
        ms: expect.any(Number),
        message: 'a run ended',
      },
    ])
  })

  test('count a run that was cancelled in the queue, and never the text of its reason', async ({
    runtime,
  }) => {
    const api = runtime.of('default')
    const { run } = await api.submit({ prompt: 'later', user_id: 'u1', delay_ms: 60_000 })
    await api.cancel(run.id, 'a private reason')
    expect(await readMetric(runtime, 'mason_runs_ended_total{status="cancelled",reason=""}')).toBe(1)
    const text = await runtime.metrics.text()
    expect(text).not.toContain('private')
    expect(lines.at(-1)).toMatchObject({ run_id: run.id, status: 'cancelled', actions: 0, tokens: 0, ms: 0 })
    expect(JSON.stringify(lines)).not.toContain('private')
  })

  test('are served on a port of their own, with probes that say whether the process works', async ({
    runtime,
  }) => {
    let isWorking = false
    const address = { host: '127.0.0.1', port: 0 }
    await using server = await openMetricsServer(runtime, address, () => isWorking)
    const call = async (path: string, method = 'GET') => {
      const response = await fetch(`http://127.0.0.1:${server.port}${path}`, { method })
      return { status: response.status, text: await response.text() }
    }
    expect((await call('/healthz')).status).toBe(200)
    expect((await call('/readyz')).status).toBe(503)
    isWorking = true
    const ready = await call('/readyz')
    expect([ready.status, JSON.parse(ready.text).ok]).toEqual([200, true])
    expect((await call('/metrics?x=1')).text).toContain('mason_runs_ready ')
    expect((await call('/v1/runs')).status).toBe(404)
    expect((await call('/metrics', 'POST')).status).toBe(405)
    await expect(openMetricsServer(runtime, { ...address, port: server.port }, () => true)).rejects.toThrow(
      'EADDRINUSE',
    )
  })
})
