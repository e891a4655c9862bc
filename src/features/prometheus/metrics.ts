import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { Backlog, CreateMetrics } from '../../infra/telemetry/metrics.ts'
import { errorCodes } from '../../state/errors.ts'
import type { Outcome } from '../../state/outcome.ts'

const tokenKinds = ['prompt_tokens', 'completion_tokens', 'cached_tokens', 'reasoning_tokens'] as const

const waitingNames = [
  'ready',
  'oldest_ready_s',
  'unlearned',
  'oldest_unlearned_s',
  'workers',
  'outbox',
] as const

const seconds = {
  http: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60],
  append: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5],
  tool: [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300],
  model: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, 300],
  wait: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800],
  run: [0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600],
}

/** The metrics of one process, in a registry of its own. */
export const createMetrics: CreateMetrics = (readBacklog) => {
  const registry = new Registry()
  const instruments = createInstruments(registry)
  const { runs, waiting, up } = instruments
  const scrapes: (() => void)[] = []
  let hasProcess = false

  const showBacklog = (backlog: Backlog): void => {
    for (const status of ['queued', 'running', 'input_required'] as const)
      runs.set({ status }, backlog[status])
    for (const name of waitingNames) waiting[name].set(backlog[name])
  }

  return {
    contentType: registry.contentType,
    request: (route, method, status, ms) =>
      instruments.requests.observe({ route, method, status: String(status) }, ms / 1000),
    // the reason of a cancel is a text of the caller: it is no label
    runEnded(outcome, ms) {
      const { status, reason } = outcome
      instruments.ended.inc({ status, reason: toReasonLabel(status, reason) })
      instruments.runTime.observe({ status }, ms / 1000)
    },
    runClaimed: (waitedMs) => instruments.queueWait.observe(Math.max(0, waitedMs) / 1000),
    appended: (ms) => instruments.appends.observe(ms / 1000),
    leaseLost: () => instruments.leasesLost.inc(),
    requeued: () => instruments.requeues.inc(),
    toolCalled(tool, ms, code) {
      instruments.toolTime.observe({ tool }, ms / 1000)
      if (code !== null) instruments.toolErrors.inc({ tool, code })
    },
    modelRequest({ vendor, model, code }, usage, ms) {
      instruments.modelRequests.inc({ vendor, model, code })
      instruments.modelTime.observe({ model }, ms / 1000)
      for (const kind of tokenKinds)
        instruments.tokens.inc({ vendor, model, kind: kind.replace('_tokens', '') }, usage[kind])
    },
    fallback: () => instruments.fallbacks.inc(),
    keyPool({ vendor, healthy, isLow }) {
      instruments.healthy.set({ vendor }, healthy)
      instruments.low.set({ vendor }, isLow ? 1 : 0)
    },
    streams: (open) => instruments.streams.set(open),
    spans(counts) {
      instruments.spans.reset()
      for (const [result, count] of Object.entries(counts)) instruments.spans.inc({ result }, count)
    },
    addCounter({ name, help, label, read }) {
      const metric = new Counter({ name, help, labelNames: [label], registers: [registry] })
      scrapes.push(() => {
        metric.reset()
        for (const [value, count] of Object.entries(read() ?? {})) metric.inc({ [label]: value }, count)
      })
    },
    workerRuns({ runs, working }) {
      instruments.workerRuns.set({ state: 'working' }, Math.min(runs, working))
      instruments.workerRuns.set({ state: 'waiting' }, Math.max(0, runs - working))
    },
    onScrape: (set) => void scrapes.push(set),
    // without the backlog it says `mason_stats_up 0`
    async text() {
      if (!hasProcess) collectDefaultMetrics({ register: registry, prefix: 'mason_' })
      hasProcess = true
      for (const gauge of [instruments.healthy, instruments.low, runs]) gauge.reset()
      for (const set of scrapes) set()
      const backlog = await readBacklog().catch(() => null)
      up.set(backlog ? 1 : 0)
      if (backlog) showBacklog(backlog)
      else for (const name of waitingNames) waiting[name].remove({})
      return registry.metrics()
    },
  }
}

const knownReasons: ReadonlySet<string> = new Set(errorCodes)

const toReasonLabel = (status: Outcome['status'], reason: string): string => {
  if (status === 'cancelled') return ''
  return status === 'completed' || knownReasons.has(reason) ? reason : 'other'
}

const createInstruments = (registry: Registry) => {
  const registers = [registry]
  const counter = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
    new Counter({ name, help, labelNames, registers })
  const gauge = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
    new Gauge({ name, help, labelNames, registers })
  const histogram = <Label extends string>(
    name: string,
    help: string,
    buckets: number[],
    ...labelNames: Label[]
  ) => new Histogram({ name, help, buckets, labelNames, registers })
  const everywhere = 'the same on all processes: take the max, not the sum'
  const oldest = `How long the oldest of them has waited; ${everywhere}`
  return {
    requests: histogram(
      'mason_http_request_duration_seconds',
      'Time to respond, by route; streams of events are not counted',
      seconds.http,
      'route',
      'method',
      'status',
    ),
    ended: counter('mason_runs_ended_total', 'Runs that ended, by status and reason', 'status', 'reason'),
    runTime: histogram(
      'mason_run_duration_seconds',
      'Work on a run that ended, over all claims; without queueing and waiting for people',
      seconds.run,
      'status',
    ),
    queueWait: histogram(
      'mason_queue_wait_seconds',
      'From when a run was due, and the turn before it had ended, to its first claim',
      seconds.wait,
    ),
    appends: histogram('mason_append_duration_seconds', 'Time to commit one action', seconds.append),
    leasesLost: counter('mason_leases_lost_total', 'Runs that this process lost while it worked on them'),
    toolTime: histogram('mason_tool_duration_seconds', 'Time of one call of a tool', seconds.tool, 'tool'),
    toolErrors: counter('mason_tool_errors_total', 'Calls of a tool that failed', 'tool', 'code'),
    modelTime: histogram(
      'mason_model_request_duration_seconds',
      'Time of one request to a model vendor, by the alias of the model',
      seconds.model,
      'model',
    ),
    runs: gauge('mason_runs', `Runs that have not ended, by status; ${everywhere}`, 'status'),
    /** By the names of the backlog. */
    waiting: {
      ready: gauge(
        'mason_runs_ready',
        `Runs that a worker could claim now: due, no worker has them, and no earlier turn is open; ${everywhere}`,
      ),
      oldest_ready_s: gauge('mason_runs_ready_oldest_seconds', oldest),
      unlearned: gauge(
        'mason_learning_waiting',
        `Ended runs that nothing was learned from yet; ${everywhere}`,
      ),
      oldest_unlearned_s: gauge('mason_learning_lag_seconds', oldest),
      workers: gauge('mason_workers', `Workers that run or claim runs; ${everywhere}`),
      outbox: gauge('mason_outbox', `Wake-ups not sent yet; ${everywhere}`),
    },
    workerRuns: gauge(
      'mason_worker_runs',
      'Runs that this worker has, by state: working, or waiting (for a model, or long for anything else)',
      'state',
    ),
    streams: gauge('mason_event_streams', 'Streams of events open on this process'),
    up: gauge('mason_stats_up', '1 when the backlog in the database could be read'),
    spans: counter(
      'mason_trace_spans_total',
      'Spans by result: exported, failed (no collector took them), dropped (the queue was full)',
      'result',
    ),
    modelRequests: counter(
      'mason_model_requests_total',
      'Requests to model vendors, by the alias of the model; code is ok or that of the error',
      'vendor',
      'model',
      'code',
    ),
    tokens: counter(
      'mason_model_tokens_total',
      'Tokens that vendors counted; cached ones are part of the prompt, reasoning ones of the completion',
      'vendor',
      'model',
      'kind',
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
