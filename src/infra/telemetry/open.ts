import { readFile } from 'node:fs/promises'
import type { Clock, Log } from '../../state/ports.ts'
import { noTracer, type Tracer } from '../../state/trace.ts'
import { packagePath } from '../package-path.ts'
import { settlesWithin } from '../queue/deadline.ts'

/** Spans since this process began: `failed` ones no collector took, `dropped` ones found no room to wait. */
export type SpanCounts = { exported: number; failed: number; dropped: number }

export type Telemetry = {
  tracer: Tracer
  /** Null while nothing is traced. */
  counts(): SpanCounts | null
  /** Sends what is left, for two seconds at most. */
  close(): Promise<void>
}

export type TelemetryOptions = {
  /** Null: nothing is traced, and nothing of OpenTelemetry is loaded. */
  endpoint: string | null
  clock: Clock
  log: Log
  /** In tests: how long spans wait for others, and how long a batch may take. */
  everyMs?: number
  timeoutMs?: number
}

const flushMs = 2000

const readVersion = async (): Promise<string> =>
  (JSON.parse(await readFile(packagePath('package.json'), 'utf8')) as { version: string }).version

export const openTelemetry = async (options: TelemetryOptions): Promise<Telemetry> => {
  const { endpoint, ...rest } = options
  if (endpoint === null) return { tracer: noTracer, counts: () => null, close: async () => {} }
  const [{ createExport }, { createOtlpTracer }, version] = await Promise.all([
    import('./exporter.ts'),
    import('./otlp-tracer.ts'),
    readVersion(),
  ])
  const { processor, counts } = createExport({ endpoint, ...rest })
  const { tracer, shutdown } = createOtlpTracer(processor, version)
  return {
    tracer,
    counts: () => ({ ...counts }),
    async close() {
      await settlesWithin(shutdown(), flushMs)
    },
  }
}
