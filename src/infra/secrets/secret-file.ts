import { randomBytes } from 'node:crypto'
import { link, open, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { MasonError, toSettingsError } from '../../state/errors.ts'
import { createDataFolder } from '../lib/data-folder.ts'

/** A secret that this machine creates for itself: one line in a file that only its owner can read. */
export type SecretFile = { name: string; create: () => string; pattern: RegExp; lossRemedy: string }

/** Reads the secret, which is created when missing. Several processes may call it at once and get the same secret. */
export const readOrCreateSecretFile = async (
  folder: string,
  file: SecretFile,
): Promise<{ value: string; path: string; created: boolean }> => {
  const path = join(folder, file.name)
  const created =
    (await readSecretFile(folder, file)) === null && (await createSecretFile(path, file.create()))
  const value = await readSecretFile(folder, file)
  if (value !== null) return { value, path, created }
  throw new MasonError('internal', `${path} was removed while it was read`, { remedy: 'start again' })
}

/** Reads the secret; null without a file. Throws `invalid_settings` when the content is invalid. */
export const readSecretFile = async (folder: string, file: SecretFile): Promise<string | null> => {
  const path = join(folder, file.name)
  try {
    const value = (await readFile(path, 'utf8')).trim()
    if (file.pattern.test(value)) return value
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
  throw toSettingsError(`${path} is damaged`, file.lossRemedy)
}

/** Creates the file atomically; false when it already exists. */
const createSecretFile = (path: string, value: string): Promise<boolean> =>
  writeAtomically(path, value, link).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'EEXIST') return false
      throw error
    },
  )

/** Replaces the secret in the file atomically. */
export const replaceSecretFile = (path: string, value: string): Promise<void> =>
  writeAtomically(path, value, rename)

/** Writes a draft and moves it to its path by `place`. */
const writeAtomically = async (path: string, value: string, place: typeof link): Promise<void> => {
  await createDataFolder(dirname(path))
  const draft = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`
  try {
    await writeFile(draft, `${value}\n`, { flag: 'wx', mode: 0o600, flush: true })
    await place(draft, path)
    await syncPath(dirname(path))
  } finally {
    await rm(draft, { force: true })
  }
}

/** Syncs a file, or a folder, without which a new name in it may be lost in a crash of the machine. */
export const syncPath = async (path: string): Promise<void> => {
  await using file = await open(path, 'r')
  await file.sync()
}
