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

/** What no code can avoid that reads an answer of 30 MiB: to join its bytes and to decode them. */
const joinAndDecode = (parts: readonly Buffer[]): number => {
  const since = readThreadNs()
  Buffer.concat(parts).toString('utf8')
  return (readThreadNs() - since) / 1e6
}

/**
 * The longest turn that a test may allow here, in milliseconds: 200, and more on a machine whose memory is so slow that
 * joining and decoding 30 MiB, the median of nine times, takes a third of that.
 */
export const measureTurnLimit = (): number => {
  const parts = Array.from({ length: 480 }, () => Buffer.alloc(64 * 1024, 'a'))
  const times = Array.from({ length: 9 }, () => joinAndDecode(parts)).sort((a, b) => a - b)
  return Math.max(200, 3 * (times[4] ?? 0))
}
