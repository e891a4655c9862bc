import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { BatchSpanProcessor, type SpanExporter, type SpanProcessor } from '@opentelemetry/sdk-trace-node'
import type { Clock, Log } from '../../state/ports.ts'
import type { SpanCounts } from './open.ts'

/** Spans that wait to be sent; further ones are dropped. The default of the specification. */
const mostWaiting = 2048
const warnEveryMs = 60_000

export type ExportOptions = {
  /** Up to and without `/v1/traces`. */
  endpoint: string
  clock: Clock
  log: Log
  /** Between two batches, and for one; absent: as OTEL_BSP_SCHEDULE_DELAY and OTEL_EXPORTER_OTLP_TIMEOUT say. */
  everyMs?: number | undefined
  timeoutMs?: number | undefined
}

/** The specification: the path of the signal is appended to the path of the base endpoint. */
export const tracesUrl = (endpoint: string): string => {
  const url = new URL(endpoint)
  url.pathname = `${url.pathname.replace(/\/$/, '')}/v1/traces`
  return url.href
}

/** Sends spans in batches, behind the work. What a collector refuses or is too slow for is dropped, counted and logged once a minute. */
export const createExport = (options: ExportOptions): { processor: SpanProcessor; counts: SpanCounts } => {
  const { endpoint, clock, log, everyMs, timeoutMs } = options
  const counts: SpanCounts = { exported: 0, failed: 0, dropped: 0 }
  let waiting = 0
  let warnedAtMs = Number.NEGATIVE_INFINITY

  /** The collector's own words are not logged: it may say the headers it was sent. */
  const warn = (code: unknown): void => {
    if (clock.monotonicMs() - warnedAtMs < warnEveryMs) return
    warnedAtMs = clock.monotonicMs()
    const { origin } = new URL(endpoint)
    log.warn({ origin, code, ...counts }, 'traces do not reach their collector; runs go on without')
  }

  const otlp = new OTLPTraceExporter({
    url: tracesUrl(endpoint),
    ...(timeoutMs !== undefined && { timeoutMillis: timeoutMs }),
  })
  const exporter: SpanExporter = {
    export(spans, done) {
      waiting -= spans.length
      otlp.export(spans, (result) => {
        if (result.error === undefined) counts.exported += spans.length
        else {
          counts.failed += spans.length
          warn((result.error as { code?: unknown }).code ?? 'no answer')
        }
        done(result)
      })
    },
    forceFlush: () => otlp.forceFlush(),
    shutdown: () => otlp.shutdown(),
  }
  const batches = new BatchSpanProcessor(exporter, {
    maxQueueSize: mostWaiting,
    ...(everyMs !== undefined && { scheduledDelayMillis: everyMs }),
  })
  const processor: SpanProcessor = {
    onStart: (span, context) => batches.onStart(span, context),
    onEnd(span) {
      // the batches count in a place that cannot be read: so the bound is kept here, before theirs
      if (waiting >= mostWaiting) {
        counts.dropped += 1
        warn('too many spans wait')
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
