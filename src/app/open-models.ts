import { createBudgetChecks } from '../accounts/budget-checks.ts'
import type { Config } from '../infra/config/config.ts'
import type { Database } from '../infra/database/database.ts'
import { openEgress } from '../infra/egress/egress.ts'
import type { Closers } from '../infra/lib/closers.ts'
import type { Hints } from '../infra/queue/hints.ts'
import { openMasterKeys } from '../infra/secrets/master-key-files.ts'
import type { Scrubber } from '../infra/secrets/scrubber.ts'
import type { VisitNote } from '../infra/telemetry/visit-scope.ts'
import { createMemoryEmbedder } from '../memory/store/embedder.ts'
import type { CallCounts } from '../models/call/call-counts.ts'
import { createMediaPort } from '../models/call/media-port.ts'
import { createModelGateway } from '../models/call/model-gateway.ts'
import { createModelAdmin } from '../models/call/model-probe.ts'
import { createStopRefusals } from '../models/call/stop-refusals.ts'
import { createUnreadAnswers } from '../models/call/unread-answers.ts'
import { builtInFormats } from '../models/formats/built-in/built-in-formats.ts'
import { compileFormat } from '../models/formats/format-compiler.ts'
import {
  createModelHealth,
  type ModelHealth,
  type ModelHealthOptions,
  minHealthyKeys,
} from '../models/health/model-health.ts'
import { createRunCostReader } from '../models/metering/cost.ts'
import { createMeter } from '../models/metering/meter.ts'
import type { ModelCaller, RegistryView, ResponseReader } from '../models/ports/model-ports.ts'
import { withInProcessModel } from '../models/providers/in-process-model.ts'
import { createOpenAIProvider } from '../models/providers/openai/openai-provider.ts'
import { openHttpProvider } from '../models/providers/template/template-provider.ts'
import { openRegistry } from '../models/registry/live-registry.ts'
import { createRegistryAdmin } from '../models/registry/registry-admin.ts'
import { createModelChooser } from '../models/routing/model-chooser.ts'
import type { FormatView } from '../models/schemas/response-format.ts'
import { createJsonParser } from '../models/transport/json-parser.ts'
import type { RetryPolicy } from '../models/transport/retry-policy.ts'
import { memoizeByObject } from '../state/memoize.ts'
import type { Clock } from '../state/ports/clock.ts'
import type { Log } from '../state/ports/log.ts'
import type { Tracer } from '../state/ports/tracer.ts'
import type { Scenario, Scenarios } from '../state/scenario.ts'
import { findInProcessModel } from './find-in-process-model.ts'

const listScenarios = memoizeByObject((rows: ReadonlyMap<string, Scenario>): readonly Scenario[] => [
  ...rows.values(),
])

/** A candidate gets so many requests of a call at most, with these delays in between. */
const defaultRetry = { attempts: 2, baseMs: 500, maxMs: 20_000 }

/** Delays after errors of vendors; tests use shorter ones. */
export type ModelRetryDelays = Pick<ModelHealthOptions, 'cooling' | 'disabled'> & {
  retry?: RetryPolicy
}

/** The largest image, recording or video that is fetched from an address: what a tool can read back. */
const maxMediaBytes = 64 * 1024 * 1024

type ModelLayerParts = {
  retryDelays: ModelRetryDelays
  config: Config
  database: Database
  hints: Hints
  clock: Clock
  log: Log
  scrubber: Scrubber
  closers: Closers
  tracer: Tracer
  /** The visit that goes on; null: none. */
  readVisit(): VisitNote | null
  counts: CallCounts
}

/** Opens everything between the port of the graph and the vendors: registry, health, ledger, providers, and the gateway. */
export const openModels = async (parts: ModelLayerParts) => {
  const { config, database, hints, clock, log, scrubber, closers, retryDelays } = parts
  const masterKeys = await openMasterKeys(config, (secret) => scrubber.add(secret))
  const inProcess = await findInProcessModel(config)
  const registry = await openRegistry({
    database,
    masterKeys,
    openai: config.openai,
    builtIn: inProcess?.entry,
    formats: builtInFormats(),
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

  const budgets = createBudgetChecks(database, clock, () => meter.flush())

  const readerOf = createReaderCache()
  const openai = createOpenAIProvider({
    egress,
    getReader: ({ format }) => format && readerOf(format),
    clock,
    log,
  })
  const providers = {
    openai: inProcess ? withInProcessModel(openai, inProcess) : openai,
    http: openHttpProvider({ egress, clock, compile: readerOf }),
  }
  const redact = (text: string): string => scrubber.text(text)
  const requests = { providers, meter, health, clock, log, registry, redact, readVisit: parts.readVisit }
  const chooser = createModelChooser(health)
  const transport = {
    egress,
    clock,
    maxBytes: maxMediaBytes,
    maxEvent: maxMediaBytes,
    parseJson: createJsonParser(),
  }
  const service = createModelGateway({
    ...requests,
    chooser,
    retry: retryDelays.retry ?? defaultRetry,
    unread: createUnreadAnswers(database, redact, log),
    stops: createStopRefusals(database, registry, log),
    readRunCost: createRunCostReader(database, meter),
    findReachedBudget: budgets.findReached,
    counts: parts.counts,
    tracer: parts.tracer,
  })
  const registryAdmin = createRegistryAdmin({
    database,
    masterKeys,
    registry,
    hints,
    models: createModelAdmin({ ...requests, scrubber }),
  })
  return {
    service,
    budgets,
    masterKeys,
    registryAdmin,
    scenarios: {
      list: () => listScenarios(registry.view.scenarios),
      find: (name) => registry.view.scenarios.get(name) ?? null,
    } satisfies Scenarios,
    media: (caller: ModelCaller) =>
      createMediaPort({ ...requests, ask: service.ask, chooser, transport }, caller),
    embedder: createMemoryEmbedder({ sql: database, ask: service.ask, view: () => registry.view }),
    keyPools: () => listKeyPools(registry.view, health),
  }
}

/** Compiles each format once, at its first response. */
const createReaderCache = (): ((format: FormatView) => ResponseReader) => {
  const readers = new WeakMap<FormatView, ResponseReader>()
  return (format) => {
    const reader = readers.get(format) ?? compileFormat(format)
    readers.set(format, reader)
    return reader
  }
}

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
