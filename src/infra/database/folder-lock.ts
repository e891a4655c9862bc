import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { link, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { MasonError } from '../../state/errors.ts'
import { createDataFolder } from '../lib/data-folder.ts'

/** State and start time of a process as /proc has them; empty where it has none. */
const readProcessStat = (pid: number): { state: string; start: string } => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { state: fields[0] ?? '', start: fields[19] ?? '' }
  } catch {
    return { state: '', start: '' }
  }
}

/** Killed, and waiting for its parent to reap it. */
const isDead = (state: string): boolean => state === 'Z' || state === 'X'

const isAlive = (owner: string): boolean => {
  const [pid, start] = owner.trim().split(' ')
  if (!Number.isSafeInteger(Number(pid)) || Number(pid) <= 0) return false
  try {
    process.kill(Number(pid), 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
  const stat = readProcessStat(Number(pid))
  // the process id may have been reused
  return !isDead(stat.state) && (!start || stat.start === start)
}

/** Takes the exclusive lock on a data folder, creating it where it is missing, and returns the function that releases it. Two processes on one folder would lose data. */
export const lockFolder = async (folder: string): Promise<() => Promise<void>> => {
  await createDataFolder(folder)
  const path = join(folder, 'lock')
  const owner = await takeLock(path)
  if (owner === null) return () => rm(path, { force: true })
  throw new MasonError(
    'data_dir_locked',
    `${folder} is in use by process ${owner.split(' ')[0] || 'unknown'}`,
    {
      remedy:
        'stop that process, choose another DATA_DIR, or set DATABASE_URL and REDIS_URL to run several processes',
    },
  )
}

/** Adds the address of the server of this process, which has the lock, to the lock of its data folder. */
export const announceServer = async (folder: string, url: string): Promise<void> => {
  const draft = join(folder, `lock.${process.pid}`)
  await writeFile(draft, `${process.pid} ${readProcessStat(process.pid).start} ${url}\n`, { mode: 0o600 })
  // at once: a lock that is read half written looks like that of a dead process
  await rename(draft, join(folder, 'lock'))
}

/** The address of the server that has the lock on a data folder; null where none is running. */
export const findServer = async (folder: string): Promise<string | null> => {
  const owner = await readFile(join(folder, 'lock'), 'utf8').catch(() => '')
  return isAlive(owner) ? (owner.trim().split(' ')[2] ?? null) : null
}

/** Creates the lock file and returns null, or returns the live owner of the existing one. */
const takeLock = async (path: string): Promise<string | null> => {
  if (await createLockFile(path)) return null
  const owner = await readFile(path, 'utf8').catch(() => null)
  // released a moment ago
  if (owner === null) return takeLock(path)
  if (isAlive(owner)) return owner
  // only one process may remove a dead owner's file, or the second would remove the new owner's
  const rival = await takeLock(`${path}.clearing`)
  if (rival !== null) return rival
  try {
    if ((await readFile(path, 'utf8').catch(() => null)) === owner) await rm(path, { force: true })
  } finally {
    await rm(`${path}.clearing`, { force: true })
  }
  return takeLock(path)
}

/** Creates the file together with its content, so that it is never empty. False: it already exists. */
const createLockFile = async (path: string): Promise<boolean> => {
  const draft = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`
  await writeFile(draft, `${process.pid} ${readProcessStat(process.pid).start}\n`, {
    mode: 0o600,
    flag: 'wx',
  })
  try {
    await link(draft, path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    return false
  } finally {
    await rm(draft, { force: true })
  }
}
