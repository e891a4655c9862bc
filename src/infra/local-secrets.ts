import { randomBytes } from 'node:crypto'
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { MasonError } from '../state/errors.ts'
import type { Config } from './config.ts'

/** A secret that this machine made for itself. `made` once, on the day it was. */
type LocalSecret = { value: string; path: string; made: boolean }

export type LocalSecrets = {
  config: Config
  /** Null when the settings bring their own, or no server asked for one. */
  adminToken: LocalSecret | null
}

/**
 * Fills in what embedded mode makes for itself in DATA_DIR, readable by its owner only. Safe to call from several
 * processes at once: all get the same. Settings that are there stay, and a served configuration is left as it is.
 * Only a server has use for an admin token, so that the one that is made is made where it is shown.
 */
export const withLocalSecrets = async (
  config: Config,
  options: { server: boolean },
): Promise<LocalSecrets> => {
  if (config.database.kind !== 'embedded') return { config, adminToken: null }
  const { dataDir } = config.database
  const masterKey = config.masterKey ?? (await secretIn(dataDir, masterKeyFile)).value
  const adminToken =
    options.server && config.adminToken === null ? await secretIn(dataDir, adminTokenFile) : null
  return {
    config: { ...config, masterKey, adminToken: adminToken?.value ?? config.adminToken },
    adminToken,
  }
}

type SecretFile = { name: string; make: () => string; fits: RegExp; lost: string }

const masterKeyFile: SecretFile = {
  name: 'master-key',
  make: () => randomBytes(32).toString('base64'),
  fits: /^[A-Za-z0-9+/]{43}=$/,
  lost: 'put it back from a backup; without it the stored keys of model vendors cannot be read, so remove it only to enter them anew',
}

const adminTokenFile: SecretFile = {
  name: 'admin-token',
  make: () => `mason_admin_${randomBytes(24).toString('base64url')}`,
  fits: /^[\x21-\x7e]+$/,
  lost: 'remove it, and the next start makes a new token',
}

const secretIn = async (folder: string, file: SecretFile): Promise<LocalSecret> => {
  const path = join(folder, file.name)
  const made = !(await read(path)) && (await write(folder, path, file.make()))
  const value = (await read(path)) ?? ''
  if (file.fits.test(value)) return { value, path, made }
  throw new MasonError('invalid_settings', `${path} is damaged`, { remedy: file.lost })
}

const read = async (path: string): Promise<string | null> => {
  try {
    return (await readFile(path, 'utf8')).trim()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/** Whole or not at all, and never over another; false when there was one already. */
const write = async (folder: string, path: string, value: string): Promise<boolean> => {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const draft = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`
  await writeFile(draft, `${value}\n`, { mode: 0o600, flag: 'wx' })
  try {
    await link(draft, path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  } finally {
    await rm(draft, { force: true })
  }
}
