import type { Job, JobsOptions } from 'bullmq'
import { MasonError } from '../../state/errors.ts'
import type { Log } from '../../state/ports.ts'
import type { Engine } from './engine.ts'
import type { Bell, BellHandler, IntakeHandler, IntakeJob, SendOptions } from './queue.ts'

/** Our side of BullMQ's jobs: ids, priorities, options, and what a handler gets to see of them. */

const highest = 100

const clamp = (priority: number) => Math.min(Math.max(Math.round(priority), 0), highest)

/** Ours is higher first, BullMQ's is lower first and takes 0 (none) before all others: 100 is 1, 0 is 101. */
const bullPriority = (priority = 0): number => highest + 1 - clamp(priority)

/** The other way round; undefined for none and for the lowest, which is what none means to us. */
const masonPriority = (priority: number | undefined): number | undefined =>
  (priority && clamp(highest + 1 - priority)) || undefined

export const bullOptions = ({ delayMs = 0, priority }: SendOptions): JobsOptions => ({
  priority: bullPriority(priority),
  delay: Math.max(0, Math.round(delayMs)),
})

/** Throws `invalid_request` for ids that BullMQ would not take. */
export function checkJobId(id: string): void {
  const fault =
    id === ''
      ? 'is empty'
      : String(Number.parseInt(id, 10)) === id
        ? 'is an integer'
        : id.includes(':') && (id.split(':').length !== 3 || id.startsWith('0:'))
          ? 'contains a colon'
          : id.includes('\u0000')
            ? 'contains a NUL character'
            : null
  if (fault === null) return
  throw new MasonError('invalid_request', `the job id ${JSON.stringify(id)} ${fault}`, {
    remedy: 'use letters, digits and . _ @ - with at least one that is no digit',
    detail: { id },
  })
}

/** One waiting bell per run; a colon or a bare number would be refused. */
export const coalescingId = (runId: string): string => `run-${encodeURIComponent(runId)}`

/** Without whatever else the caller's object holds: bells carry ids only. */
export const plainBell = ({ run_id, business_id }: Bell): Bell => ({ run_id, business_id })

function bellFromJob(data: unknown): Bell | null {
  if (typeof data !== 'object' || data === null) return null
  const { run_id, business_id } = data as Partial<Record<keyof Bell, unknown>>
  return typeof run_id === 'string' && typeof business_id === 'string' ? { run_id, business_id } : null
}

/** Milliseconds before the next try, after `attemptsMade` failed ones (1 and up). */
export const intakeBackoffMs = (attemptsMade: number): number =>
  Math.min(500 * 2 ** (attemptsMade - 1), 30_000)

/** Our rules for a job, whatever options its sender gave it: never lost, never kept. In memory only, so at each try. */
export function takeOver(job: Job): void {
  Object.assign(job.opts, {
    attempts: Number.MAX_SAFE_INTEGER,
    backoff: { type: 'intake' },
    stackTraceLimit: 1,
    removeOnComplete: true,
    removeOnFail: true,
  } satisfies JobsOptions)
}

function intakeJob(job: Job, data: unknown): IntakeJob {
  const priority = masonPriority(job.priority)
  return {
    id: job.id ?? '',
    name: job.name,
    data,
    attemptsMade: job.attemptsMade,
    stalls: job.stalledCounter,
    ...(priority === undefined ? {} : { priority }),
  }
}

export type HandleJob = (job: Job, signal: AbortSignal) => Promise<void>

/** A bell that fails is gone: the reconciler rings for whatever is still due. */
export const answerBells =
  (handler: BellHandler, log: Log): HandleJob =>
  async (job, signal) => {
    const bell = bellFromJob(job.data)
    if (!bell) return log.warn({ data: job.data }, 'queue: what was rung is no bell')
    try {
      await handler(bell, signal)
    } catch (error) {
      log.error({ error, ...bell }, 'queue: answering a bell failed')
    }
  }

/** An intake that fails rejects, and so comes again. The cause is wrapped: BullMQ gives up on errors of certain names. */
export const takeIntake =
  (handler: IntakeHandler, engine: Engine, log: Log): HandleJob =>
  async (job, signal) => {
    try {
      await handler(intakeJob(job, engine.decode(job.data)), signal)
    } catch (error) {
      log.error(
        { error, job_id: job.id, attempts_made: job.attemptsMade },
        'queue: intake failed, trying again',
      )
      throw new Error('intake failed', { cause: error })
    }
  }
