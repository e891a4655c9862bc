import { randomBytes } from 'node:crypto'
import { link, mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { MasonError } from '../../state/errors.ts'

/** A secret that this machine makes for itself: one line in a file that only its owner can read. */
export type SecretFile = { name: string; make: () => string; fits: RegExp; lost: string }

/** The secret in the file, made where there is none. Safe to call from several processes at once: all get the same. */
export const secretIn = async (
  folder: string,
  file: SecretFile,
): Promise<{ value: string; path: string; made: boolean }> => {
  const path = join(folder, file.name)
  const made = (await readSecretFile(folder, file)) === null && (await makeSecretFile(path, file.make()))
  const value = await readSecretFile(folder, file)
  if (value !== null) return { value, path, made }
  throw new MasonError('internal', `${path} was removed while it was read`, { remedy: 'start again' })
}

/** Null when there is none. Throws `invalid_settings` when it is not what it should be. */
export const readSecretFile = async (folder: string, file: SecretFile): Promise<string | null> => {
  const path = join(folder, file.name)
  try {
    const value = (await readFile(path, 'utf8')).trim()
    if (file.fits.test(value)) return value
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
  throw new MasonError('invalid_settings', `${path} is damaged`, { remedy: file.lost })
}

/** Whole or not at all, and never over another; false when there was one already. */
const makeSecretFile = async (path: string, value: string): Promise<boolean> => {
  const draft = await draftOf(path, value)
  try {
    await link(draft, path)
    await keepFolder(path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  } finally {
    await rm(draft, { force: true })
  }
}

/** Puts another secret into the file, whole or not at all. */
export const replaceSecretFile = async (path: string, value: string): Promise<void> => {
  const draft = await draftOf(path, value)
  try {
    await rename(draft, path)
    await keepFolder(path)
  } finally {
    await rm(draft, { force: true })
  }
}

const draftOf = async (path: string, value: string): Promise<string> => {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const draft = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`
  const file = await open(draft, 'wx', 0o600)
  try {
    await file.writeFile(`${value}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
  return draft
}

/** Names outlive a crash of the machine only once their folder is written. */
export const keepFolder = async (path: string): Promise<void> => {
  const folder = await open(dirname(path), 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
