import { isIPv4 } from 'node:net'
import { adminTokenCommand, masterKeyCommand, type SettingName, settingRemedies } from './settings.ts'
import { listMissingStorage } from './storage.ts'

/** A wrong setting and its remedy. Never contains the value of a secret. */
export type SettingError = { setting: SettingName; problem: string; remedy: string }

/** The kind of process, which decides the settings it needs. */
export type ProcessRole = 'serve' | 'api' | 'worker' | 'run' | 'migrate' | 'keys' | 'client'

/** The settings as the environment has them, without the empty ones. */
export type RawSettings = Partial<Record<SettingName, string>>

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || host === '[::1]' || (isIPv4(host) && host.startsWith('127.'))

const createPairError = (missing: 'DATABASE_URL' | 'REDIS_URL'): SettingError => {
  const [present, what] =
    missing === 'DATABASE_URL' ? ['REDIS_URL', 'the database'] : ['DATABASE_URL', 'the queue']
  return {
    setting: missing,
    problem: `is missing while ${present} is set: both are needed together`,
    remedy: `set ${missing} to ${what} that all processes share, or remove ${present} to run embedded`,
  }
}

const createWorkerError = (missing: 'DATABASE_URL' | 'REDIS_URL'): SettingError => ({
  setting: missing,
  problem: 'is missing: a worker shares its database and queue with other processes',
  remedy:
    missing === 'DATABASE_URL'
      ? 'set it, for example to postgres://user:password@127.0.0.1:5432/mason; without it, `mason serve` runs API and worker in one process'
      : 'set it, for example to redis://127.0.0.1:6379',
})

const checkServers = (raw: RawSettings, role: ProcessRole): SettingError[] => {
  const missing = (['DATABASE_URL', 'REDIS_URL'] as const).filter((name) => raw[name] === undefined)
  if (role === 'worker') return missing.map(createWorkerError)
  return missing.length === 1 ? missing.map(createPairError) : []
}

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

/** The errors in combinations of settings, and for missing ones. */
export const crossCheckSettings = (raw: RawSettings, role: ProcessRole): SettingError[] => {
  switch (role) {
    case 'serve':
    case 'api':
      return [...checkServers(raw, role), ...checkAuth(raw), ...checkMasterKey(raw), ...checkStorage(raw)]
    case 'worker':
    case 'run':
      return [...checkServers(raw, role), ...checkMasterKey(raw), ...checkStorage(raw)]
    case 'migrate':
      return []
    case 'keys':
      return checkMasterKey(raw)
    case 'client':
      return raw.MASON_URL === undefined
        ? [
            {
              setting: 'MASON_URL',
              problem: 'is missing: the address of the server is unknown',
              remedy: 'set it, or pass --url http://127.0.0.1:8080',
            },
          ]
        : []
    default:
      throw role satisfies never
  }
}

/** The settings that a role reads; it ignores errors in all others. */
export const selectSettings = (role: ProcessRole, all: readonly SettingName[]): readonly SettingName[] => {
  if (role === 'client') return ['MASON_URL', 'MASON_TOKEN', 'LOG_LEVEL']
  if (role === 'migrate') return ['DATABASE_URL', 'DATA_DIR', 'LOG_LEVEL']
  if (role === 'keys')
    return ['DATABASE_URL', 'DATA_DIR', 'MASON_MASTER_KEY', 'MASON_PREVIOUS_MASTER_KEYS', 'LOG_LEVEL']
  return all
}
