import { createBacklogReader } from '../engine/runs/backlog.ts'
import { endLeases } from '../engine/runs/leases.ts'
import { metricsRef } from '../features/core.ref.ts'
import type { FeatureSource } from '../features/definition-files.ts'
import type { Config } from '../infra/config/config.ts'
import { ensureDatabaseId } from '../infra/database/database-id.ts'
import { openDatabases } from '../infra/database/open-database.ts'
import { openEgress } from '../infra/egress/egress.ts'
import type { Closers } from '../infra/lib/closers.ts'
import { silentLog } from '../infra/lib/silent-log.ts'
import { systemClock } from '../infra/lib/system-clock.ts'
import { openHints } from '../infra/queue/hints.ts'
import { openQueues } from '../infra/queue/queues.ts'
import { createScrubbedLog } from '../infra/secrets/scrubbed-log.ts'
import { createScrubber, type Scrubber } from '../infra/secrets/scrubber.ts'
import { noMetrics } from '../infra/telemetry/metrics.ts'
import { createAuditing } from './audited-database.ts'
import { findEarly } from './find-early.ts'
import { readFeatureMigrations } from './load-feature-sources.ts'
import { withToolMetrics } from './measured-tracer.ts'
import { openTracing } from './open-tracing.ts'
import type { RuntimeOptions } from './runtime-options.ts'
import { addSettingSecrets } from './setting-secrets.ts'

/** What removes secrets from texts; it knows those of the settings. */
export const openScrubber = (config: Config, { scrubber = createScrubber() }: RuntimeOptions): Scrubber => {
  addSettingSecrets(config, scrubber)
  return scrubber
}

/** Opens what a process stands on: its log and clock, telemetry, databases, queues, and the way to other addresses. */
export const openDrivers = async (
  config: Config,
  options: RuntimeOptions,
  scrubber: Scrubber,
  closers: Closers,
  sources: readonly FeatureSource[],
) => {
  const { wrap = {}, clock = systemClock } = options
  const log = createScrubbedLog(options.log ?? silentLog, scrubber)
  const telemetry = await openTracing(config, { clock, log, ...options.traceDelays })
  // closed last, since everything else still ends its spans
  closers.add(() => telemetry.close())
  const opened = await openDatabases(config, log, {
    loadDataDir: options.loadDataDir,
    migrations: await readFeatureMigrations(sources),
    schema: options.migrate ? 'migrate' : 'check',
  })
  closers.add(() => opened.close())
  // one process at a time has an embedded database: a lease that is left belongs to a dead one
  if (config.database.kind !== 'postgres') await endLeases(opened.worker)
  // what both parts of the process share works under the login of the API, which may less
  const apiDatabase = wrap.database?.(opened.api) ?? opened.api
  const auditing = createAuditing()
  const database = auditing.wrap(apiDatabase)
  const workerDatabase =
    opened.worker === opened.api ? apiDatabase : (wrap.database?.(opened.worker) ?? opened.worker)
  const readBacklog = createBacklogReader(database, clock)
  const metrics = (await findEarly(config, metricsRef))?.(readBacklog) ?? noMetrics
  metrics.onScrape(() => {
    const spans = telemetry.counts()
    if (spans) metrics.spans(spans)
  })
  const tracer = withToolMetrics(telemetry.tracer, metrics, clock)
  const { redisUrl: url, queuePrefix: prefix } = config
  const queueOptions =
    url === null
      ? { kind: 'embedded' as const }
      : { kind: 'redis' as const, url, prefix, databaseId: await ensureDatabaseId(opened.api) }
  const openedQueues = await openQueues({ log, ...queueOptions })
  closers.add(() => openedQueues.close(2000))
  const queues = wrap.queues?.(openedQueues) ?? openedQueues
  const openedHints = await openHints({ log, ...queueOptions })
  const hints = wrap.hints?.(openedHints) ?? openedHints
  closers.add(() => hints.close())
  const egress = openEgress()
  closers.use(egress)
  const databases = { database, workerDatabase, executorDatabase: opened.payments, auditing }
  const observers = { log, metrics, tracer, readBacklog }
  return { ...databases, ...observers, clock, scrubber, queues, hints, egress, closers }
}

/** See `openDrivers`. */
export type Drivers = Awaited<ReturnType<typeof openDrivers>>
