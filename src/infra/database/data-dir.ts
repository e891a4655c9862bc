import { readFileSync } from 'node:fs'
import { open, readFile, rm } from 'node:fs/promises'
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
  if (!pid) return false
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
  for (let attempt = 0; ; attempt++) {
    try {
      const file = await open(path, 'wx', 0o600)
      await file.writeFile(`${process.pid} ${startOf(process.pid)}\n`)
      await file.close()
      return () => rm(path, { force: true })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      const owner = await readFile(path, 'utf8').catch(() => '')
      if (attempt >= 3 || isAlive(owner))
        throw new MasonError(
          'data_dir_locked',
          `${folder} is in use by process ${owner.split(' ')[0] || 'unknown'}`,
          {
            remedy:
              'stop that process, choose another DATA_DIR, or set DATABASE_URL and REDIS_URL to run several processes',
          },
        )
      await rm(path, { force: true })
    }
  }
}
