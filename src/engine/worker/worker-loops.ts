import { repeatWork } from '../../infra/lib/repeat-work.ts'
import type { WakeUp } from '../../infra/queue/jobs.ts'
import { type Queues, wakeRun } from '../../infra/queue/queues.ts'
import { reconcileRuns, relayWakeUps } from '../runs/relay.ts'
import { readUnreadWords } from '../runs/run-words.ts'
import { wakeWaitingRuns } from '../runs/waits.ts'
import { createRetentionSweep, type Retention, type Sweep } from '../sessions/retention-sweep.ts'
import { createWorker, type WorkerOptions } from './worker.ts'

type StartWorkerOptions = Omit<WorkerOptions, 'wake'> & {
  queues: Queues
  retention: Retention
  /** Of features. */
  sweeps: readonly Sweep[]
}

const relayEveryMs = 500
const reconcileEveryMs = 10_000
const sweepEveryMs = 60_000
const wordsEveryMs = 2000
/** How long a wake-up waits here before another worker may have it: it limits how fast a backlog is passed on. */
const wakeUpPatienceMs = 100

/** Starts a worker with its consumer of wake-ups, the relay of the outbox, and the reconciler. */
export const startRunWorker = async (options: StartWorkerOptions) => {
  const { database, queues, clock, log, leaseMs } = options
  const worker = createWorker({ ...options, wake: (run) => wakeRun(queues, run) })
  // a worker that polled until it was full passes wake-ups on to an idle one
  const handleWakeUp = async (wakeUp: WakeUp): Promise<void> => {
    const run = { tenant: wakeUp.business_id, run_id: wakeUp.run_id }
    if (!(await worker.offer(wakeUpPatienceMs, run))) await queues.wake(wakeUp).catch(() => {})
  }
  const wakeUpConsumer = await queues.onWakeUp(handleWakeUp, { concurrency: options.concurrency })
  const checkRuns = async (): Promise<void> => {
    // also without a queue
    if (worker.hasCapacity) worker.poll()
    await reconcileRuns(database, queues, log, leaseMs * 3, options.reports?.ended)
  }
  const repeat = (work: () => Promise<unknown>, everyMs: number, title: string) =>
    repeatWork(work, everyMs, clock, log, title)
  const loops = [
    repeat(() => relayWakeUps(database, queues), relayEveryMs, 'relaying wake-ups'),
    repeat(() => wakeWaitingRuns(database), relayEveryMs, 'waking runs whose waits have ended or are due'),
    repeat(checkRuns, Math.min(reconcileEveryMs, leaseMs), 'reconciling'),
    repeat(() => readUnreadWords(database), wordsEveryMs, 'reading the words of runs'),
    repeat(createRetentionSweep(database, options.retention, options.sweeps), sweepEveryMs, 'sweeping'),
  ]
  return {
    runCounts: worker.counts,
    async close(): Promise<void> {
      await Promise.all([...loops.map((loop) => loop.stop()), wakeUpConsumer.pause()])
      await worker.close()
      await wakeUpConsumer.close(1000)
    },
  }
}
