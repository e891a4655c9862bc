import { isIPv4 } from 'node:net'
import { makeAdminToken, makeMasterKey, remedies, type SettingName } from './settings.ts'
import { missingStorage } from './storage.ts'

/** What is wrong with one setting, and what to do about it. Never holds the value of a secret. */
export type SettingFault = { setting: SettingName; problem: string; remedy: string }

/** What the process is going to be; it decides which settings it needs. */
export type Role = 'serve' | 'api' | 'worker' | 'run' | 'migrate' | 'keys' | 'client'

/** The settings as they stand in the environment, the empty ones left out. */
export type RawSettings = Partial<Record<SettingName, string>>

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || host === '[::1]' || (isIPv4(host) && host.startsWith('127.'))

const pairFault = (missing: 'DATABASE_URL' | 'REDIS_URL'): SettingFault => {
  const [given, what] =
    missing === 'DATABASE_URL' ? ['REDIS_URL', 'the database'] : ['DATABASE_URL', 'the queue']
  return {
    setting: missing,
    problem: `is missing while ${given} is set: the two go together`,
    remedy: `set ${missing} to ${what} that all processes share, or leave ${given} out to run embedded`,
  }
}

const workerFault = (missing: 'DATABASE_URL' | 'REDIS_URL'): SettingFault => ({
  setting: missing,
  problem: 'is missing: a worker shares its database and queue with other processes',
  remedy:
    missing === 'DATABASE_URL'
      ? 'for example postgres://user:password@127.0.0.1:5432/mason; embedded, `mason serve` is API and worker in one'
      : 'for example redis://127.0.0.1:6379',
})

const checkServers = (raw: RawSettings, role: Role): SettingFault[] => {
  const missing = (['DATABASE_URL', 'REDIS_URL'] as const).filter((name) => raw[name] === undefined)
  if (role === 'worker') return missing.map(workerFault)
  return missing.length === 1 ? missing.map(pairFault) : []
}

const checkDoor = (raw: RawSettings): SettingFault[] => {
  const open = raw.MASON_AUTH === 'off'
  if (open && raw.HOST !== undefined && !isLoopback(raw.HOST))
    return [
      {
        setting: 'MASON_AUTH',
        problem: `is off while HOST is ${JSON.stringify(raw.HOST)}: anybody who reaches it could do anything`,
        remedy: 'leave MASON_AUTH out, or set HOST to 127.0.0.1',
      },
    ]
  if (open || raw.DATABASE_URL === undefined || raw.MASON_ADMIN_TOKEN !== undefined) return []
  return [
    {
      setting: 'MASON_ADMIN_TOKEN',
      problem: 'is missing: with a database of its own Mason makes none by itself',
      remedy: `make one and set it for every API process: ${makeAdminToken}`,
    },
  ]
}

const checkMasterKey = (raw: RawSettings): SettingFault[] =>
  raw.DATABASE_URL === undefined || raw.MASON_MASTER_KEY !== undefined
    ? []
    : [
        {
          setting: 'MASON_MASTER_KEY',
          problem: 'is missing: it encrypts the keys of model vendors in the database',
          remedy: `make one, keep it, and set it for every process: ${makeMasterKey}`,
        },
      ]

const checkStorage = (raw: RawSettings): SettingFault[] =>
  missingStorage(raw).map((setting) => ({
    setting,
    problem: 'is missing while others of this storage are set',
    remedy: `${remedies[setting]}, or leave them all out`,
  }))

/** Faults that lie between settings, or in what is not there. */
export const crossCheck = (raw: RawSettings, role: Role): SettingFault[] => {
  switch (role) {
    case 'serve':
    case 'api':
      return [...checkServers(raw, role), ...checkDoor(raw), ...checkMasterKey(raw), ...checkStorage(raw)]
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
              problem: 'is missing: nothing says where Mason is',
              remedy: 'set it, or give --url http://127.0.0.1:8080',
            },
          ]
        : []
    default:
      throw role satisfies never
  }
}

/** The settings a role looks at; a fault in any other is none of its business. */
export const settingsOf = (role: Role, all: readonly SettingName[]): readonly SettingName[] => {
  if (role === 'client') return ['MASON_URL', 'MASON_TOKEN', 'LOG_LEVEL']
  if (role === 'migrate') return ['DATABASE_URL', 'DATA_DIR', 'LOG_LEVEL']
  if (role === 'keys')
    return ['DATABASE_URL', 'DATA_DIR', 'MASON_MASTER_KEY', 'MASON_PREVIOUS_MASTER_KEYS', 'LOG_LEVEL']
  return all
}
