import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { link, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { MasonError } from '../../state/errors.ts'

/** When a process began, so that a reused process id is not taken for the old one; '' where /proc has no word of it. */
const startOf = (pid: number): string => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? ''
  } catch {
    return ''
  }
}

const isAlive = (owner: string): boolean => {
  const [pid, start] = owner.trim().split(' ')
  if (!Number.isSafeInteger(Number(pid)) || Number(pid) <= 0) return false
  try {
    process.kill(Number(pid), 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
  return !start || startOf(Number(pid)) === start
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
  await writeFile(draft, `${process.pid} ${startOf(process.pid)}\n`, { mode: 0o600, flag: 'wx' })
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
