import { isIPv4 } from 'node:net'
import { adminTokenCommand, masterKeyCommand, type SettingName, settingRemedies } from './settings.ts'
import { listMissingStorage } from './storage.ts'

/** A wrong setting and its remedy. Never contains the value of a secret. */
export type SettingError = { setting: SettingName; problem: string; remedy: string }

/** The kind of process, which decides the settings it needs. */
export type ProcessRole =
  | 'serve'
  | 'api'
  | 'worker'
  | 'payments'
  | 'run'
  | 'models'
  | 'migrate'
  | 'keys'
  | 'queue'
  | 'tools'
  | 'client'

/** The settings as the environment has them, without the empty ones. */
export type RawSettings = Partial<Record<SettingName, string>>

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || host === '[::1]' || (isIPv4(host) && host.startsWith('127.'))

/** The logins that can stand in for DATABASE_URL, by the parts of the process. */
type LoginSetting = 'MASON_API_DATABASE_URL' | 'MASON_WORKER_DATABASE_URL'
const bothLogins: readonly LoginSetting[] = ['MASON_API_DATABASE_URL', 'MASON_WORKER_DATABASE_URL']

/** Whether the process works on a server, and not on the embedded database. */
const isServed = (raw: RawSettings): boolean =>
  raw.DATABASE_URL !== undefined || bothLogins.some((name) => raw[name] !== undefined)

/** The settings of servers that are missing, for a process with these parts. */
const listMissingServers = (
  raw: RawSettings,
  logins: readonly LoginSetting[],
): ('DATABASE_URL' | 'REDIS_URL' | LoginSetting)[] => {
  const missing = logins.filter((name) => raw[name] === undefined)
  const database =
    raw.DATABASE_URL !== undefined || (logins.length > 0 && missing.length === 0)
      ? []
      : [missing.length < logins.length ? (missing[0] as LoginSetting) : ('DATABASE_URL' as const)]
  return [...database, ...(raw.REDIS_URL === undefined ? ['REDIS_URL' as const] : [])]
}

/** Embedded or served: both settings or none. */
const checkServers = (raw: RawSettings, logins = bothLogins): SettingError[] => {
  const [missing, ...others] = listMissingServers(raw, logins)
  if (missing === 'MASON_API_DATABASE_URL' || missing === 'MASON_WORKER_DATABASE_URL')
    return [
      {
        setting: missing,
        problem: 'is missing: this process is both API and worker, and only one of them has a login',
        remedy: settingRemedies[missing],
      },
    ]
  if (missing === undefined || others.length > 0) return []
  const [present, what] =
    missing === 'DATABASE_URL'
      ? ['REDIS_URL', 'the database']
      : [raw.DATABASE_URL === undefined ? logins.join(' and ') : 'DATABASE_URL', 'the queue']
  return [
    {
      setting: missing,
      problem: `is missing while ${present} is set: both are needed together`,
      remedy: `set ${missing} to ${what} that all processes share, or remove ${present} to run embedded`,
    },
  ]
}

/** Each role works on the database of its own login. */
const checkApiServers = (raw: RawSettings): SettingError[] => checkServers(raw, ['MASON_API_DATABASE_URL'])

/** For a command that any one login suffices for. */
const checkAnyServer = (raw: RawSettings): SettingError[] =>
  checkServers(raw, bothLogins.filter((name) => raw[name] !== undefined).slice(0, 1))

const checkMigrateUser = (raw: RawSettings): SettingError[] =>
  isServed(raw) && raw.DATABASE_URL === undefined && raw.MASON_MIGRATE_URL === undefined
    ? [
        {
          setting: 'MASON_MIGRATE_URL',
          problem: 'is missing: the logins of API and workers may not change tables',
          remedy: settingRemedies.MASON_MIGRATE_URL,
        },
      ]
    : []

const checkWorkerServers = (raw: RawSettings): SettingError[] =>
  listMissingServers(raw, ['MASON_WORKER_DATABASE_URL']).map((setting) => ({
    setting,
    problem: 'is missing: a worker shares its database and queue with other processes',
    remedy:
      setting === 'DATABASE_URL'
        ? 'set it, for example to postgres://user:password@127.0.0.1:5432/mason; without it, `mason serve` runs API and worker in one process'
        : settingRemedies.REDIS_URL,
  }))

const checkAuth = (raw: RawSettings): SettingError[] => {
  const open = raw.MASON_AUTH === 'off'
  if (open && raw.HOST !== undefined && !isLoopback(raw.HOST))
    return [
      {
        setting: 'MASON_AUTH',
        problem: `is off while HOST is ${JSON.stringify(raw.HOST)}: every client that reaches it would have full access`,
        remedy: 'remove MASON_AUTH, or set HOST to 127.0.0.1',
      },
    ]
  if (open || !isServed(raw) || raw.MASON_ADMIN_TOKEN !== undefined) return []
  return [
    {
      setting: 'MASON_ADMIN_TOKEN',
      problem: 'is missing: on a database server Mason does not create one',
      remedy: `create one and set it for every API process: ${adminTokenCommand}`,
    },
  ]
}

/** Pages of these origins call without a token then. */
const checkOrigins = (raw: RawSettings): SettingError[] =>
  raw.MASON_AUTH === 'off' && raw.MASON_CORS_ORIGINS?.includes('*')
    ? [
        {
          setting: 'MASON_CORS_ORIGINS',
          problem:
            'is * while MASON_AUTH is off: every web page that a user of this machine opens would have full access',
          remedy: 'list the origins of your own pages, or remove MASON_AUTH',
        },
      ]
    : []

const checkQueueSecret = (raw: RawSettings): SettingError[] =>
  raw.MASON_PREVIOUS_QUEUE_SECRETS !== undefined && raw.MASON_QUEUE_SECRET === undefined
    ? [
        {
          setting: 'MASON_QUEUE_SECRET',
          problem: 'is missing while MASON_PREVIOUS_QUEUE_SECRETS is set: jobs would not be checked at all',
          remedy: settingRemedies.MASON_QUEUE_SECRET,
        },
      ]
    : []

const checkMasterKey = (raw: RawSettings): SettingError[] =>
  !isServed(raw) || raw.MASON_MASTER_KEY !== undefined
    ? []
    : [
        {
          setting: 'MASON_MASTER_KEY',
          problem: 'is missing: it encrypts the API keys of vendors in the database',
          remedy: `create one, keep it safe, and set it for every process: ${masterKeyCommand}`,
        },
      ]

/** The executor works with a login and a key that no other process has. */
const checkPayments = (raw: RawSettings): SettingError[] => {
  const url = raw.MASON_PAYMENT_DATABASE_URL
  if (url === undefined)
    return [
      {
        setting: 'MASON_PAYMENT_DATABASE_URL',
        problem: isServed(raw)
          ? 'is missing: the executor of payments never uses the login of another process'
          : 'is missing: without a database server the executor runs inside `mason serve`, not in a process of its own',
        remedy: settingRemedies.MASON_PAYMENT_DATABASE_URL,
      },
    ]
  const shared = [...bothLogins, 'MASON_MIGRATE_URL', 'DATABASE_URL'] as const
  const same = shared.find((name) => readUser(raw[name]) === readUser(url))
  return [
    ...(same === undefined
      ? []
      : [
          {
            setting: 'MASON_PAYMENT_DATABASE_URL' as const,
            problem: `names the user of ${same}: the executor needs a login that no other process has`,
            remedy: settingRemedies.MASON_PAYMENT_DATABASE_URL,
          },
        ]),
    ...(raw.MASON_PUBLIC_URL === undefined
      ? [
          {
            setting: 'MASON_PUBLIC_URL' as const,
            problem: 'is missing: mandates are made for this address, and receipts are signed as it',
            remedy: settingRemedies.MASON_PUBLIC_URL,
          },
        ]
      : []),
    ...(raw.MASON_PAYMENT_KEY === undefined
      ? [
          {
            setting: 'MASON_PAYMENT_KEY' as const,
            problem: 'is missing: it encrypts the private keys of the executor in the database',
            remedy: settingRemedies.MASON_PAYMENT_KEY,
          },
        ]
      : []),
  ]
}

/** Null where there is none to compare. */
const readUser = (url: string | undefined): string | null =>
  url !== undefined && URL.canParse(url) ? new URL(url).username || null : null

const checkPaymentKey = (raw: RawSettings): SettingError[] =>
  raw.MASON_PAYMENT_KEY !== undefined && raw.MASON_PAYMENT_KEY === raw.MASON_MASTER_KEY
    ? [
        {
          setting: 'MASON_PAYMENT_KEY',
          problem: 'is the same as MASON_MASTER_KEY, which API and workers have',
          remedy: settingRemedies.MASON_PAYMENT_KEY,
        },
      ]
    : []

const checkStorage = (raw: RawSettings): SettingError[] =>
  listMissingStorage(raw).map((setting) => ({
    setting,
    problem: 'is missing while other settings of this storage are set',
    remedy: `${settingRemedies[setting]}, or remove all of them`,
  }))

const checkClient = (raw: RawSettings): SettingError[] =>
  raw.MASON_URL === undefined
    ? [
        {
          setting: 'MASON_URL',
          problem: 'is missing: the address of the server is unknown',
          remedy: 'set it, or pass --url http://127.0.0.1:8080',
        },
      ]
    : []

type RoleRules = {
  /** The settings that the role reads, where it does not read all; it ignores errors in all others. */
  reads?: readonly SettingName[]
  checks: readonly ((raw: RawSettings) => SettingError[])[]
}

const serverChecks = [
  checkAuth,
  checkOrigins,
  checkMasterKey,
  checkPaymentKey,
  checkStorage,
  checkQueueSecret,
]

/** The settings that say which database it is. */
export const databaseSettings = ['DATABASE_URL', ...bothLogins, 'DATA_DIR'] as const

/** What only the executor of payments has. */
const paymentSettings = [
  'MASON_PAYMENT_DATABASE_URL',
  'MASON_PAYMENT_KEY',
  'MASON_PREVIOUS_PAYMENT_KEYS',
] as const

/** Which settings each role reads, and which errors it checks for in combinations of them. */
export const roleRules: Record<ProcessRole, RoleRules> = {
  serve: { checks: [checkServers, ...serverChecks] },
  api: { checks: [checkApiServers, ...serverChecks] },
  payments: {
    reads: [
      ...databaseSettings,
      ...paymentSettings,
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
    checks: [checkPayments, checkPaymentKey],
  },
  worker: { checks: [checkWorkerServers, checkMasterKey, checkStorage, checkQueueSecret] },
  run: { checks: [checkServers, checkMasterKey, checkStorage] },
  models: { checks: [checkAnyServer, checkMasterKey, checkStorage] },
  migrate: {
    reads: [...databaseSettings, 'MASON_PAYMENT_DATABASE_URL', 'MASON_MIGRATE_URL', 'LOG_LEVEL'],
    checks: [checkMigrateUser],
  },
  keys: {
    reads: [
      ...databaseSettings,
      ...paymentSettings,
      'MASON_MASTER_KEY',
      'MASON_PREVIOUS_MASTER_KEYS',
      'LOG_LEVEL',
    ],
    checks: [checkMasterKey, checkPaymentKey],
  },
  queue: {
    reads: [...databaseSettings, 'REDIS_URL', 'MASON_QUEUE_PREFIX', 'LOG_LEVEL'],
    checks: [checkAnyServer],
  },
  tools: { reads: ['MASON_TOOLS', 'LOG_LEVEL'], checks: [] },
  client: { reads: ['MASON_URL', 'MASON_TOKEN', 'LOG_LEVEL'], checks: [checkClient] },
}
