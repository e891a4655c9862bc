import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { link, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { MasonError } from '../../state/errors.ts'

/** State and start of a process as /proc tells them; empty where it has no word of it. */
const statOf = (pid: number): { state: string; start: string } => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { state: fields[0] ?? '', start: fields[19] ?? '' }
  } catch {
    return { state: '', start: '' }
  }
}

/** Killed, and only waiting for its parent to take note. */
const isDead = (state: string): boolean => state === 'Z' || state === 'X'

const isAlive = (owner: string): boolean => {
  const [pid, start] = owner.trim().split(' ')
  if (!Number.isSafeInteger(Number(pid)) || Number(pid) <= 0) return false
  try {
    process.kill(Number(pid), 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
  const found = statOf(Number(pid))
  // a process id may have been given out again
  return !isDead(found.state) && (!start || found.start === start)
}

/** Takes the exclusive lock on a data folder; gives the function that ends it. Two processes on one folder would lose data. */
export const lockFolder = async (folder: string): Promise<() => Promise<void>> => {
  const path = join(folder, 'lock')
  const owner = await take(path)
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

/** Makes the lock file, or gives the living owner of the one that stands. */
const take = async (path: string): Promise<string | null> => {
  if (await make(path)) return null
  const owner = await readFile(path, 'utf8').catch(() => null)
  // let go of a moment ago
  if (owner === null) return take(path)
  if (isAlive(owner)) return owner
  // only one may clear a dead owner's file away, or the second would clear away the new owner's
  const rival = await take(`${path}.clearing`)
  if (rival !== null) return rival
  try {
    const still = await readFile(path, 'utf8').catch(() => null)
    if (still === owner) await rm(path, { force: true })
  } finally {
    await rm(`${path}.clearing`, { force: true })
  }
  return take(path)
}

/** All at once with its content, so that nobody finds it empty. False: it stands already. */
const make = async (path: string): Promise<boolean> => {
  const draft = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`
  await writeFile(draft, `${process.pid} ${statOf(process.pid).start}\n`, { mode: 0o600, flag: 'wx' })
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
