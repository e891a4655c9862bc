import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { ModelStats, Runtime } from '../../runtime/api.ts'
import type { OpenResponses } from './open-responses.ts'

/** What a server counts, for Prometheus. */
export type Metrics = ReturnType<typeof createMetrics>

/** Metrics of one server, in a registry of its own. */
export const createMetrics = (
  runtime: Pick<Runtime, 'stats' | 'modelStats' | 'webhookCounts' | 'spanCounts'>,
  open: OpenResponses,
) => {
  const registry = new Registry()
  const instruments = createInstruments(registry)
  const { requests, runs, workers, outbox, streams, up, spans, webhooks } = instruments

  const readStats = async (): Promise<void> => {
    const stats = await runtime.stats()
    for (const status of ['queued', 'running', 'input_required'] as const) runs.set({ status }, stats[status])
    workers.set(stats.workers)
    outbox.set(stats.outbox)
  }

  return {
    contentType: registry.contentType,
    /** Counts one response; `route` is the template and never the path, so that labels stay few. */
    observeRequest: (route: string, method: string, status: number, seconds: number): void =>
      requests.observe({ route, method, status: String(status) }, seconds),
    /** The text for Prometheus. Without the runtime's counters, and `mason_stats_up 0`, while those cannot be read. */
    async text(): Promise<string> {
      streams.set(open.streams)
      updateModelMetrics(instruments, runtime.modelStats())
      spans.reset()
      for (const [result, count] of Object.entries(runtime.spanCounts() ?? {})) spans.inc({ result }, count)
      webhooks.reset()
      for (const [result, count] of Object.entries(runtime.webhookCounts())) webhooks.inc({ result }, count)
      const isRead = await readStats().then(
        () => true,
        () => false,
      )
      up.set(isRead ? 1 : 0)
      if (!isRead) for (const stale of [runs, workers, outbox]) stale.remove({})
      return registry.metrics()
    },
  }
}

const createInstruments = (registry: Registry) => {
  collectDefaultMetrics({ register: registry, prefix: 'mason_' })
  const registers = [registry]
  const counter = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
    new Counter({ name, help, labelNames, registers })
  const gauge = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
    new Gauge({ name, help, labelNames, registers })
  return {
    requests: new Histogram({
      name: 'mason_http_request_duration_seconds',
      help: 'Time to respond, by route; streams of events are not counted',
      labelNames: ['route', 'method', 'status'],
      buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60],
      registers,
    }),
    runs: gauge('mason_runs', 'Runs that have not ended, by status', 'status'),
    workers: gauge('mason_workers', 'Workers that run or claim runs'),
    outbox: gauge('mason_outbox', 'Wake-ups not sent yet'),
    streams: gauge('mason_event_streams', 'Streams of events open on this process'),
    up: gauge('mason_stats_up', '1 when the counters of the runtime could be read'),
    spans: counter(
      'mason_trace_spans_total',
      'Spans by result: exported, failed (no collector took them), dropped (the queue was full)',
      'result',
    ),
    webhooks: counter(
      'mason_webhooks_total',
      'Webhooks of this process by result: delivered, failed (an attempt), dead (given up)',
      'result',
    ),
    modelRequests: counter(
      'mason_model_requests_total',
      'Requests to model vendors, by the alias of the model; code is ok or that of the error',
      ...(['vendor', 'model', 'code'] as const),
    ),
    tokens: counter(
      'mason_model_tokens_total',
      'Tokens that vendors counted; cached ones are part of the prompt, reasoning ones of the completion',
      ...(['vendor', 'model', 'kind'] as const),
    ),
    fallbacks: counter(
      'mason_model_fallbacks_total',
      'Calls answered by another model or key than the first candidate',
    ),
    requeues: counter(
      'mason_model_outage_requeues_total',
      'Times a run was queued again by this process, because no model was available',
    ),
    healthy: gauge('mason_model_keys_healthy', 'Keys of a vendor that can be used now', 'vendor'),
    low: gauge(
      'mason_model_pool_low',
      '1 while a vendor has fewer healthy keys than its floor: alert on it',
      'vendor',
    ),
  }
}

/** Model requests and key health of this process, set from the runtime's counts at each scrape. */
const updateModelMetrics = (
  { modelRequests, tokens, fallbacks, requeues, healthy, low }: ReturnType<typeof createInstruments>,
  stats: ModelStats,
): void => {
  for (const metric of [modelRequests, tokens, fallbacks, requeues, healthy, low]) metric.reset()
  for (const { count, ...labels } of stats.requests) modelRequests.inc(labels, count)
  for (const { count, ...labels } of stats.tokens) tokens.inc(labels, count)
  fallbacks.inc(stats.fallbacks)
  requeues.inc(stats.requeues)
  for (const { vendor, ...pool } of stats.pools) {
    healthy.set({ vendor }, pool.healthy)
    low.set({ vendor }, pool.isLow ? 1 : 0)
  }
}
