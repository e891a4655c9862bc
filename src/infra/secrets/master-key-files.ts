import { randomBytes } from 'node:crypto'
import { link, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Sql } from '../../state/ports/sql.ts'
import type { Config } from '../config/config.ts'
import { createMasterKeys, type MasterKeys } from './master-keys.ts'
import {
  readOrCreateSecretFile,
  readSecretFile,
  removeDrafts,
  replaceSecretFile,
  type SecretFile,
  syncPath,
} from './secret-file.ts'

const createMasterKey = (): string => randomBytes(32).toString('base64')

const currentFile: SecretFile = {
  name: 'master-key',
  create: createMasterKey,
  pattern: /^[A-Za-z0-9+/]{43}=$/,
  lossRemedy:
    'restore it from a backup; without it the stored vendor keys are unreadable, so remove it only to enter them again',
}
/** The files of a key in DATA_DIR; `previous` exists while rows may still be under it. */
export type KeyFiles = { current: SecretFile; previous: SecretFile }

const masterFiles: KeyFiles = {
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

/**
 * Creates a new master key in the folder and keeps the previous one beside it. If that already exists, an earlier rotation
 * is incomplete and `resumed` is true: its key stays. After a crash between any two steps both keys are readable, and the
 * next call continues. The caller holds the lock of the folder.
 */
export const beginKeyRotation = async (
  dataDir: string,
  files = masterFiles,
): Promise<{ resumed: boolean }> => {
  const { value: current, path } = await readOrCreateSecretFile(dataDir, files.current)
  const previous = await readSecretFile(dataDir, files.previous)
  if (previous !== null && previous !== current) return { resumed: true }
  if (previous === null) {
    await link(path, join(dataDir, files.previous.name))
    await syncPath(dataDir)
  }
  await replaceSecretFile(path, createMasterKey())
  return { resumed: false }
}

/**
 * Removes the previous key, and the drafts that killed rotations left. Call it once no row is under that key, with the lock
 * of the folder.
 */
export const endKeyRotation = async (dataDir: string, files = masterFiles): Promise<void> => {
  await rm(join(dataDir, files.previous.name), { force: true })
  await removeDrafts(join(dataDir, files.current.name))
  await syncPath(dataDir)
}

/** Syncs the files of the embedded database, which does not sync by itself: a crash of the machine must not restore rows whose key is gone. */
export const syncDatabaseFiles = async (sql: Sql, dataDir: string): Promise<void> => {
  await sql.query('CHECKPOINT')
  const folder = join(dataDir, 'pgdata')
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) await syncPath(join(entry.parentPath, entry.name))
}
