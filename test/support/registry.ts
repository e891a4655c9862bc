import { randomBytes } from 'node:crypto'
import { offlineEntry } from '../../src/features/offline-model/offline-provider.ts'
import type { Config } from '../../src/infra/config/config.ts'
import type { Database } from '../../src/infra/database/database.ts'
import { silentLog } from '../../src/infra/lib/silent-log.ts'
import { systemClock } from '../../src/infra/lib/system-clock.ts'
import { type Hints, openHints } from '../../src/infra/queue/hints.ts'
import { createMasterKeys } from '../../src/infra/secrets/master-keys.ts'
import { openRegistry, type RegistryOptions } from '../../src/models/registry/live-registry.ts'

/** What a registry in memory stands on, on any database. */

export const newMasterKey = (): string => randomBytes(32).toString('base64')

export const openaiSettings = (
  more: Partial<NonNullable<Config['openai']>> = {},
): NonNullable<Config['openai']> => ({
  apiKey: 'sk-of-the-settings',
  baseUrl: null,
  model: 'gpt-x',
  embeddingModel: 'embed-x',
  ...more,
})

const localHints = (): Promise<Hints> => openHints({ kind: 'embedded', log: silentLog })

export const registryOptions = async (
  database: Database,
  more: Partial<RegistryOptions> = {},
): Promise<RegistryOptions> => ({
  database,
  masterKeys: createMasterKeys(newMasterKey()),
  openai: null,
  builtIn: offlineEntry,
  formats: [],
  onSecret: () => {},
  hints: more.hints ?? (await localHints()),
  clock: systemClock,
  log: silentLog,
  ...more,
})

export const openTestRegistry = async (database: Database, more: Partial<RegistryOptions> = {}) =>
  openRegistry(await registryOptions(database, more))
