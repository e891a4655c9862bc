import { createBusinessApi } from './business-api.ts'
import { buildGraph } from './graph/build.ts'
import { loadParts } from './graph/load.ts'
import { createBusinesses } from './infra/admin/businesses.ts'
import { createTokens } from './infra/admin/tokens.ts'
import { createUsers } from './infra/admin/users.ts'
import { systemClock } from './infra/clock.ts'
import { type Closers, createClosers } from './infra/closers.ts'
import type { Config } from './infra/config.ts'
import { type Database, one } from './infra/database/database.ts'
import { openDatabase } from './infra/database/open.ts'
import { openEgress } from './infra/egress.ts'
import { openFeed } from './infra/events/feed.ts'
import { createLookPlaces } from './infra/events/looks.ts'
import { createFileService } from './infra/files/run-files.ts'
import { warnOfSharedRoot } from './infra/files/shared-root.ts'
import { newWorkerId } from './infra/ids.ts'
import { type MemoryWorkOptions, startMemoryWork as startMemoryWorker } from './infra/memory/work.ts'
import { createUsageReports } from './infra/metering/usage-reports.ts'
import type { Caller } from './infra/models/ports.ts'
import { settlesWithin } from './infra/queue/deadline.ts'
import { type Hints, openHints } from './infra/queue/hints.ts'
import { openQueues, type Queues } from './infra/queue/queue.ts'
import { ensureBusiness } from './infra/runs/admit.ts'
import { createQueueCaps } from './infra/runs/queue-caps.ts'
import { scrubbedLog } from './infra/secrets/scrubbed-log.ts'
import { createScrubber, type Scrubber } from './infra/secrets/scrubber.ts'
import { scrubSettings } from './infra/secrets/setting-secrets.ts'
import { silentLog } from './infra/silent-log.ts'
import { openTelemetry, type TelemetryOptions } from './infra/telemetry/open.ts'
import { startWorker } from './infra/worker/start.ts'
import type { WorkerOptions } from './infra/worker/worker.ts'
import type { BusinessApi, Health, Runtime } from './runtime-api.ts'
import { type ModelWaits, openModelLayer } from './runtime-models.ts'
import type { Clock, Log, Models } from './state/ports.ts'

export type RuntimeOptions = {
  log?: Log
  /** Knows what must show nowhere; is told of all secrets that are opened. */
  scrubber?: Scrubber
  /** In tests: another clock, a fake model in place of the registry's, tools of their own, a queue of their own. */
  clock?: Clock
  models?: Models
  modelWaits?: ModelWaits
  traceWaits?: Pick<TelemetryOptions, 'everyMs' | 'timeoutMs'>
  toolFolders?: readonly string[]
  queuePrefix?: string
  loadDataDir?: Blob
  /** How the background learns from runs; off in tests that are about something else. */
  memory?: 'off' | Pick<MemoryWorkOptions, 'everyMs' | 'leaseMs'>
  onLeft?: WorkerOptions['onLeft']
  /** In tests: what stands between the runtime and the real thing, to watch it or to make it fail. */
  wrap?: {
    database?(database: Database): Database
    queues?(queues: Queues): Queues
    hints?(hints: Hints): Hints
  }
}

/**
 * The one composition root: database, queue, models and graph as the settings say. Embedded without DATABASE_URL,
 * served with it; every other difference follows from that.
 */
export const openRuntime = async (config: Config, options: RuntimeOptions = {}): Promise<Runtime> => {
  const opened = createClosers()
  try {
    return await compose(config, options, opened)
  } catch (error) {
    await opened.close().catch(() => {})
    throw error
  }
}

const compose = async (config: Config, options: RuntimeOptions, opened: Closers): Promise<Runtime> => {
  const scrubber = options.scrubber ?? createScrubber()
  scrubSettings(config, scrubber)
  const log = scrubbedLog(options.log ?? silentLog, scrubber)
  const clock = options.clock ?? systemClock
  const graph = buildGraph(await loadParts(options.toolFolders))
  const telemetry = await openTelemetry({
    endpoint: config.otlpEndpoint,
    clock,
    log,
    ...options.traceWaits,
  })
  // closed last: everything else still ends its spans
  opened.add(() => telemetry.close())
  const { tracer } = telemetry
  const { wrap = {} } = options
  const openedDatabase = await openDatabase(config, log, options.loadDataDir)
  opened.add(() => openedDatabase.close())
  const database = wrap.database?.(openedDatabase) ?? openedDatabase
  const queueOptions = queueOf(config, openedDatabase, options.queuePrefix)
  const openedQueues = await openQueues({ log, ...queueOptions })
  opened.add(() => openedQueues.close(2000))
  const queues = wrap.queues?.(openedQueues) ?? openedQueues
  const openedHints = await openHints({ log, ...queueOptions })
  const hints = wrap.hints?.(openedHints) ?? openedHints
  opened.add(() => hints.close())
  const feed = await openFeed({ sql: database, hints, clock, log })
  opened.add(() => feed.close())
  await ensureBusiness(database, 'default')
  const layer = await openModelLayer({
    config,
    database,
    hints,
    clock,
    log,
    scrubber,
    opened,
    waits: options.modelWaits ?? {},
    tracer,
  })
  const modelsFor = (caller: Caller): Models => options.models ?? layer.service.for(caller)
  const models = modelsFor({ business_id: 'default', user_id: null, run_id: null })

  const tokens = createTokens(database, clock)
  const egress = openEgress()
  opened.add(async () => egress[Symbol.asyncDispose]())
  const files = createFileService({ egress, storage: config.storage, filesRoot: config.filesRoot, log })
  opened.add(async () => files[Symbol.asyncDispose]())
  const caps = createQueueCaps(database, clock)
  const lookPlaces = createLookPlaces()
  const apis = new Map<string, BusinessApi>()
  const { embedder } = layer
  const of = (businessId: string): BusinessApi => {
    const api =
      apis.get(businessId) ??
      createBusinessApi(
        { database, queues, feed, graph, models, caps, lookPlaces, embedder, log, tracer },
        businessId,
      )
    apis.set(businessId, api)
    return api
  }
  const startMemoryWork = (): void => {
    const { memory = {} } = options
    if (memory === 'off') return
    const work = startMemoryWorker({ database, embedder, modelsFor, clock, log, tracer, ...memory })
    opened.add(() => work.close())
  }
  return {
    of,
    graph,
    models,
    authenticate: (token) => tokens.authenticate(token),
    modelService: layer.service,
    modelStats: layer.stats,
    spanCounts: telemetry.counts,
    admin: {
      businesses: createBusinesses(database),
      tokens,
      users: createUsers(database),
      registry: layer.registryAdmin,
      usage: createUsageReports(database),
    },
    health: () => checkHealth(database, () => queues.ping()),
    stats: () => readStats(database),
    async startWorker({ concurrency = config.concurrency } = {}) {
      await Promise.all([files.sweep(), warnOfSharedRoot(database, config.filesRoot, log)])
      const worker = await startWorker({
        database,
        feed,
        queues,
        graph,
        modelsFor,
        scenarios: layer.scenarios,
        embedder,
        clock,
        log,
        tracer,
        workerId: newWorkerId(),
        leaseMs: config.leaseMs,
        concurrency,
        files,
        keep: config.keep,
        ...(options.onLeft && { onLeft: options.onLeft }),
        submit: (businessId, request, key) =>
          of(businessId).submit(request, key, { by: 'queue', beganAtMs: Date.now() }),
      })
      opened.add(() => worker.close())
      startMemoryWork()
    },
    startMemoryWork,
    close: (timeoutMs = 10_000) => closeWithin(opened, timeoutMs, log),
  }
}

/** Redis where it is set; else everything lives in the embedded database. */
const queueOf = (config: Config, database: Database & { pglite?: unknown }, prefix: string | undefined) => {
  if (config.redisUrl) return { kind: 'redis' as const, url: config.redisUrl, ...(prefix && { prefix }) }
  return { kind: 'embedded' as const, pglite: database.pglite as never }
}

type Ping = () => Promise<{ ok: true; ms: number } | { ok: false; error: string }>

const checkHealth = async (database: Database, pingQueue: Ping): Promise<Health> => {
  const since = performance.now()
  const [reached, queue] = await Promise.all([
    database.query('SELECT 1').then(
      () => ({ ok: true as const, ms: Math.round(performance.now() - since) }),
      (error: unknown) => ({ ok: false as const, error: String(error) }),
    ),
    pingQueue(),
  ])
  // without the queue runs are still accepted and get done: that is a matter for `checks`, not for a load balancer
  return { ok: reached.ok, checks: { database: reached, queue } }
}

type Stats = Awaited<ReturnType<Runtime['stats']>>

const readStats = async (database: Database): Promise<Stats> => {
  const row = await one<Stats>(
    database,
    `SELECT count(*) FILTER (WHERE status = 'queued')::int AS queued, count(*) FILTER (WHERE status = 'running')::int AS running,
       (SELECT count(*)::int FROM input_requests WHERE answered_at IS NULL) AS input_required,
       (SELECT count(*)::int FROM workers) AS workers, (SELECT count(*)::int FROM outbox) AS outbox
     FROM runs WHERE status IN ('queued', 'running')`,
    [],
  )
  return row ?? { queued: 0, running: 0, input_required: 0, workers: 0, outbox: 0 }
}

const closeWithin = async (opened: Closers, timeoutMs: number, log: Log): Promise<void> => {
  const closed = opened
    .close()
    .catch((error: unknown) => log.warn({ error: String(error) }, 'closing met a fault'))
  await settlesWithin(closed, timeoutMs)
}
