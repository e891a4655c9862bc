import { readFileSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'

/**
 * Nanoseconds that this thread alone has computed. A busy machine, and other threads, do not count: a turn of the event
 * loop is as long as what it computed.
 */
const readThreadNs = (): number =>
  Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'latin1').split(' ', 1)[0])

/** The processor time of the longest turn of the event loop while `work` goes on, in milliseconds. Linux only. */
export const measureLongestTurn = async (work: () => Promise<unknown>): Promise<number> => {
  let isOver = false
  let longest = 0
  const watch = async (): Promise<void> => {
    let since = readThreadNs()
    while (!isOver) {
      await nextTurn()
      const now = readThreadNs()
      longest = Math.max(longest, now - since)
      since = now
    }
  }
  const watching = watch()
  await nextTurn()
  await work().finally(() => {
    isOver = true
  })
  await watching
  return longest / 1e6
}
