import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { type MasonError, toSettingsError } from '../../state/errors.ts'
import {
  type ExecutorSettings,
  findRoleErrors,
  isWorker,
  type ProcessRole,
  type RawSettings,
  readSettings,
  type SettingError,
} from './role-settings.ts'
import { type Settings, settingNames, settingRemedies, settingsSchema } from './settings.ts'
import { readStorageLocations } from './storage.ts'

/**
 * The validated settings. It holds secrets, which must not be logged.
 *
 * @example
 * ```ts
 * import type { Config } from 'mason-runtime'
 *
 * const isEmbedded = ({ database }: Config): boolean => database.kind === 'embedded'
 * ```
 */
export type Config = Omit<ReturnType<typeof toConfig>, 'metricsPort' | 'publicUrl'> & {
  /** Where this process serves metrics and probes beside the API; absent: nowhere. */
  metricsPort?: number | undefined
  /** The origin under which users open pages; absent: there are none. */
  publicUrl?: string | undefined
  /** `memory` is for tests: embedded, and lost with the process. */
  database: { kind: 'embedded'; dataDir: string } | { kind: 'memory' } | ServerDatabase
  /** The key of the executor of payments, 32 bytes in base64; no other process of a server has it, nor earlier ones. */
  paymentKey: string | null
  previousPaymentKeys: readonly string[]
  /** The other variables `MASON_…`, which settings of features read; absent: none. */
  featureVariables?: Environment
}

/** A database server. `url` is for what has no login of its own; a process of one part has the login of that part only. */
export type ServerDatabase = {
  kind: 'postgres'
  url: string
  apiUrl?: string | undefined
  workerUrl?: string | undefined
  /** The executor of payments; only that process and `mason migrate` have it. */
  paymentUrl?: string | undefined
  /** The setting that names it. */
  paymentSetting?: string | undefined
  /** Who migrates; absent: the user of `url`. */
  migrateUrl?: string | undefined
}

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>

/**
 * Reads the environment of this process and the `.env` file of `folder`. A variable of the process wins over the file.
 *
 * @example
 * ```ts
 * import { readEnvironment } from 'mason-runtime'
 *
 * const env = { ...readEnvironment(), LOG_LEVEL: 'warn' }
 * ```
 */
export const readEnvironment = (folder = process.cwd()): Environment => {
  const path = join(folder, '.env')
  try {
    return { ...parseEnv(readFileSync(path, 'utf8')), ...process.env }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return process.env
    throw toSettingsError(
      `${path} cannot be read: ${(error as Error).message}`,
      'make it a readable file of NAME=value lines, or remove it',
      error,
    )
  }
}

/** The errors, and the configuration without the settings that have one. `executor`: what a feature adds; absent: none does. */
export const inspectSettings = (
  env: Environment,
  role: ProcessRole,
  executor?: ExecutorSettings,
): { config: Config; errors: SettingError[] } => {
  const schema = settingsSchema.extend(executor?.schema.shape ?? {})
  const remedies: Readonly<Record<string, string>> = { ...settingRemedies, ...executor?.remedies }
  const own = executor?.readBy[role] ?? (readSettings[role] ? [] : Object.keys(executor?.schema.shape ?? {}))
  const raw = readRawSettings(env, [...(readSettings[role] ?? settingNames), ...own])
  const settingErrors = (schema.safeParse(raw).error?.issues ?? []).map(({ path, message }) => {
    const setting = String(path[0])
    return { setting, problem: message, remedy: remedies[setting] }
  })
  const errors = [...settingErrors, ...findRoleErrors(raw, role, executor?.rules)].map(
    ({ remedy, ...error }) => ({ ...error, remedy: remedy ?? remedies[error.setting] ?? '' }),
  )
  const valid = { ...raw }
  for (const { setting } of settingErrors) delete valid[setting]
  const others = Object.keys(env).filter((name) => name.startsWith('MASON_') && !(name in remedies))
  const all = schema.parse(valid) as AllSettings
  const database = toDatabase(all, role, executor?.names.url)
  // a process of a server that is not the executor must not hold its key, whatever its environment has
  const isExecutor = role === 'payments' || database.kind === 'embedded'
  const read = <Value>(name = ''): Value | undefined => (isExecutor ? (all[name] as Value) : undefined)
  const config: Config = {
    ...toConfig(all, valid),
    database,
    paymentKey: read<string>(executor?.names.key) ?? null,
    previousPaymentKeys: read<string[]>(executor?.names.previousKeys) ?? [],
    featureVariables: readRawSettings(env, others),
  }
  return { config, errors }
}

const readRawSettings = (env: Environment, names: readonly string[]): RawSettings =>
  Object.fromEntries(
    names.flatMap((name) => {
      const value = env[name]?.trim()
      return value ? [[name, value]] : []
    }),
  )

/** The setting errors inside an `invalid_settings` error; empty for any other error. */
export const readSettingErrors = (error: MasonError): SettingError[] =>
  error.code === 'invalid_settings'
    ? ((error.detail as { errors?: SettingError[] } | undefined)?.errors ?? [])
    : []

const megabyte = 1024 * 1024

type AllSettings = Settings & Record<string, unknown>

const toDatabase = (settings: AllSettings, role: ProcessRole, named = ''): Config['database'] => {
  const { DATABASE_URL, MASON_MIGRATE_URL: migrateUrl } = settings
  const apiUrl = isWorker(role) ? undefined : settings.MASON_API_DATABASE_URL
  const workerUrl = role === 'api' ? undefined : settings.MASON_WORKER_DATABASE_URL
  const isNamed = role === 'payments' || role === 'migrate'
  const paymentUrl = isNamed ? (settings[named] as string | undefined) : undefined
  const paymentSetting = paymentUrl && named
  if (role === 'payments' && paymentUrl !== undefined)
    return { kind: 'postgres', url: paymentUrl, paymentUrl, paymentSetting }
  const own =
    role === 'migrate' ? migrateUrl : role === 'api' ? apiUrl : isWorker(role) ? workerUrl : undefined
  const logins = { apiUrl, workerUrl, paymentUrl, paymentSetting }
  const url = own ?? DATABASE_URL ?? apiUrl ?? workerUrl ?? paymentUrl
  return url === undefined
    ? { kind: 'embedded', dataDir: settings.DATA_DIR }
    : { kind: 'postgres', url, ...logins, migrateUrl: migrateUrl ?? DATABASE_URL }
}

const toConfig = (settings: Settings, raw: RawSettings) => ({
  /** Null: the process wakes itself. */
  redisUrl: settings.REDIS_URL ?? null,
  /** Begins every key and channel in Redis. */
  queuePrefix: settings.MASON_QUEUE_PREFIX,
  http: { port: settings.PORT, host: settings.HOST },
  metricsPort: settings.MASON_METRICS_PORT,
  /** Bytes of request bodies in flight: of all callers of a process, and of one token. */
  bodyMemory: {
    processBytes: settings.MASON_BODY_MEMORY_MB * megabyte,
    tokenBytes: settings.MASON_TOKEN_BODY_MEMORY_MB * megabyte,
  },
  /** How long a call of the OpenAI-compatible endpoint waits between its tries, in all. */
  maxWaitMs: settings.MASON_MAX_WAIT_MS,
  /** What a business may use where it has no quota of its own; null: no limit. */
  quotas: {
    storageBytes: settings.MASON_QUOTA_STORAGE_MB * megabyte,
    queuedRuns: settings.MASON_QUOTA_QUEUED_RUNS,
    requestsPerMinute: settings.MASON_QUOTA_REQUESTS_PER_MINUTE ?? null,
  },
  publicUrl: settings.MASON_PUBLIC_URL,
  auth: settings.MASON_AUTH,
  /** What of the server is open without a token, and to pages of which origins. */
  access: {
    /** `admin`: with the admin token only; `off`: not there. */
    metrics: settings.MASON_METRICS,
    docs: settings.MASON_DOCS,
    console: settings.MASON_CONSOLE,
    /** Origins whose pages may call; `*` for all. */
    corsOrigins: settings.MASON_CORS_ORIGINS as readonly string[],
    /** Addresses and networks whose X-Forwarded-For says where a request comes from. */
    trustedProxies: settings.MASON_TRUSTED_PROXIES as readonly string[],
  },
  /** With which jobs of the public queue are signed, the current one first; empty: they are not. */
  queueSecrets: settings.MASON_QUEUE_SECRET
    ? [settings.MASON_QUEUE_SECRET, ...settings.MASON_PREVIOUS_QUEUE_SECRETS]
    : [],
  adminToken: settings.MASON_ADMIN_TOKEN ?? null,
  /** 32 bytes, base64. */
  masterKey: settings.MASON_MASTER_KEY ?? null,
  /** Earlier master keys in the same form; secrets under them stay readable. */
  previousMasterKeys: settings.MASON_PREVIOUS_MASTER_KEYS as readonly string[],
  /** Null: the built-in offline model serves. */
  openai: raw.OPENAI_API_KEY || raw.OPENAI_BASE_URL ? toOpenAIConfig(settings) : null,
  /** How the built-in offline model calls tools. */
  offlineDialect: settings.MASON_OFFLINE_DIALECT,
  /** Whether a process that executes runs learns from ended ones too. */
  learning: settings.MASON_LEARNING === 'on',
  /** Whether ended turns are stored and recalled in later sessions. */
  recall: settings.MASON_RECALL === 'on',
  /** Tokens of older turns that are embedded an hour and a business. */
  recallBacklogTokens: settings.MASON_RECALL_BACKLOG_TOKENS,
  leaseMs: settings.MASON_LEASE_MS,
  /** The root folder of `local` mappings, with `{business}` for the business id; null: no local mappings. */
  filesRoot: settings.MASON_FILES_ROOT ?? null,
  /** The buckets that mappings may read, by provider. */
  storage: readStorageLocations(settings),
  /** Days after which the sweep deletes blobs that no session holds, and rejected queue jobs. */
  retention: {
    blobsDays: settings.MASON_KEEP_BLOBS_DAYS,
    rejectedJobsDays: settings.MASON_KEEP_REJECTED_JOBS_DAYS,
  },
  /** What works at once in a worker, and how many runs it has at once, at work and waiting. */
  concurrency: settings.WORKER_CONCURRENCY,
  maxRuns: settings.WORKER_MAX_RUNS,
  logLevel: settings.LOG_LEVEL,
  otlpEndpoint: settings.OTEL_EXPORTER_OTLP_ENDPOINT ?? null,
  /** Folders with nodes and tools of a product. */
  toolFolders: settings.MASON_TOOLS,
  /** Those of its features. */
  featureFolders: settings.MASON_FEATURES,
  client: { url: settings.MASON_URL ?? null, token: settings.MASON_TOKEN ?? null },
})

const toOpenAIConfig = (settings: Settings) => ({
  apiKey: settings.OPENAI_API_KEY ?? null,
  baseUrl: settings.OPENAI_BASE_URL ?? null,
  model: settings.OPENAI_MODEL,
  embeddingModel: settings.OPENAI_EMBEDDING_MODEL,
})
