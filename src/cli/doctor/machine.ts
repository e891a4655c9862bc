import { constants, existsSync } from 'node:fs'
import { access, stat, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Config } from '../../infra/config.ts'
import type { Check, Finding } from '../doctor.ts'

const leastNode = [20, 19] as const
const leastFreeBytes = 256 * 1024 * 1024

export const checkNode: Check = async () => {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const enough = major > leastNode[0] || (major === leastNode[0] && minor >= leastNode[1])
  return [
    enough
      ? { ok: true, text: `Node ${process.versions.node}` }
      : {
          ok: false,
          text: `Node ${process.versions.node} is too old`,
          remedy: `install Node ${leastNode.join('.')} or newer`,
        },
  ]
}

/** The folder itself, or the nearest one above that is there. */
const nearest = async (path: string): Promise<string> => {
  const there = await stat(path).catch(() => null)
  return there || dirname(path) === path ? path : nearest(dirname(path))
}

const dataDirOf = ({ database }: Config): string | null =>
  database.kind === 'embedded' ? database.dataDir : null

/** Served, nothing is kept in a folder. */
export const checkDataFolder: Check = async (config) => {
  const dataDir = dataDirOf(config)
  if (dataDir === null) return []
  const folder = await nearest(dataDir)
  const writable = await access(folder, constants.W_OK).then(
    () => true,
    () => false,
  )
  if (!writable)
    return [
      {
        ok: false,
        text: `${folder} cannot be written to`,
        remedy: `make it writable for ${userName()}, or set DATA_DIR to a folder that is`,
      },
    ]
  const text = folder === dataDir ? `${dataDir} can be written to` : `${dataDir} will be made`
  return [{ ok: true, text }, ...(await checkSecrets(dataDir))]
}

const userName = (): string => `user ${process.getuid?.() ?? '?'}`

const previousKey = 'master-key.previous'

const checkSecrets = async (dataDir: string): Promise<Finding[]> => {
  const paths = ['master-key', previousKey, 'admin-token'].map((name) => join(dataDir, name))
  const open: string[] = []
  for (const path of paths) {
    const info = await stat(path).catch(() => null)
    if (info && (info.mode & 0o077) !== 0) open.push(path)
  }
  const rotating: Finding[] = existsSync(join(dataDir, previousKey))
    ? [
        {
          ok: false,
          text: `a rotation of the master key in ${dataDir} did not come to its end; both keys are read until it does`,
          remedy: 'run `mason keys rotate` once more while nothing else uses the folder',
        },
      ]
    : []
  return [
    ...open.map((path) => ({
      ok: false as const,
      text: `${path} can be read by others`,
      remedy: `chmod 600 ${path}`,
    })),
    ...rotating,
  ]
}

export const checkDisk: Check = async (config) => {
  const folder = await nearest(dataDirOf(config) ?? process.cwd())
  const { bavail, bsize } = await statfs(folder)
  const free = bavail * bsize
  const shown = free > 1e9 ? `${(free / 1e9).toFixed(1)} GB` : `${Math.round(free / 1e6)} MB`
  return [
    free >= leastFreeBytes
      ? { ok: true, text: `${shown} free at ${folder}` }
      : {
          ok: false,
          text: `only ${shown} free at ${folder}`,
          remedy: 'make room; Mason needs 256 MB to work in',
        },
  ]
}
