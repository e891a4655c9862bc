import { isIPv4 } from 'node:net'
import { adminTokenCommand, masterKeyCommand, type SettingName, settingRemedies } from './settings.ts'
import { listMissingStorage } from './storage.ts'

/** A wrong setting and its remedy. Never contains the value of a secret. */
export type SettingError = { setting: SettingName; problem: string; remedy: string }

/** The kind of process, which decides the settings it needs. */
export type ProcessRole = 'serve' | 'api' | 'worker' | 'run' | 'migrate' | 'keys' | 'queue' | 'client'

/** The settings as the environment has them, without the empty ones. */
export type RawSettings = Partial<Record<SettingName, string>>

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || host === '[::1]' || (isIPv4(host) && host.startsWith('127.'))

const serverSettings = ['DATABASE_URL', 'REDIS_URL'] as const

const listMissingServers = (raw: RawSettings) => serverSettings.filter((name) => raw[name] === undefined)

/** Embedded or served: both settings or none. */
const checkServers = (raw: RawSettings): SettingError[] => {
  const [missing, ...others] = listMissingServers(raw)
  if (missing === undefined || others.length > 0) return []
  const [present, what] =
    missing === 'DATABASE_URL' ? ['REDIS_URL', 'the database'] : ['DATABASE_URL', 'the queue']
  return [
    {
      setting: missing,
      problem: `is missing while ${present} is set: both are needed together`,
      remedy: `set ${missing} to ${what} that all processes share, or remove ${present} to run embedded`,
    },
  ]
}

const checkWorkerServers = (raw: RawSettings): SettingError[] =>
  listMissingServers(raw).map((setting) => ({
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
  if (open || raw.DATABASE_URL === undefined || raw.MASON_ADMIN_TOKEN !== undefined) return []
  return [
    {
      setting: 'MASON_ADMIN_TOKEN',
      problem: 'is missing: with DATABASE_URL set, Mason does not create one',
      remedy: `create one and set it for every API process: ${adminTokenCommand}`,
    },
  ]
}

const checkMasterKey = (raw: RawSettings): SettingError[] =>
  raw.DATABASE_URL === undefined || raw.MASON_MASTER_KEY !== undefined
    ? []
    : [
        {
          setting: 'MASON_MASTER_KEY',
          problem: 'is missing: it encrypts the API keys of vendors in the database',
          remedy: `create one, keep it safe, and set it for every process: ${masterKeyCommand}`,
        },
      ]

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

const apiRules: RoleRules = { checks: [checkServers, checkAuth, checkMasterKey, checkStorage] }

/** Which settings each role reads, and which errors it checks for in combinations of them. */
export const roleRules: Record<ProcessRole, RoleRules> = {
  serve: apiRules,
  api: apiRules,
  worker: { checks: [checkWorkerServers, checkMasterKey, checkStorage] },
  run: { checks: [checkServers, checkMasterKey, checkStorage] },
  migrate: { reads: ['DATABASE_URL', 'DATA_DIR', 'LOG_LEVEL'], checks: [] },
  keys: {
    reads: ['DATABASE_URL', 'DATA_DIR', 'MASON_MASTER_KEY', 'MASON_PREVIOUS_MASTER_KEYS', 'LOG_LEVEL'],
    checks: [checkMasterKey],
  },
  queue: {
    reads: ['DATABASE_URL', 'DATA_DIR', 'REDIS_URL', 'MASON_QUEUE_PREFIX', 'LOG_LEVEL'],
    checks: [checkServers],
  },
  client: { reads: ['MASON_URL', 'MASON_TOKEN', 'LOG_LEVEL'], checks: [checkClient] },
}
