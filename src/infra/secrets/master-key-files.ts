import { randomBytes } from 'node:crypto'
import { link, open, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Sql } from '../../state/ports.ts'
import type { Config } from '../config.ts'
import { createMasterKeys, type MasterKeys } from './master-keys.ts'
import { keepFolder, readSecretFile, replaceSecretFile, type SecretFile, secretIn } from './secret-file.ts'

const newMasterKey = (): string => randomBytes(32).toString('base64')

const currentFile: SecretFile = {
  name: 'master-key',
  make: newMasterKey,
  fits: /^[A-Za-z0-9+/]{43}=$/,
  lost: 'put it back from a backup; without it the stored keys of model vendors cannot be read, so remove it only to enter them anew',
}
/** There while rows may still be under it. */
const previousFile: SecretFile = { ...currentFile, name: 'master-key.previous' }

/**
 * The master keys of the settings. Embedded without that setting: those in DATA_DIR, made where there is none; call it
 * once the database is open, whose lock keeps a rotation away. What is in DATA_DIR opens rows also where the settings
 * bring a master key of their own. `onSecret` is told of those that were read there.
 */
export const openMasterKeys = async (
  config: Pick<Config, 'database' | 'masterKey' | 'previousMasterKeys'>,
  onSecret: (secret: string) => void = () => {},
): Promise<MasterKeys> => {
  const { database, masterKey, previousMasterKeys } = config
  switch (database.kind) {
    case 'postgres':
      return createMasterKeys(masterKey, previousMasterKeys)
    case 'memory':
      return createMasterKeys(masterKey ?? newMasterKey(), previousMasterKeys)
    case 'embedded': {
      const { dataDir } = database
      const current = masterKey ?? (await secretIn(dataDir, currentFile)).value
      const files = [await readSecretFile(dataDir, currentFile), await readSecretFile(dataDir, previousFile)]
      const kept = files.filter((one) => one !== null)
      for (const secret of kept) onSecret(secret)
      return createMasterKeys(current, [...previousMasterKeys, ...kept])
    }
    default:
      throw database satisfies never
  }
}

/**
 * Makes a new master key in the folder and keeps the one before beside it. Where that is there already, an earlier
 * rotation did not come to its end: `resumed` says that its key stays. A crash between any two steps leaves both keys
 * readable, and the next call goes on from there. The caller holds the lock of the folder.
 */
export const beginRotation = async (dataDir: string): Promise<{ resumed: boolean }> => {
  const { value: current, path } = await secretIn(dataDir, currentFile)
  const previous = await readSecretFile(dataDir, previousFile)
  if (previous !== null && previous !== current) return { resumed: true }
  if (previous === null) {
    await link(path, join(dataDir, previousFile.name))
    await keepFolder(path)
  }
  await replaceSecretFile(path, newMasterKey())
  return { resumed: false }
}

/** Call it once no row is under the previous key any more. */
export const endRotation = async (dataDir: string): Promise<void> => {
  const path = join(dataDir, previousFile.name)
  await rm(path, { force: true })
  await keepFolder(path)
}

/** The embedded database does not sync: without this, a crash of the machine could lose rows that outlived their key. */
export const keepDatabaseFiles = async (sql: Sql, dataDir: string): Promise<void> => {
  await sql.query('CHECKPOINT')
  const folder = join(dataDir, 'pgdata')
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const file = await open(join(entry.parentPath, entry.name), 'r')
    try {
      await file.sync()
    } finally {
      await file.close()
    }
  }
}
