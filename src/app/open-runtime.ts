import { ensureBusiness } from '../accounts/businesses.ts'
import { openFeed } from '../engine/events/feed.ts'
import { noSecretAnswers } from '../engine/runs/secret-answers.ts'
import type { RunEnd } from '../engine/runs/settlement.ts'
import { noUserMemory } from '../engine/sessions/user-memory.ts'
import { startRunWorker } from '../engine/worker/worker-loops.ts'
import {
  executorRef,
  secretAnswersRef,
  serverAddressRef,
  unrepeatableWorkRef,
  userMemoryRef,
} from '../features/core.ref.ts'
import { warnAboutSharedRoot } from '../files/shared-files-root.ts'
import { buildGraph } from '../graph/build.ts'
import type { Config } from '../infra/config/config.ts'
import { type Closers, closeWithin, createClosers } from '../infra/lib/closers.ts'
import { newWorkerId } from '../infra/lib/ids.ts'
import { createAdminStores } from './admin-stores.ts'
import type { Runtime } from './api.ts'
import { createBusinessApis } from './business-api.ts'
import { checkHealth } from './check-health.ts'
import { loadProduct } from './load-all-parts.ts'
import { openDrivers, openScrubber } from './open-drivers.ts'
import { openModels } from './open-models.ts'
import { openRuntimeFeatures } from './open-runtime-features.ts'
import { openFiles, openRunServices } from './run-services.ts'
import type { RuntimeOptions } from './runtime-options.ts'

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
  // before own tools are loaded, whose errors may quote a secret
  const scrubber = openScrubber(config, options)
  const { sources, parts } = await loadProduct(config, options.toolFolders)
  const drivers = await openDrivers(config, options, scrubber, closers, sources)
  const { database, workerDatabase, queues, hints, clock, log, metrics } = drivers
  const feed = await openFeed({ sql: database, hints, clock, log })
  closers.add(() => feed.close())
  await ensureBusiness(database, 'default')
  const layer = await openModels(config, options, drivers, (caller) => features.findReachedBudget(caller))
  const models = layer.for({ business_id: 'default', user_id: null, run_id: null })
  const files = openFiles(config, drivers, sources)
  const features = await openRuntimeFeatures({
    ...drivers,
    sources,
    config,
    layer,
    models,
    graph: () => graph,
    files,
    runsOf: (businessId) => of(businessId),
    jobsOf: (businessId) => jobsOf(businessId),
  })
  for (const counter of await features.loadCounters()) metrics.addCounter(counter)
  const retention = await features.loadRetention()
  const memory = features.find(userMemoryRef) ?? noUserMemory
  const services = await openRunServices({ ...drivers, layer, files, features, memory }, options)
  const graph = buildGraph(parts, Object.keys(services))
  const onRunEnded = ({ outcome, ...end }: RunEnd): void => {
    metrics.runEnded(outcome, end.ms)
    const reason = outcome.status === 'cancelled' ? {} : { reason: outcome.reason }
    log.info({ ...end, status: outcome.status, ...reason }, 'a run ended')
  }
  const secretAnswers = features.find(secretAnswersRef) ?? noSecretAnswers
  const ofRuns = { ...drivers, feed, graph, services, scenarios: layer.scenarios, secretAnswers }
  const { of, jobsOf, countRequest } = createBusinessApis(config, {
    ...ofRuns,
    models,
    checkBudgets: features.checkBudgets,
    memory,
    checkWebhookAddress: features.checkWebhookAddress,
    unrepeatable: features.find(unrepeatableWorkRef),
    onRunEnded,
  })
  const admin = createAdminStores({
    ...drivers,
    layer,
    features,
    memory,
    deleteOfUser: retention.deleteOfUser,
  })
  const startMemoryWork = (): void => {
    if (options.memory === 'off') return
    const work = memory.startWork({ modelsFor: layer.for, ...options.memory })
    closers.add(() => work.close())
  }
  return {
    of,
    graph,
    models,
    authenticate: (token) => admin.tokens.authenticate(token),
    authenticateOperator: (token) => admin.operators.authenticate(token),
    countRequest,
    modelService: layer.service,
    metrics,
    admin,
    async startPayments() {
      const executor = await features.find(executorRef)?.()
      if (executor) closers.add(() => executor.stop())
    },
    features,
    publicOrigin: features.get(serverAddressRef).origin,
    health: () => checkHealth(database, queues),
    async startWorker({ concurrency = config.concurrency, maxRuns = config.maxRuns } = {}) {
      await Promise.all([files.sweep(), warnAboutSharedRoot(workerDatabase, config.filesRoot, log)])
      const startLoops = await features.loadLoops()
      const worker = await startRunWorker({
        ...ofRuns,
        database: workerDatabase,
        workerId: newWorkerId(),
        leaseMs: config.leaseMs,
        concurrency,
        maxRuns,
        retention: config.retention,
        sweeps: retention.sweeps,
        reports: { ...metrics, ended: onRunEnded },
        onRunReleased(run, exit) {
          if (exit === 'no_model') metrics.requeued()
          options.onRunReleased?.(run, exit)
        },
      })
      const loops = startLoops(clock, log)
      closers.add(async () => void (await Promise.all([loops.stop(), worker.close()])))
      metrics.onScrape(() => metrics.workerRuns(worker.runCounts()))
      if (config.learning) startMemoryWork()
    },
    startMemoryWork,
    close: (timeoutMs = 10_000) => closeWithin(closers, timeoutMs, log),
  }
}
