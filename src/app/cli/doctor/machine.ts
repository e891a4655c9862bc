import { constants, existsSync, statSync } from 'node:fs'
import { access, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Config } from '../../../infra/config/config.ts'
import { type DoctorCheck, type DoctorFinding, fail, pass } from './check.ts'

const minNodeVersion = [20, 19] as const
const minFreeBytes = 256 * 1024 * 1024

/** Whether Node is new enough. */
export const checkNode: DoctorCheck = async () => {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const enough = major > minNodeVersion[0] || (major === minNodeVersion[0] && minor >= minNodeVersion[1])
  return [
    enough
      ? pass(`Node ${process.versions.node}`)
      : fail(`Node ${process.versions.node} is too old`, `install Node ${minNodeVersion.join('.')} or newer`),
  ]
}

/** The folder itself, or its nearest parent that exists. */
const findNearestFolder = (path: string): string =>
  existsSync(path) || dirname(path) === path ? path : findNearestFolder(dirname(path))

const readDataDir = ({ database }: Config): string | null =>
  database.kind === 'embedded' ? database.dataDir : null

/** Whether DATA_DIR is writable and its secrets are private. Served mode stores nothing in a folder. */
export const checkDataFolder: DoctorCheck = async (config) => {
  const dataDir = readDataDir(config)
  if (dataDir === null) return []
  const folder = findNearestFolder(dataDir)
  const writable = await access(folder, constants.W_OK).then(
    () => true,
    () => false,
  )
  if (!writable)
    return [
      fail(
        `${folder} is not writable`,
        `make it writable for user ${process.getuid?.() ?? '?'}, or set DATA_DIR to a writable folder`,
      ),
    ]
  const text = folder === dataDir ? `${dataDir} is writable` : `${dataDir} will be created`
  return [pass(text), ...checkSecrets(dataDir)]
}

const previousKey = 'master-key.previous'

const checkSecrets = (dataDir: string): DoctorFinding[] => {
  const paths = ['master-key', previousKey, 'admin-token'].map((name) => join(dataDir, name))
  const findings = paths
    .filter((path) => ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o077) !== 0)
    .map((path) => fail(`${path} is readable for other users`, `chmod 600 ${path}`))
  if (existsSync(join(dataDir, previousKey)))
    findings.push(
      fail(
        `a rotation of the master key in ${dataDir} is incomplete; both keys are in use until it completes`,
        'run `mason keys rotate` again while no other process uses the folder',
      ),
    )
  return findings
}

/** Whether the disk of DATA_DIR, or of the current folder, has enough free space. */
export const checkDisk: DoctorCheck = async (config) => {
  const folder = findNearestFolder(readDataDir(config) ?? process.cwd())
  const { bavail, bsize } = await statfs(folder)
  const free = bavail * bsize
  const freeText = free > 1e9 ? `${(free / 1e9).toFixed(1)} GB` : `${Math.round(free / 1e6)} MB`
  return [
    free >= minFreeBytes
      ? pass(`${freeText} free at ${folder}`)
      : fail(`only ${freeText} free at ${folder}`, 'free disk space; Mason needs 256 MB'),
  ]
}
