import { randomBytes } from 'node:crypto'
import type { Config } from '../config/config.ts'
import { createMasterKeys, type MasterKeys } from './master-keys.ts'
import { readOrCreateSecretFile, readSecretFile, type SecretFile } from './secret-file.ts'

/** A new master key. */
export const createMasterKey = (): string => randomBytes(32).toString('base64')

const currentFile: SecretFile = {
  name: 'master-key',
  create: createMasterKey,
  pattern: /^[A-Za-z0-9+/]{43}=$/,
  lossRemedy:
    'restore it from a backup; without it the stored vendor keys are unreadable, so remove it only to enter them again',
}
/** The files of a key in DATA_DIR; `previous` exists while rows may still be under it. */
export type KeyFiles = { current: SecretFile; previous: SecretFile }

/** Those of the master key. */
export const masterFiles: KeyFiles = {
  current: currentFile,
  previous: { ...currentFile, name: 'master-key.previous' },
}

/** The files of another key, by its name. `lossRemedy` says what to do where its file is lost. */
export const createKeyFiles = (name: string, lossRemedy: string): KeyFiles => ({
  current: { ...currentFile, name, lossRemedy },
  previous: { ...currentFile, name: `${name}.previous` },
})

/**
 * The master keys of the settings. Embedded without that setting: the key file in DATA_DIR, created when missing. Call it
 * while the database is open, whose lock excludes a rotation. Keys in DATA_DIR decrypt rows even where the settings have a
 * master key. `onSecret` gets each key that was read from a file.
 */
export const openMasterKeys = async (
  config: Pick<Config, 'database' | 'masterKey' | 'previousMasterKeys'>,
  onSecret: (secret: string) => void = () => {},
): Promise<MasterKeys> => {
  const { database, masterKey, previousMasterKeys } = config
  return openKeys(database, masterFiles, masterKey, previousMasterKeys, onSecret)
}

/** The same for another key, with its settings and files. */
export const openKeys = async (
  database: Config['database'],
  { current, previous }: KeyFiles,
  key: string | null,
  previousKeys: readonly string[],
  onSecret: (secret: string) => void,
): Promise<MasterKeys> => {
  if (database.kind === 'postgres') return createMasterKeys(key, previousKeys)
  if (database.kind === 'memory') return createMasterKeys(key ?? createMasterKey(), previousKeys)
  const { dataDir } = database
  const first = key ?? (await readOrCreateSecretFile(dataDir, current)).value
  const files = [await readSecretFile(dataDir, current), await readSecretFile(dataDir, previous)]
  const storedKeys = files.filter((stored) => stored !== null)
  for (const secret of storedKeys) onSecret(secret)
  return createMasterKeys(first, [...previousKeys, ...storedKeys])
}
