import { link, readdir, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { createMasterKey, masterFiles } from '../../infra/secrets/master-key-files.ts'
import {
  readOrCreateSecretFile,
  readSecretFile,
  replaceSecretFile,
  syncPath,
} from '../../infra/secrets/secret-file.ts'
import type { Sql } from '../../state/ports/sql.ts'

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

/** Removes the drafts of a secret whose writers were killed. No other process may write it meanwhile. */
const removeDrafts = async (path: string): Promise<void> => {
  const folder = dirname(path)
  for (const name of await readdir(folder))
    if (name.startsWith(`${basename(path)}.`) && /\.\d{1,10}\.[0-9a-f]{8}$/.test(name))
      await rm(join(folder, name), { force: true })
}
