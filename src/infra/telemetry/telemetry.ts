import { toSettingsError } from '../../state/errors.ts'
import { noTracer } from '../../state/ports/tracer.ts'
import { listOptionalPackages, readMasonVersion } from '../lib/package-path.ts'
import { settlesWithin } from '../lib/timeouts.ts'
import type { SpanExportOptions } from './exporter.ts'
import type { SpanCounts } from './metrics.ts'

/** Options of `openTelemetry`. */
export type TelemetryOptions = Omit<SpanExportOptions, 'endpoint'> & {
  /** Null: tracing is off, and OpenTelemetry is not loaded. */
  endpoint: string | null
}

const flushTimeoutMs = 2000

/** Opens tracing to an OTLP endpoint, or a tracer that does nothing, whose counts are null. */
export const openTelemetry = async ({ endpoint, ...rest }: TelemetryOptions) => {
  if (endpoint === null)
    return { tracer: noTracer, counts: (): SpanCounts | null => null, close: async () => {} }
  const [{ createSpanExport }, { createOtlpTracer }] = await Promise.all([
    import('./exporter.ts'),
    import('./otlp-tracer.ts'),
  ]).catch(throwMissingPackages)
  const { processor, counts } = createSpanExport({ endpoint, ...rest })
  const { tracer, shutdown } = createOtlpTracer(processor, readMasonVersion())
  return {
    tracer,
    counts: (): SpanCounts | null => ({ ...counts }),
    /** Sends the remaining spans, for two seconds at most. */
    close: async () => void (await settlesWithin(shutdown(), flushTimeoutMs)),
  }
}

/** Traces are rare and OpenTelemetry is large, so it is an optional dependency. */
const throwMissingPackages = (error: unknown): never => {
  const { code, message } = error as NodeJS.ErrnoException
  if (code !== 'ERR_MODULE_NOT_FOUND' || !message.includes('@opentelemetry/')) throw error
  throw toSettingsError(
    'OTEL_EXPORTER_OTLP_ENDPOINT is set, but OpenTelemetry is not installed',
    `remove the setting, or run npm install ${listOptionalPackages().join(' ')}`,
    error,
  )
}
