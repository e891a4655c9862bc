import { ensureBusiness } from '../accounts/businesses.ts'
import { createOperators } from '../accounts/operators.ts'
import { createQuotas } from '../accounts/quotas.ts'
import { createTokens } from '../accounts/tokens.ts'
import { createUserProfiles } from '../accounts/users.ts'
import { openFeed } from '../engine/events/feed.ts'
import { createPollPermits } from '../engine/events/polling.ts'
import { createBacklogReader } from '../engine/runs/backlog.ts'
import type { RunClaim } from '../engine/runs/claim.ts'
import { createIntake } from '../engine/runs/intake-batches.ts'
import { createQueueCaps } from '../engine/runs/queue-caps.ts'
import type { ServiceFactories } from '../engine/runs/run-services.ts'
import { noSecretAnswers } from '../engine/runs/secret-answers.ts'
import type { RunEnd } from '../engine/runs/settlement.ts'
import type { WorkerOptions } from '../engine/worker/worker.ts'
import { startRunWorker } from '../engine/worker/worker-loops.ts'
import { executorRef, secretAnswersRef, secretsChangedRef } from '../features/core.ref.ts'
import { createFileService } from '../files/run-files.ts'
import { warnAboutSharedRoot } from '../files/shared-files-root.ts'
import { buildGraph } from '../graph/build.ts'
import { createBlobs } from '../infra/blobs/blobs.ts'
import type { Config } from '../infra/config/config.ts'
import { toIssuer } from '../infra/config/issuer.ts'
import { createAuditing } from '../infra/database/audited-database.ts'
import type { Database } from '../infra/database/database.ts'
import { openDatabases } from '../infra/database/open-database.ts'
import { openEgress } from '../infra/egress/egress.ts'
import { type Closers, createClosers } from '../infra/lib/closers.ts'
import { newWorkerId } from '../infra/lib/ids.ts'
import { silentLog } from '../infra/lib/silent-log.ts'
import { systemClock } from '../infra/lib/system-clock.ts'
import { settlesWithin } from '../infra/lib/timeouts.ts'
import { type Hints, openHints } from '../infra/queue/hints.ts'
import { openQueues, type Queues } from '../infra/queue/queues.ts'
import { createScrubbedLog } from '../infra/secrets/scrubbed-log.ts'
import { createScrubber, type Scrubber } from '../infra/secrets/scrubber.ts'
import { addSettingSecrets } from '../infra/secrets/setting-secrets.ts'
import { withToolMetrics } from '../infra/telemetry/measured-tracer.ts'
import { createMetrics } from '../infra/telemetry/metrics.ts'
import { openTelemetry, type TelemetryOptions } from '../infra/telemetry/telemetry.ts'
import { createVisitScope } from '../infra/telemetry/visit-scope.ts'
import { type MemoryWorkerOptions, startMemoryWorker } from '../memory/store/memory-worker.ts'
import { createRunMemories } from '../memory/store/run-memories.ts'
import { createTextSimilarity } from '../memory/store/text-similarity.ts'
import type { ModelCaller } from '../models/ports/model-ports.ts'
import { type OpenServices, openOwnServices } from '../project/own-services.ts'
import type { Clock } from '../state/ports/clock.ts'
import type { Log } from '../state/ports/log.ts'
import type { Models } from '../state/ports/models.ts'
import type { FeatureServices } from '../state/ports/services.ts'
import { createAdminStores } from './admin-stores.ts'
import type { BusinessApi, Runtime } from './api.ts'
import { actInBulk } from './bulk-actions.ts'
import { createBusinessApi, createSubmissions, type Submissions } from './business-api.ts'
import { checkHealth } from './check-health.ts'
import { loadAllParts } from './load-all-parts.ts'
import { type ModelRetryDelays, openModels } from './open-models.ts'
import {
  countDeadWebhooks,
  createWebhookCheck,
  findAgents,
  openRuntimeFeatures,
} from './open-runtime-features.ts'
import { toQueueOptions } from './queue-options.ts'

/**
 * What an embedding program or a test sets beside the settings.
 *
 * @example
 * ```ts
 * import type { RuntimeOptions } from 'mason-runtime'
 *
 * const options: RuntimeOptions = { toolFolders: ['/srv/shop/tools'] }
 * ```
 */
export type RuntimeOptions = {
  log?: Log
  /** Redacts secrets; every secret that is opened is added to it. */
  scrubber?: Scrubber
  /** Opens the services that own tools and nodes use; `loadProject` has it from mason.config.ts. */
  setup?: OpenServices
  /** For tests: another clock, a fake model instead of the registry's, tools that this process can import as they are. */
  clock?: Clock
  models?: Models
  /** @internal */
  modelRetryDelays?: ModelRetryDelays
  /** @internal */
  traceDelays?: Pick<TelemetryOptions, 'everyMs' | 'timeoutMs'>
  toolFolders?: readonly string[]
  /** @internal */
  loadDataDir?: Blob
  /** Migrates a database server first, as `--migrate` does; without it, an older or newer one is refused. */
  migrate?: boolean
  /** How runs are learned from in the background; off in tests of something else. */
  memory?: 'off' | Pick<MemoryWorkerOptions, 'everyMs' | 'leaseMs'>
  /** @internal */
  onRunReleased?: WorkerOptions['onRunReleased']
  /** For tests and the demo: wraps a driver or the models, to watch them or to make them fail. @internal */
  wrap?: {
    database?(database: Database): Database
    queues?(queues: Queues): Queues
    hints?(hints: Hints): Hints
    models?(models: Models): Models
  }
}

/**
 * Opens database, queue, models and graph as the settings say: the one composition root. Embedded without
 * DATABASE_URL, served with it; every other difference follows from that. Close what it returns.
 *
 * @example
 * ```ts
 * import { openRuntime, readConfig, readEnvironment } from 'mason-runtime'
 *
 * const runtime = await openRuntime(readConfig(readEnvironment(), { role: 'run' }))
 * await runtime.startWorker()
 * const api = runtime.of('default')
 * const { run } = await api.submit({ prompt: 'What is 12.5% of 480?', user_id: 'ann' })
 * const { answer } = await api.wait(run, AbortSignal.timeout(60_000))
 * console.log(answer)
 * await runtime.close()
 * ```
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

const compose = async (config: Config, options: RuntimeOptions, closers: Closers): Promise<Runtime> => {
  const scrubber = options.scrubber ?? createScrubber()
  addSettingSecrets(config, scrubber)
  const log = createScrubbedLog(options.log ?? silentLog, scrubber)
  const clock = options.clock ?? systemClock
  const parts = await loadAllParts(config.toolFolders, options.toolFolders)
  const telemetry = await openTelemetry({ endpoint: config.otlpEndpoint, clock, log, ...options.traceDelays })
  // closed last, since everything else still ends its spans
  closers.add(() => telemetry.close())
  const { wrap = {} } = options
  const openedDatabases = await openDatabases(config, log, {
    loadDataDir: options.loadDataDir,
    schema: options.migrate ? 'migrate' : 'check',
  })
  closers.add(() => openedDatabases.close())
  // what both parts of the process share works under the login of the API, which may less
  const apiDatabase = wrap.database?.(openedDatabases.api) ?? openedDatabases.api
  const auditing = createAuditing()
  const database = auditing.wrap(apiDatabase)
  const workerDatabase =
    openedDatabases.worker === openedDatabases.api
      ? apiDatabase
      : (wrap.database?.(openedDatabases.worker) ?? openedDatabases.worker)
  const readBacklog = createBacklogReader(database, clock)
  const metrics = createMetrics(readBacklog)
  const { readVisit, withVisits } = createVisitScope()
  const tracer = withVisits(withToolMetrics(telemetry.tracer, metrics, clock))
  const onRunEnded = ({ outcome, ...end }: RunEnd): void => {
    metrics.runEnded(outcome, end.ms)
    const reason = outcome.status === 'cancelled' ? {} : { reason: outcome.reason }
    log.info({ ...end, status: outcome.status, ...reason }, 'a run ended')
  }
  const queueOptions = await toQueueOptions(config, openedDatabases.api)
  const openedQueues = await openQueues({ log, ...queueOptions })
  closers.add(() => openedQueues.close(2000))
  const queues = wrap.queues?.(openedQueues) ?? openedQueues
  const openedHints = await openHints({ log, ...queueOptions })
  const hints = wrap.hints?.(openedHints) ?? openedHints
  closers.add(() => hints.close())
  const feed = await openFeed({ sql: database, hints, clock, log })
  closers.add(() => feed.close())
  await ensureBusiness(database, 'default')
  const layer = await openModels({
    config,
    database,
    hints,
    clock,
    log,
    scrubber,
    closers,
    retryDelays: options.modelRetryDelays ?? {},
    tracer,
    readVisit,
    counts: metrics,
  })
  metrics.onScrape(() => {
    for (const pool of layer.keyPools()) metrics.keyPool(pool)
    const spans = telemetry.counts()
    if (spans) metrics.spans(spans)
  })
  const modelsFor = (caller: ModelCaller): Models => {
    const opened = options.models ?? layer.service.for(caller)
    return wrap.models?.(opened) ?? opened
  }
  const models = modelsFor({ business_id: 'default', user_id: null, run_id: null })

  const tokens = createTokens(database, clock)
  const operators = createOperators(database, clock)
  const egress = openEgress()
  closers.use(egress)
  const files = createFileService({ egress, storage: config.storage, filesRoot: config.filesRoot, log })
  closers.use(files)
  const { embedder } = layer
  const memoryParts = { database: workerDatabase, embedder, log, tracer, recall: config.recall }
  const similarityFor = createTextSimilarity(embedder)
  const checkWebhookAddress = createWebhookCheck((ref) => features.find(ref))
  const features = await openRuntimeFeatures({
    database,
    workerDatabase,
    executorDatabase: openedDatabases.payments,
    config,
    clock,
    log,
    egress,
    queues,
    hints,
    scrubber,
    masterKeys: layer.masterKeys,
    graph: () => graph,
    models,
    modelGateway: layer.service,
    checkBudgets: (spender) => layer.budgets.check(spender),
    checkWebhookAddress,
    address: { origin: toIssuer(config), publicUrl: config.publicUrl ?? null },
    runsOf: (businessId) => of(businessId),
  })
  for (const counter of await features.loadCounters()) metrics.addCounter(counter)
  const retention = await features.loadRetention()
  const secretAnswers = features.find(secretAnswersRef) ?? noSecretAnswers
  /** The services of nodes and tools, made for each run; a new one of the core is a line here. */
  const ofCore: Omit<ServiceFactories, keyof FeatureServices> = {
    models: (run) => modelsFor(toCaller(run)),
    embeddings: (run) => similarityFor(toCaller(run)),
    clock: () => clock,
    log: () => log,
    files: (run, sql) => files.openRunFiles(sql, run),
    media: (run) => layer.media(toCaller(run)),
    blobs: (run, sql) => createBlobs(sql, run),
    users: ({ tenant }, sql) => createUserProfiles(sql, tenant),
    agents: (run, sql) => findAgents(features, sql, run.tenant),
    memories: (run) => {
      const runModels = modelsFor(toCaller(run))
      return createRunMemories(
        { ...memoryParts, models: runModels, ...(runModels.rerank && { rerank: runModels.rerank }) },
        { business: run.tenant, user_id: run.user_id },
        run,
      )
    },
  }
  const builtIn = { ...ofCore, ...(await features.loadRunServices(Object.keys(ofCore))) }
  const own = await openOwnServices(options.setup, log, Object.keys(builtIn))
  closers.add(own.close)
  const services = { ...builtIn, ...own.factories }
  const graph = buildGraph(parts, Object.keys(services))
  const queueCaps = createQueueCaps(database, clock, config.quotas.queuedRuns)
  const quotas = createQuotas(database, config.quotas, clock)
  const pollPermits = createPollPermits()
  const apiParts = {
    checkWebhookAddress,
    secretAnswers,
    database,
    queues,
    feed,
    graph,
    services,
    scenarios: layer.scenarios,
    models,
    queueCaps,
    quotas,
    budgets: layer.budgets,
    pollPermits,
    embedder,
    log,
    tracer,
    onRunEnded,
  }
  const businesses = new Map<string, { api: BusinessApi; submissions: Submissions }>()
  const openBusiness = (businessId: string) => {
    const known = businesses.get(businessId)
    if (known) return known
    const submissions = createSubmissions(apiParts, businessId)
    const opened = { api: createBusinessApi(apiParts, businessId, submissions), submissions }
    businesses.set(businessId, opened)
    return opened
  }
  const of = (businessId: string): BusinessApi => openBusiness(businessId).api
  const intake = createIntake({
    database: workerDatabase,
    clock,
    log,
    queueSecrets: config.queueSecrets,
    of: (businessId) => openBusiness(businessId).submissions.ofJobs,
  })
  const startMemoryWork = (): void => {
    if (options.memory === 'off') return
    const work = startMemoryWorker({
      ...memoryParts,
      modelsFor,
      clock,
      recallBacklogTokens: config.recallBacklogTokens,
      ...options.memory,
    })
    closers.add(() => work.close())
  }
  return {
    of,
    graph,
    models,
    intake,
    authenticate: (token) => tokens.authenticate(token),
    authenticateOperator: (token) => operators.authenticate(token),
    countRequest: (businessId) => quotas.checkRequest(businessId),
    modelService: layer.service,
    metrics,
    admin: createAdminStores({
      database,
      layer,
      tokens,
      operators,
      auditing,
      masterKeys: layer.masterKeys,
      afterSecrets: async (businessId) => features.find(secretsChangedRef)?.(businessId),
      clock,
      readBacklog,
      countDeadWebhooks: () => countDeadWebhooks(features),
      of,
      deleteOfUser: retention.deleteOfUser,
    }),
    async startPayments() {
      const executor = await features.find(executorRef)?.()
      if (executor) closers.add(() => executor.stop())
    },
    features,
    publicOrigin: toIssuer(config),
    health: () => checkHealth(database, queues),
    async startWorker({ concurrency = config.concurrency, maxRuns = config.maxRuns } = {}) {
      await Promise.all([files.sweep(), warnAboutSharedRoot(workerDatabase, config.filesRoot, log)])
      const startLoops = await features.loadLoops()
      const worker = await startRunWorker({
        database: workerDatabase,
        feed,
        queues,
        graph,
        services,
        secretAnswers,
        scenarios: layer.scenarios,
        clock,
        log,
        tracer,
        workerId: newWorkerId(),
        leaseMs: config.leaseMs,
        concurrency,
        maxRuns,
        retention: config.retention,
        sweeps: retention.sweeps,
        intake,
        reports: { ...metrics, ended: onRunEnded },
        onRunReleased(run, exit) {
          if (exit === 'no_model') metrics.requeued()
          options.onRunReleased?.(run, exit)
        },
        actInBulk: (job, runId) => actInBulk(of(job.tenant), job, runId),
      })
      const loops = startLoops(clock, log)
      closers.add(async () => void (await Promise.all([loops.stop(), worker.close()])))
      metrics.onScrape(() => metrics.workerRuns(worker.runCounts()))
      if (config.learning) startMemoryWork()
    },
    startMemoryWork,
    async close(timeoutMs = 10_000) {
      const closed = closers
        .close()
        .catch((error: unknown) => log.warn({ error: String(error) }, 'closing failed'))
      await settlesWithin(closed, timeoutMs)
    },
  }
}

const toCaller = ({ tenant: business_id, user_id, run_id }: RunClaim): ModelCaller => ({
  business_id,
  user_id,
  run_id,
})
