import { readFileSync } from 'node:fs'
import { statusMb } from './processes.ts'

const read = (path: string): string => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // it has ended meanwhile
    return ''
  }
}

/** Megabytes that a child of this process held at its most, while `work` was going on; the largest of them counts. */
export const peakOfChildren = async (work: () => Promise<void>): Promise<number> => {
  let mb = 0
  const look = (): void => {
    for (const pid of read(`/proc/self/task/${process.pid}/children`).trim().split(' '))
      mb = Math.max(mb, statusMb(read(`/proc/${pid}/status`), 'VmHWM') || 0)
  }
  // the mark it leaves is the highest so far: between two looks nothing but the last moment is missed
  const timer = setInterval(look, 20)
  try {
    await work()
  } finally {
    clearInterval(timer)
  }
  return mb
}
