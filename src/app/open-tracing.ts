import { tracingRef } from '../features/core.ref.ts'
import type { Config } from '../infra/config/config.ts'
import type { Tracing, TracingOptions } from '../infra/telemetry/tracing.ts'
import { toSettingsError } from '../state/errors.ts'
import { noTracer } from '../state/ports/tracer.ts'
import { findEarly } from './find-early.ts'

/** Opens tracing where the settings name a collector; else runs have a tracer that does nothing. */
export const openTracing = async (
  config: Config,
  options: Omit<TracingOptions, 'endpoint'>,
): Promise<Tracing> => {
  const { otlpEndpoint: endpoint } = config
  if (endpoint === null) return { tracer: noTracer, counts: () => null, close: async () => {} }
  const open = await findEarly(config, tracingRef)
  if (open) return open({ endpoint, ...options })
  throw toSettingsError(
    'OTEL_EXPORTER_OTLP_ENDPOINT is set, but no feature sends traces',
    'remove the setting, or use a build with the feature telemetry',
  )
}
