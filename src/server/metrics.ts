import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { ModelStats, Runtime } from '../runtime-api.ts'
import type { OpenReplies } from './open-replies.ts'

export type Metrics = {
  contentType: string
  /** One request answered; `route` is the template and never the path, so that labels stay few. */
  observeRequest(route: string, method: string, status: number, seconds: number): void
  /** The text for Prometheus. Without the runtime's counters, and `mason_stats_up 0`, while those cannot be read. */
  text(): Promise<string>
}

/** Metrics of one server, in a registry of its own. */
export const createMetrics = (
  runtime: Pick<Runtime, 'stats' | 'modelStats' | 'spanCounts'>,
  open: OpenReplies,
): Metrics => {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry, prefix: 'mason_' })
  const requests = new Histogram({
    name: 'mason_http_request_duration_seconds',
    help: 'Time to answer, by route; streams of events are not counted',
    labelNames: ['route', 'method', 'status'],
    buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60],
    registers: [registry],
  })
  const gauge = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
    new Gauge({ name, help, labelNames, registers: [registry] })
  const runs = gauge('mason_runs', 'Runs that have not ended, by status', 'status')
  const workers = gauge('mason_workers', 'Workers that hold or look for runs')
  const outbox = gauge('mason_outbox', 'Bells not rung yet')
  const streams = gauge('mason_event_streams', 'Streams of events open on this process')
  const up = gauge('mason_stats_up', '1 when the counters of the runtime could be read')

  const spans = new Counter({
    name: 'mason_trace_spans_total',
    help: 'Spans by what became of them: exported, failed (no collector took them), dropped (no room to wait)',
    labelNames: ['result'],
    registers: [registry],
  })
  const told = modelMetrics(registry)

  const readStats = async (): Promise<void> => {
    const stats = await runtime.stats()
    for (const status of ['queued', 'running', 'input_required'] as const) runs.set({ status }, stats[status])
    workers.set(stats.workers)
    outbox.set(stats.outbox)
  }

  return {
    contentType: registry.contentType,
    observeRequest: (route, method, status, seconds) =>
      requests.observe({ route, method, status: String(status) }, seconds),
    async text() {
      streams.set(open.streams)
      told(runtime.modelStats())
      spans.reset()
      for (const [result, count] of Object.entries(runtime.spanCounts() ?? {})) spans.inc({ result }, count)
      const read = await readStats().then(
        () => true,
        () => false,
      )
      up.set(read ? 1 : 0)
      if (!read) for (const stale of [runs, workers, outbox]) stale.remove({})
      return registry.metrics()
    },
  }
}

/** What this process asked of models, and how its keys stand; set anew from the runtime's counts at each look. */
const modelMetrics = (registry: Registry): ((stats: ModelStats) => void) => {
  const registers = [registry]
  const requests = new Counter({
    name: 'mason_model_requests_total',
    help: 'Requests to model vendors, by the alias of the model; code is ok or that of the fault',
    labelNames: ['vendor', 'model', 'code'],
    registers,
  })
  const tokens = new Counter({
    name: 'mason_model_tokens_total',
    help: 'Tokens that vendors counted; cached ones are part of the prompt, reasoning ones of the completion',
    labelNames: ['vendor', 'model', 'kind'],
    registers,
  })
  const fallbacks = new Counter({
    name: 'mason_model_fallbacks_total',
    help: 'Calls that another model or key answered than the first one asked',
    registers,
  })
  const healthy = new Gauge({
    name: 'mason_model_keys_healthy',
    help: 'Keys of a vendor that can be used now',
    labelNames: ['vendor'],
    registers,
  })
  const low = new Gauge({
    name: 'mason_model_pool_low',
    help: '1 while a vendor has fewer healthy keys than its floor: alert on it',
    labelNames: ['vendor'],
    registers,
  })
  return (stats) => {
    for (const metric of [requests, tokens, fallbacks, healthy, low]) metric.reset()
    for (const { count, ...labels } of stats.requests) requests.inc(labels, count)
    for (const { count, ...labels } of stats.tokens) tokens.inc(labels, count)
    fallbacks.inc(stats.fallbacks)
    for (const pool of stats.pools) {
      healthy.set({ vendor: pool.vendor }, pool.healthy)
      low.set({ vendor: pool.vendor }, pool.isLow ? 1 : 0)
    }
  }
}
