import { listOptionalPackages, readMasonVersion } from '../../infra/lib/package-path.ts'
import { settlesWithin } from '../../infra/lib/timeouts.ts'
import type { OpenTracing } from '../../infra/telemetry/tracing.ts'
import { toSettingsError } from '../../state/errors.ts'

const flushTimeoutMs = 2000

/** Opens tracing to an OTLP endpoint; OpenTelemetry is loaded here and not before. */
export const openTelemetry: OpenTracing = async (options) => {
  const [{ createSpanExport }, { createOtlpTracer }] = await Promise.all([
    import('./exporter.ts'),
    import('./otlp-tracer.ts'),
  ]).catch(throwMissingPackages)
  const { processor, counts } = createSpanExport(options)
  const { tracer, shutdown } = createOtlpTracer(processor, readMasonVersion())
  return {
    tracer,
    counts: () => ({ ...counts }),
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
