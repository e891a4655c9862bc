import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { MasonError } from '../state/errors.ts'
import {
  crossCheck,
  type RawSettings,
  type Role,
  type SettingFault,
  settingsOf,
} from './config/cross-checks.ts'
import { remedies, type SettingName, type Settings, settingNames, settingsSchema } from './config/settings.ts'
import { type StoragePlaces, storageOf } from './config/storage.ts'

/** What Mason runs on, checked. Secrets in it must not be logged. */
export type Config = {
  /** `memory` is for tests: embedded, and gone with the process. */
  database: { kind: 'embedded'; dataDir: string } | { kind: 'memory' } | { kind: 'postgres'; url: string }
  /** Null: the queue lives in the embedded database. */
  redisUrl: string | null
  http: { port: number; host: string }
  auth: 'required' | 'off'
  adminToken: string | null
  /** 32 bytes, base64. */
  masterKey: string | null
  /** Of the same kind; what is under one of them can still be read. */
  previousMasterKeys: readonly string[]
  /** Null: the built-in offline model serves. */
  openai: { apiKey: string | null; baseUrl: string | null; model: string; embeddingModel: string } | null
  leaseMs: number
  /** Where `local` mappings may point, `{business}` in it the business's id; null: nowhere. */
  filesRoot: string | null
  /** Where mappings of the providers of object storage may point; a provider that is not there: nowhere. */
  storage: StoragePlaces
  /** Days after which the sweep deletes blobs that no session holds, and refused queue jobs. */
  keep: { blobsDays: number; rejectedJobsDays: number }
  concurrency: number
  logLevel: Settings['LOG_LEVEL']
  otlpEndpoint: string | null
  client: { url: string | null; token: string | null }
}

export type Environment = Readonly<Record<string, string | undefined>>

/** The environment of this process over the `.env` of its folder; what is really set wins, as in process.loadEnvFile. */
export const readEnvironment = (folder = process.cwd()): Environment => {
  const path = join(folder, '.env')
  try {
    return { ...parseEnv(readFileSync(path, 'utf8')), ...process.env }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return process.env
    throw new MasonError('invalid_settings', `${path} cannot be read: ${(error as Error).message}`, {
      remedy: 'make it a readable file of NAME=value lines, or remove it',
      cause: error,
    })
  }
}

/**
 * All settings that a process of this role needs. Throws `invalid_settings` with every fault at once in
 * `detail.faults`. An empty setting counts as absent, so that compose files can hand on what may not be there.
 */
export const readConfig = (env: Environment, options: { role: Role }): Config => {
  const { config, faults } = inspectConfig(env, options)
  if (faults.length > 0) throw invalidSettings(faults)
  return config
}

/** The faults, and the configuration as it would be without the settings that have one: for the doctor. */
export const inspectConfig = (
  env: Environment,
  options: { role: Role },
): { config: Config; faults: SettingFault[] } => {
  const raw = rawSettings(env, settingsOf(options.role, settingNames))
  const wrong = (settingsSchema.safeParse(raw).error?.issues ?? []).map(faultOf)
  const faults = [...wrong, ...crossCheck(raw, options.role)]
  const sound: RawSettings = { ...raw }
  for (const { setting } of wrong) delete sound[setting]
  return { config: toConfig(settingsSchema.parse(sound), sound), faults }
}

const rawSettings = (env: Environment, names: readonly SettingName[]): RawSettings =>
  Object.fromEntries(
    names.flatMap((name) => {
      const value = env[name]?.trim()
      return value ? [[name, value]] : []
    }),
  )

const faultOf = (issue: { path: PropertyKey[]; message: string }): SettingFault => {
  const setting = issue.path[0] as SettingName
  return { setting, problem: issue.message, remedy: remedies[setting] }
}

const invalidSettings = (faults: SettingFault[]): MasonError =>
  new MasonError(
    'invalid_settings',
    `${faults.length === 1 ? 'a setting is' : `${faults.length} settings are`} wrong: ${faults.map(({ setting, problem }) => `${setting} ${problem}`).join('; ')}`,
    { remedy: faults.map(({ setting, remedy }) => `${setting}: ${remedy}`).join('; '), detail: { faults } },
  )

/** The faults in an `invalid_settings` error; empty when it is of another kind. */
export const faultsOf = (error: MasonError): SettingFault[] =>
  error.code === 'invalid_settings'
    ? ((error.detail as { faults?: SettingFault[] } | undefined)?.faults ?? [])
    : []

const toConfig = (settings: Settings, raw: RawSettings): Config => ({
  database: settings.DATABASE_URL
    ? { kind: 'postgres', url: settings.DATABASE_URL }
    : { kind: 'embedded', dataDir: settings.DATA_DIR },
  redisUrl: settings.REDIS_URL ?? null,
  http: { port: settings.PORT, host: settings.HOST },
  auth: settings.MASON_AUTH,
  adminToken: settings.MASON_ADMIN_TOKEN ?? null,
  masterKey: settings.MASON_MASTER_KEY ?? null,
  previousMasterKeys: settings.MASON_PREVIOUS_MASTER_KEYS,
  openai: raw.OPENAI_API_KEY || raw.OPENAI_BASE_URL ? openaiOf(settings) : null,
  leaseMs: settings.MASON_LEASE_MS,
  filesRoot: settings.MASON_FILES_ROOT ?? null,
  storage: storageOf(settings),
  keep: {
    blobsDays: settings.MASON_KEEP_BLOBS_DAYS,
    rejectedJobsDays: settings.MASON_KEEP_REJECTED_JOBS_DAYS,
  },
  concurrency: settings.WORKER_CONCURRENCY,
  logLevel: settings.LOG_LEVEL,
  otlpEndpoint: settings.OTEL_EXPORTER_OTLP_ENDPOINT ?? null,
  client: { url: settings.MASON_URL ?? null, token: settings.MASON_TOKEN ?? null },
})

const openaiOf = (settings: Settings): NonNullable<Config['openai']> => ({
  apiKey: settings.OPENAI_API_KEY ?? null,
  baseUrl: settings.OPENAI_BASE_URL ?? null,
  model: settings.OPENAI_MODEL,
  embeddingModel: settings.OPENAI_EMBEDDING_MODEL,
})
