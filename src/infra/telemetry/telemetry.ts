import { readFile } from 'node:fs/promises'
import { noTracer, type Tracer } from '../../state/ports/tracer.ts'
import { toPackagePath } from '../lib/package-path.ts'
import { settlesWithin } from '../lib/timeouts.ts'
import type { SpanCounts, SpanExportOptions } from './exporter.ts'

/** The tracer of this process with its exporter. */
export type Telemetry = {
  tracer: Tracer
  /** Null while tracing is off. */
  counts(): SpanCounts | null
  /** Sends the remaining spans, for two seconds at most. */
  close(): Promise<void>
}

/** Options of `openTelemetry`. */
export type TelemetryOptions = Omit<SpanExportOptions, 'endpoint'> & {
  /** Null: tracing is off, and OpenTelemetry is not loaded. */
  endpoint: string | null
}

const flushTimeoutMs = 2000

const readVersion = async (): Promise<string> =>
  (JSON.parse(await readFile(toPackagePath('package.json'), 'utf8')) as { version: string }).version

/** Opens tracing to an OTLP endpoint, or a tracer that does nothing. */
export const openTelemetry = async (options: TelemetryOptions): Promise<Telemetry> => {
  const { endpoint, ...rest } = options
  if (endpoint === null) return { tracer: noTracer, counts: () => null, close: async () => {} }
  const [{ createSpanExport }, { createOtlpTracer }, version] = await Promise.all([
    import('./exporter.ts'),
    import('./otlp-tracer.ts'),
    readVersion(),
  ])
  const { processor, counts } = createSpanExport({ endpoint, ...rest })
  const { tracer, shutdown } = createOtlpTracer(processor, version)
  return {
    tracer,
    counts: () => ({ ...counts }),
    async close() {
      await settlesWithin(shutdown(), flushTimeoutMs)
    },
  }
}
