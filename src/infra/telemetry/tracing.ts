import type { Clock } from '../../state/ports/clock.ts'
import type { Log } from '../../state/ports/log.ts'
import type { Tracer } from '../../state/ports/tracer.ts'
import type { SpanCounts } from './metrics.ts'

/** Options of `OpenTracing`. */
export type TracingOptions = {
  /** The base URL, without `/v1/traces`. */
  endpoint: string
  clock: Clock
  log: Log
  /** The pause between two batches and the time limit of one; default OTEL_BSP_SCHEDULE_DELAY and OTEL_EXPORTER_OTLP_TIMEOUT. */
  everyMs?: number | undefined
  timeoutMs?: number | undefined
}
/** `counts` null: nothing is traced. */
export type Tracing = { tracer: Tracer; counts(): SpanCounts | null; close(): Promise<void> }
/** Opens tracing to an OTLP endpoint. */
export type OpenTracing = (options: TracingOptions) => Promise<Tracing>
