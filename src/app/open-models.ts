import type { Config } from '../infra/config/config.ts'
import { openEgress } from '../infra/egress/egress.ts'
import { openMasterKeys } from '../infra/secrets/master-key-files.ts'
import { createModelGateway } from '../models/call/model-gateway.ts'
import { createStopRefusals } from '../models/call/stop-refusals.ts'
import { createUnreadAnswers } from '../models/call/unread-answers.ts'
import { createModelHealth, type ModelHealth, minHealthyKeys } from '../models/health/model-health.ts'
import { createRunCostReader } from '../models/metering/cost.ts'
import { createMeter } from '../models/metering/meter.ts'
import type { ModelCaller, RegistryView } from '../models/ports/model-ports.ts'
import { withInProcessModel } from '../models/providers/in-process-model.ts'
import { createOpenAIProvider } from '../models/providers/openai/openai-provider.ts'
import { openRegistry } from '../models/registry/live-registry.ts'
import { createRegistryAdmin, type RegistryAdmin } from '../models/registry/registry-admin.ts'
import { createModelChooser } from '../models/routing/choose-model-and-key.ts'
import type { ModelProbes } from '../models/schemas/model-probe.ts'
import { memoizeByObject } from '../state/memoize.ts'
import type { Models } from '../state/ports/models.ts'
import type { Scenario, Scenarios } from '../state/scenario.ts'
import { findInProcessModel, findResponseFormats } from './find-early.ts'
import type { Drivers } from './open-drivers.ts'
import type { RuntimeOptions } from './runtime-options.ts'

const listScenarios = memoizeByObject((rows: ReadonlyMap<string, Scenario>): readonly Scenario[] => [
  ...rows.values(),
])

/** A candidate gets so many requests of a call at most, with these delays in between. */
const defaultRetry = { attempts: 2, baseMs: 500, maxMs: 20_000 }

/** Opens everything between the port of the graph and the vendors: registry, health, ledger, providers, and the gateway. */
export const openModels = async (
  config: Config,
  options: RuntimeOptions,
  drivers: Drivers,
  findReachedBudget: (caller: ModelCaller) => Promise<object | null>,
) => {
  const { database, hints, clock, log, scrubber, closers, metrics } = drivers
  const { modelRetryDelays: retryDelays = {} } = options
  const masterKeys = await openMasterKeys(config, (secret) => scrubber.add(secret))
  const inProcess = await findInProcessModel(config)
  const formats = await findResponseFormats()
  const registry = await openRegistry({
    database,
    masterKeys,
    openai: config.openai,
    builtIn: inProcess?.entry,
    formats: formats.builtIn,
    onSecret: (secret) => scrubber.add(secret),
    hints,
    clock,
    log,
  })
  closers.use(registry)
  const health = createModelHealth({ sql: database, hints, clock, log, ...retryDelays })
  closers.use(health)
  const meter = createMeter({ database, clock, log })
  closers.use(meter)
  const egress = openEgress()
  closers.use(egress)

  const openai = createOpenAIProvider({ egress, formats, clock, log })
  const providers = {
    openai: inProcess ? withInProcessModel(openai, inProcess) : openai,
    http: formats.openProvider({ egress, clock }),
  }
  const redact = (text: string): string => scrubber.text(text)
  const requests = { providers, meter, health, clock, log, registry, redact }
  const chooser = createModelChooser(health)
  const service = createModelGateway({
    ...requests,
    chooser,
    retry: retryDelays.retry ?? defaultRetry,
    unread: createUnreadAnswers(database, redact, log),
    stops: createStopRefusals(database, registry, log),
    readRunCost: createRunCostReader(database, meter),
    findReachedBudget,
    counts: metrics,
    tracer: drivers.tracer,
    ...(formats.createReranker && { createReranker: formats.createReranker }),
  })
  const createAdmin = (models: ModelProbes): RegistryAdmin =>
    createRegistryAdmin({ database, masterKeys, registry, hints, models, formats })
  metrics.onScrape(() => {
    for (const pool of listKeyPools(registry.view, health)) metrics.keyPool(pool)
  })
  return {
    service,
    /** The port of the graph. */
    for(caller: ModelCaller): Models {
      const models = options.models ?? service.for(caller)
      return options.wrap?.models?.(models) ?? models
    },
    flushLedger: () => meter.flush(),
    masterKeys,
    registry,
    createAdmin,
    scenarios: {
      list: () => listScenarios(registry.view.scenarios),
      find: (name) => registry.view.scenarios.get(name) ?? null,
    } satisfies Scenarios,
    requests: { ...requests, ask: service.ask, chooser, egress },
  }
}

/** See `openModels`. */
export type ModelLayer = Awaited<ReturnType<typeof openModels>>

/** How many keys of each vendor are healthy now, and whether they are too few. */
const listKeyPools = (
  { models, keysByVendor }: RegistryView,
  health: ModelHealth,
): { vendor: string; healthy: number; isLow: boolean }[] => {
  const vendors = new Map([...models.values()].map(({ vendor }) => [vendor.id, vendor]))
  return [...vendors.values()].flatMap((vendor) => {
    const keys = (keysByVendor.get(vendor.id) ?? []).filter(({ active }) => active)
    if (!vendor.active || keys.length === 0) return []
    const healthy = keys.filter(
      ({ id, secret }) => secret !== null && health.stateOf('key', id) === null,
    ).length
    return [{ vendor: vendor.name, healthy, isLow: healthy < minHealthyKeys }]
  })
}
