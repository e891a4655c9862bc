import { readFileSync } from 'node:fs'

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
  let kilobytes = 0
  const look = (): void => {
    for (const pid of read(`/proc/self/task/${process.pid}/children`).trim().split(' '))
      kilobytes = Math.max(
        kilobytes,
        Number(/^VmHWM:\s+(\d+) kB/m.exec(read(`/proc/${pid}/status`))?.[1] ?? 0),
      )
  }
  // the mark it leaves is the highest so far: between two looks nothing but the last moment is missed
  const timer = setInterval(look, 20)
  try {
    await work()
  } finally {
    clearInterval(timer)
  }
  return Math.round(kilobytes / 102.4) / 10
}
