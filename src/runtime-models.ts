import type { Closers } from './infra/closers.ts'
import type { Config } from './infra/config.ts'
import type { Database } from './infra/database/database.ts'
import { openEgress } from './infra/egress.ts'
import { builtInFormats } from './infra/formats/built-in.ts'
import { checkFormat } from './infra/formats/check.ts'
import { compile } from './infra/formats/compile.ts'
import { createEmbedder, type Embedder } from './infra/memory/embeddings.ts'
import { createMeter } from './infra/metering/meter.ts'
import { createRunCosts } from './infra/metering/run-costs.ts'
import { createCallCounts } from './infra/models/call/counts.ts'
import { createModelService } from './infra/models/call/service.ts'
import { createModelAdmin } from './infra/models/call/trial.ts'
import { createUnreadAnswers } from './infra/models/call/unread.ts'
import type { ModelService } from './infra/models/call-ports.ts'
import { createChooser } from './infra/models/choose/choose.ts'
import { poolFloor } from './infra/models/health/floor.ts'
import { createHealth, type Health, type HealthOptions } from './infra/models/health/health.ts'
import { openHttpProvider } from './infra/models/http/provider.ts'
import { withOffline } from './infra/models/offline/egress.ts'
import { createOpenAIProvider } from './infra/models/openai/provider.ts'
import type { AnswerReader, RegistryView } from './infra/models/ports.ts'
import type { Retry } from './infra/models/wire/retry.ts'
import type { Hints } from './infra/queue/hints.ts'
import { createRegistryAdmin, type RegistryAdmin } from './infra/registry/admin.ts'
import { openRegistry } from './infra/registry/follow.ts'
import { openMasterKeys } from './infra/secrets/master-key-files.ts'
import type { Scrubber } from './infra/secrets/scrubber.ts'
import type { ModelStats } from './runtime-api.ts'
import type { Clock, Log } from './state/ports.ts'
import type { FormatView } from './state/registry/response-format.ts'
import type { Scenarios } from './state/registry/scenario.ts'
import type { Tracer } from './state/trace.ts'

/** A call goes round its candidates so often at most, with these waits between. */
const retry = { attempts: 4, baseMs: 500, maxMs: 20_000 }

/** How long is waited after faults of vendors; tests wait less. */
export type ModelWaits = Pick<HealthOptions, 'cooling' | 'disabled' | 'strikes'> & { retry?: Retry }

type Parts = {
  waits: ModelWaits
  config: Config
  database: Database
  hints: Hints
  clock: Clock
  log: Log
  scrubber: Scrubber
  opened: Closers
  tracer: Tracer
}

export type ModelLayer = {
  service: ModelService
  registryAdmin: RegistryAdmin
  scenarios: Scenarios
  embedder: Embedder
  stats(): ModelStats
}

/** Everything between the graph's port and the vendors: registry, health, ledger, ways out, and THE call path over them. */
export const openModelLayer = async (parts: Parts): Promise<ModelLayer> => {
  const { config, database, hints, clock, log, scrubber, opened, waits } = parts
  const masterKeys = await openMasterKeys(config, (secret) => scrubber.add(secret))
  const registry = await openRegistry({
    database,
    masterKeys,
    openai: config.openai,
    formats: { builtIn: builtInFormats(), check: checkFormat },
    onSecret: (secret) => scrubber.add(secret),
    hints,
    clock,
    log,
  })
  opened.add(async () => registry[Symbol.asyncDispose]())
  const health = createHealth({ sql: database, hints, clock, log, ...waits })
  opened.add(async () => health[Symbol.asyncDispose]())
  const meter = createMeter({ database, clock, log })
  opened.add(async () => meter[Symbol.asyncDispose]())
  const reached = openEgress()
  // without settings of a server the offline model serves, and answers at its own address
  const egress = config.openai === null ? withOffline(reached) : reached
  opened.add(async () => egress[Symbol.asyncDispose]())

  const readerOf = createReaders()
  const providers = {
    openai: createOpenAIProvider({
      egress,
      readerOf: ({ format }) => format && readerOf(format),
      clock,
      log,
    }),
    http: openHttpProvider({ egress, clock, compile: readerOf }),
  }
  const redact = (text: string): string => scrubber.text(text)
  const requests = { providers, meter, health, clock, log, registry, redact }
  const counts = createCallCounts()
  const service = createModelService({
    ...requests,
    chooser: createChooser(health),
    retry: waits.retry ?? retry,
    unread: createUnreadAnswers(database, redact, log),
    costOf: createRunCosts(database, meter),
    counts,
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
    registryAdmin,
    scenarios: {
      list: () => [...registry.view.scenarios.values()],
      find: (name) => registry.view.scenarios.get(name) ?? null,
    },
    embedder: createEmbedder({ sql: database, ask: service.ask, view: () => registry.view }),
    stats: () => ({ ...counts.read(), pools: poolsOf(registry.view, health) }),
  }
}

/** Formats are compiled at their first answer, once each. */
const createReaders = (): ((format: FormatView) => AnswerReader) => {
  const readers = new WeakMap<FormatView, AnswerReader>()
  return (format) => {
    const reader = readers.get(format) ?? compile(format)
    readers.set(format, reader)
    return reader
  }
}

/** How many keys of each vendor could serve now. */
const poolsOf = ({ models, keysByVendor }: RegistryView, health: Health): ModelStats['pools'] => {
  const vendors = new Map([...models.values()].map(({ vendor }) => [vendor.id, vendor]))
  return [...vendors.values()].flatMap((vendor) => {
    const keys = (keysByVendor.get(vendor.id) ?? []).filter(({ active }) => active)
    if (!vendor.active || keys.length === 0) return []
    const healthy = keys.filter(
      ({ id, secret }) => secret !== null && health.stateOf('key', id) === null,
    ).length
    return [{ vendor: vendor.name, healthy, isLow: healthy < poolFloor }]
  })
}
