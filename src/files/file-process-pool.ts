import { createWaitQueue } from '../infra/lib/permits.ts'
import { type FileProcess, openFileProcess } from './file-process.ts'
import type { ProcessOptions } from './protocol/child-protocol.ts'

/** The process of one step of a business's run. `idle`: its step waits for something else. */
type PooledProcess = { business: string; process: FileProcess; idle: boolean }
/** The process of one step, which other steps may get between two jobs. */
export type StepProcess = FileProcess & {
  /** No job will come for a while: any waiting step may have the process. */
  yieldProcess(): void
}
type StepRequest = { business: string; options: ProcessOptions }

/**
 * At most `count` file processes. First served: the business that holds the fewest, then the one served longest ago, then
 * the step that came first. A step keeps its process from job to job, but between two jobs gives it up to a business whose
 * turn is earlier, so a business waits for one job of another at most; a step that waits for something else gives it up to
 * any. The time limit begins with the job, not with the wait.
 */
export const createFileProcessPool = (
  count: number,
  open: (options: ProcessOptions) => FileProcess = openFileProcess,
) => {
  const opened = new Set<PooledProcess>()
  const lastTurn = new Map<string, number>()
  const betweenJobs = new Set<PooledProcess>()
  const queue = createWaitQueue<StepRequest, PooledProcess>()
  let closing = 0
  let turns = 0

  type Ranked = Pick<StepRequest, 'business'>
  /** Below 0: `a` comes first. `without`: a business counted as if it had given up one process. */
  const compareTurns = (a: Ranked, b: Ranked, without?: string): number => {
    const countHeld = ({ business }: Ranked): number =>
      [...opened].filter((one) => one.business === business).length - (business === without ? 1 : 0)
    const turnOf = ({ business }: Ranked): number => lastTurn.get(business) ?? 0
    return countHeld(a) - countHeld(b) || turnOf(a) - turnOf(b)
  }
  const findNext = (without?: string) =>
    [...queue.waiting].sort((a, b) => compareTurns(a.who, b.who, without))[0]

  const serveWaiting = (): void => {
    for (let next = findNext(); next && opened.size < count; next = findNext())
      next.serve(openPooled(next.who))
    for (const pooled of betweenJobs) {
      if (closing >= queue.waiting.size) return
      const next = findNext(pooled.business)
      // an error while a process ends reaches its own step with that step's next job
      if (next && (pooled.idle || compareTurns(next.who, pooled, pooled.business) < 0))
        closePooled(pooled).catch(() => {})
    }
  }

  const closePooled = async (pooled: PooledProcess): Promise<void> => {
    betweenJobs.delete(pooled)
    closing += 1
    try {
      await pooled.process[Symbol.asyncDispose]()
    } finally {
      closing -= 1
      opened.delete(pooled)
      serveWaiting()
      const others = [...opened, ...[...queue.waiting].map(({ who }) => who)]
      if (!others.some(({ business }) => business === pooled.business)) lastTurn.delete(pooled.business)
    }
  }

  const openPooled = ({ business, options }: StepRequest): PooledProcess => {
    turns += 1
    lastTurn.set(business, turns)
    const pooled = { business, process: open(options), idle: false }
    opened.add(pooled)
    return pooled
  }

  const acquire = (step: StepRequest, signal: AbortSignal): Promise<PooledProcess> => {
    const pooled = queue.join(step, signal)
    serveWaiting()
    return pooled
  }

  return {
    /** The process of one step, acquired with its first job and released on disposal. */
    openStep(business: string, options: ProcessOptions): StepProcess {
      let last: PooledProcess | null = null
      return {
        async run(job, signal) {
          signal.throwIfAborted()
          const pooled =
            last && betweenJobs.delete(last) ? last : await acquire({ business, options }, signal)
          last = pooled
          pooled.idle = false
          try {
            return await pooled.process.run(job, signal)
          } finally {
            betweenJobs.add(pooled)
            serveWaiting()
          }
        },
        yieldProcess() {
          if (!last || !betweenJobs.has(last)) return
          last.idle = true
          serveWaiting()
        },
        async [Symbol.asyncDispose]() {
          if (last && betweenJobs.has(last)) await closePooled(last)
        },
      }
    },
  }
}
