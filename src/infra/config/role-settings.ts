import { isIPv4 } from 'node:net'
import type { z } from 'zod'
import { adminTokenCommand, masterKeyCommand, type SettingName } from './settings.ts'
import { listMissingStorage, type StorageSetting, storageRemedies } from './storage.ts'

/** A wrong setting and its remedy. Never contains the value of a secret. */
export type SettingError = { setting: string; problem: string; remedy: string }

/** The kind of process, which decides the settings it needs. */
export type ProcessRole =
  | 'serve'
  | 'api'
  | 'worker'
  | 'memory'
  | 'payments'
  | 'run'
  | 'models'
  | 'migrate'
  | 'keys'
  | 'queue'
  | 'tools'
  | 'client'

/** Whether it works as `mason_worker`, with no part of the API. */
export const isWorker = (role: ProcessRole): boolean => role === 'worker' || role === 'memory'

/** The settings as the environment has them, without the empty ones. */
export type RawSettings = Partial<Record<SettingName, string>> & Record<string, string | undefined>

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || host === '[::1]' || (isIPv4(host) && host.startsWith('127.'))

/** The logins that can stand in for DATABASE_URL, by the parts of the process. */
const bothLogins = ['MASON_API_DATABASE_URL', 'MASON_WORKER_DATABASE_URL'] as const

/** The settings that say which database it is. */
export const databaseSettings = ['DATABASE_URL', ...bothLogins, 'DATA_DIR'] as const

/** The settings of the roles that do not read all; they ignore errors in all others. */
export const readSettings: Partial<Record<ProcessRole, readonly SettingName[]>> = {
  payments: [
    ...databaseSettings,
    'MASON_MIGRATE_URL',
    'MASON_MASTER_KEY',
    'REDIS_URL',
    'MASON_QUEUE_PREFIX',
    'MASON_METRICS_PORT',
    'MASON_PUBLIC_URL',
    'MASON_LEASE_MS',
    'PORT',
    'HOST',
    'LOG_LEVEL',
  ],
  migrate: [...databaseSettings, 'MASON_MIGRATE_URL', 'MASON_FEATURES', 'LOG_LEVEL'],
  keys: [
    ...databaseSettings,
    'MASON_MASTER_KEY',
    'MASON_PREVIOUS_MASTER_KEYS',
    'MASON_FEATURES',
    'LOG_LEVEL',
  ],
  queue: [...databaseSettings, 'REDIS_URL', 'MASON_QUEUE_PREFIX', 'LOG_LEVEL'],
  tools: ['MASON_TOOLS', 'MASON_FEATURES', 'LOG_LEVEL'],
  client: ['MASON_URL', 'MASON_TOKEN', 'LOG_LEVEL'],
}

/** Whether the process works on a server, and not on the embedded database. */
export const isServed = (raw: RawSettings): boolean =>
  raw.DATABASE_URL !== undefined || bothLogins.some((name) => raw[name] !== undefined)

/** The logins that a role may work with in place of DATABASE_URL. */
const listLogins = (role: ProcessRole) =>
  bothLogins.filter((name) => {
    if (isWorker(role)) return name === 'MASON_WORKER_DATABASE_URL'
    return role !== 'api' || name === 'MASON_API_DATABASE_URL'
  })

/** The settings that name the database of a role, for messages; null: none. */
const findDatabase = (raw: RawSettings, role: ProcessRole): string | null => {
  if (raw.DATABASE_URL !== undefined) return 'DATABASE_URL'
  const logins = listLogins(role)
  const present = logins.filter((name) => raw[name] !== undefined)
  // of a command, any login will do; a process needs those of all its parts
  if (role === 'models' || role === 'queue') return present[0] ?? null
  return present.length === logins.length ? present.join(' and ') : null
}

const readUser = (url: string): string | null => (URL.canParse(url) ? new URL(url).username : null)

/** The setting whose user is that of this database too. */
export const findSharedUser = (raw: RawSettings, url: string): SettingName | undefined =>
  ([...bothLogins, 'MASON_MIGRATE_URL', 'DATABASE_URL'] as const).find((name) => {
    const other = raw[name]
    return other !== undefined && readUser(other) === readUser(url)
  })

type Rule = {
  roles: readonly ProcessRole[]
  setting: string
  /** What is wrong with the setting, in view of the others. */
  problem(raw: RawSettings, role: ProcessRole): string | false
  /** Absent: that of a wrong value. */
  remedy?: string | ((raw: RawSettings, role: ProcessRole) => string)
}

/** What a feature adds for a process with a login and keys of its own, which no other process of a server gets. */
export type ExecutorSettings = {
  names: { url: string; key: string; previousKeys: string }
  /** Of all its settings. */
  schema: z.ZodObject
  /** Those that a role reads which does not read all. */
  readBy: Partial<Record<ProcessRole, readonly string[]>>
  /** What to do about a wrong value of each. */
  remedies: Readonly<Record<string, string>>
  /** What it lacks, and what must not be set together. */
  rules: readonly Rule[]
}

const apis = ['serve', 'api'] as const
const storages = [...apis, 'worker', 'memory', 'run', 'models'] as const
const embeddable = [...apis, 'run', 'models', 'queue'] as const
const oneLogin = 'is missing: this process is both API and worker, and only one of them has a login'
const shared = 'is missing: a worker shares it with other processes'

/** Which role needs which setting, and what must not be set together. */
const rules: readonly Rule[] = [
  ...bothLogins.map(
    (setting): Rule => ({
      roles: ['serve', 'run'],
      setting,
      problem: (raw) =>
        isServed(raw) && raw.DATABASE_URL === undefined && raw[setting] === undefined && oneLogin,
    }),
  ),
  {
    roles: embeddable,
    setting: 'DATABASE_URL',
    problem: (raw, role) =>
      raw.REDIS_URL !== undefined &&
      ['DATABASE_URL', ...listLogins(role)].every((name) => raw[name as SettingName] === undefined) &&
      'is missing while REDIS_URL is set: both are needed together',
    remedy: 'set DATABASE_URL to the database that all processes share, or remove REDIS_URL to run embedded',
  },
  {
    roles: embeddable,
    setting: 'REDIS_URL',
    problem: (raw, role) => {
      const database = raw.REDIS_URL === undefined ? findDatabase(raw, role) : null
      return database !== null && `is missing while ${database} is set: both are needed together`
    },
    remedy: (raw, role) =>
      `set REDIS_URL to the queue that all processes share, or remove ${findDatabase(raw, role)} to run embedded`,
  },
  {
    roles: ['worker', 'memory'],
    setting: 'DATABASE_URL',
    problem: (raw, role) => findDatabase(raw, role) === null && shared,
    remedy:
      'set it, for example to postgres://user:password@127.0.0.1:5432/mason; without it, `mason serve` runs API and worker in one process',
  },
  { roles: ['worker'], setting: 'REDIS_URL', problem: (raw) => raw.REDIS_URL === undefined && shared },
  {
    roles: ['migrate'],
    setting: 'MASON_MIGRATE_URL',
    problem: (raw) =>
      isServed(raw) &&
      raw.DATABASE_URL === undefined &&
      raw.MASON_MIGRATE_URL === undefined &&
      'is missing: the logins of API and workers may not change tables',
  },
  {
    roles: apis,
    setting: 'MASON_AUTH',
    problem: (raw) =>
      raw.MASON_AUTH === 'off' &&
      raw.HOST !== undefined &&
      !isLoopback(raw.HOST) &&
      `is off while HOST is ${JSON.stringify(raw.HOST)}: every client that reaches it would have full access`,
    remedy: 'remove MASON_AUTH, or set HOST to 127.0.0.1',
  },
  {
    roles: apis,
    setting: 'MASON_ADMIN_TOKEN',
    problem: (raw) =>
      raw.MASON_AUTH !== 'off' &&
      isServed(raw) &&
      raw.MASON_ADMIN_TOKEN === undefined &&
      'is missing: on a database server Mason does not create one',
    remedy: `create one and set it for every API process: ${adminTokenCommand}`,
  },
  {
    roles: apis,
    setting: 'MASON_CORS_ORIGINS',
    problem: (raw) =>
      raw.MASON_AUTH === 'off' &&
      raw.MASON_CORS_ORIGINS?.includes('*') === true &&
      'is * while MASON_AUTH is off: every web page that a user of this machine opens would have full access',
    remedy: 'list the origins of your own pages, or remove MASON_AUTH',
  },
  {
    roles: [...storages, 'keys'],
    setting: 'MASON_MASTER_KEY',
    problem: (raw) =>
      isServed(raw) &&
      raw.MASON_MASTER_KEY === undefined &&
      'is missing: it encrypts the API keys of vendors in the database',
    remedy: `create one, keep it safe, and set it for every process: ${masterKeyCommand}`,
  },
  ...(Object.keys(storageRemedies) as StorageSetting[]).map(
    (setting): Rule => ({
      roles: storages,
      setting,
      problem: (raw) =>
        listMissingStorage(raw).includes(setting) &&
        'is missing while other settings of this storage are set',
      remedy: `${storageRemedies[setting]}, or remove all of them`,
    }),
  ),
  {
    roles: [...apis, 'worker'],
    setting: 'MASON_QUEUE_SECRET',
    problem: (raw) =>
      raw.MASON_PREVIOUS_QUEUE_SECRETS !== undefined &&
      raw.MASON_QUEUE_SECRET === undefined &&
      'is missing while MASON_PREVIOUS_QUEUE_SECRETS is set: jobs would not be checked at all',
  },
  {
    roles: ['client'],
    setting: 'MASON_URL',
    problem: (raw) => raw.MASON_URL === undefined && 'is missing: the address of the server is unknown',
    remedy: 'set it, or pass --url http://127.0.0.1:8080',
  },
]

/** The settings that a role lacks, or has beside others that do not go with them. */
export const findRoleErrors = (raw: RawSettings, role: ProcessRole, added: readonly Rule[] = []) =>
  [...rules, ...added].flatMap(({ roles, setting, problem: find, remedy }) => {
    const problem = roles.includes(role) && find(raw, role)
    return problem
      ? [{ setting, problem, remedy: typeof remedy === 'function' ? remedy(raw, role) : remedy }]
      : []
  })
