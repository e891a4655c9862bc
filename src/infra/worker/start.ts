import type { RunRequest } from '../../state/run-request.ts'
import type { Bell, Queues } from '../queue/queue.ts'
import { repeatWork } from '../repeat-work.ts'
import type { Admission } from '../runs/admit.ts'
import { takeIntakeJob } from '../runs/intake.ts'
import { reconcile, relayBells } from '../runs/relay.ts'
import { createSweep, type Keep } from '../sessions/sweep.ts'
import { createWorker, type WorkerOptions } from './worker.ts'

type StartOptions = Omit<WorkerOptions, 'ring'> & {
  queues: Queues
  keep: Keep
  submit(businessId: string, request: RunRequest, key: string): Promise<Admission>
}

const relayEveryMs = 500
const reconcileEveryMs = 10_000
const sweepEveryMs = 60_000
/** How long a bell waits for a place here before another worker may have it. Also what bounds the passing of a backlog. */
const bellPatienceMs = 100

/** Starts a worker and what belongs to it: bells, the public intake, the relay of the outbox and the reconciler. */
export const startWorker = async (options: StartOptions) => {
  const { database, queues, clock, log, leaseMs } = options
  const ring = ({ run_id, tenant }: { run_id: string; tenant: string }): void =>
    void queues.ring({ run_id, business_id: tenant }).catch(() => {})
  const worker = createWorker({ ...options, ring })
  // a worker that is full because it looked for itself keeps no bell from one that is idle
  const answer = async (bell: Bell): Promise<void> => {
    if (!(await worker.offer(bellPatienceMs))) await queues.ring(bell).catch(() => {})
  }
  const bells = await queues.onBell(answer, { concurrency: options.concurrency })
  const intake = await queues.onIntake(
    async (job) => {
      if (!(await takeIntakeJob(database, job, options.submit)))
        log.warn({ job_id: job.id }, 'a queue job was refused; rejected_jobs has it with its faults')
    },
    { concurrency: 4 },
  )
  const relay = repeatWork(() => relayBells(database, queues), relayEveryMs, clock, log, 'relaying bells')
  const everyMs = Math.min(reconcileEveryMs, leaseMs)
  const look = async (): Promise<void> => {
    // also without a queue: a worker with a free place looks for itself
    if (worker.idle)
      worker.offer(0).catch((error: unknown) => log.warn({ error: String(error) }, 'a claim failed'))
    await reconcile(database, queues, log, leaseMs * 3)
  }
  const reconciler = repeatWork(look, everyMs, clock, log, 'reconciling')
  const sweeper = repeatWork(createSweep(database, options.keep), sweepEveryMs, clock, log, 'sweeping')
  return {
    async close(): Promise<void> {
      await Promise.all([relay.stop(), reconciler.stop(), sweeper.stop(), intake.close(1000), bells.pause()])
      await worker.close()
      await bells.close(1000)
    },
  }
}
