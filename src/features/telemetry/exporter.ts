import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { BatchSpanProcessor, type SpanExporter, type SpanProcessor } from '@opentelemetry/sdk-trace-node'
import type { SpanCounts } from '../../infra/telemetry/metrics.ts'
import type { TracingOptions } from '../../infra/telemetry/tracing.ts'

/** Spans that may wait to be sent; further ones are dropped. The specification's default. */
const maxWaitingSpans = 2048
const warnEveryMs = 60_000

/** The URL for traces: the specification appends the path of the signal to the path of the base endpoint. */
export const toTracesUrl = (endpoint: string): string => {
  const url = new URL(endpoint)
  url.pathname = `${url.pathname.replace(/\/$/, '')}/v1/traces`
  return url.href
}

/** Sends spans in batches in the background. Spans that a collector refuses or is too slow for are dropped, counted, and logged once a minute. */
export const createSpanExport = (
  options: TracingOptions,
): { processor: SpanProcessor; counts: SpanCounts } => {
  const { endpoint, clock, log, everyMs, timeoutMs } = options
  const counts: SpanCounts = { exported: 0, failed: 0, dropped: 0 }
  let waiting = 0
  let warnedAtMs = Number.NEGATIVE_INFINITY

  /** The collector's message is not logged, because it may repeat the headers that it was sent. */
  const warnOnce = (code: unknown): void => {
    if (clock.monotonicMs() - warnedAtMs < warnEveryMs) return
    warnedAtMs = clock.monotonicMs()
    const { origin } = new URL(endpoint)
    log.warn({ origin, code, ...counts }, 'traces do not reach the collector; runs continue without them')
  }

  const otlp = new OTLPTraceExporter({
    url: toTracesUrl(endpoint),
    ...(timeoutMs !== undefined && { timeoutMillis: timeoutMs }),
  })
  const exporter: SpanExporter = {
    export(spans, done) {
      waiting -= spans.length
      otlp.export(spans, (result) => {
        if (result.error === undefined) counts.exported += spans.length
        else {
          counts.failed += spans.length
          warnOnce((result.error as { code?: unknown }).code ?? 'no answer')
        }
        done(result)
      })
    },
    forceFlush: () => otlp.forceFlush(),
    shutdown: () => otlp.shutdown(),
  }
  const batches = new BatchSpanProcessor(exporter, {
    maxQueueSize: maxWaitingSpans,
    ...(everyMs !== undefined && { scheduledDelayMillis: everyMs }),
  })
  const processor: SpanProcessor = {
    onStart: (span, context) => batches.onStart(span, context),
    onEnd(span) {
      // the batch processor does not expose its count of dropped spans, so the limit is enforced here first
      if (waiting >= maxWaitingSpans) {
        counts.dropped += 1
        warnOnce('too many spans wait')
        return
      }
      waiting += 1
      batches.onEnd(span)
    },
    forceFlush: () => batches.forceFlush(),
    shutdown: () => batches.shutdown(),
  }
  return { processor, counts }
}
