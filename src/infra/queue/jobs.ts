import type { Job, JobsOptions } from 'bullmq'
import { z } from 'zod'
import { MasonError } from '../../state/errors.ts'
import { parseJsonOrText } from '../lib/json-text.ts'

/** Our side of BullMQ's jobs: ids, priorities and options; and what wakes workers. */

/** The public intake queue: any BullMQ client may add jobs named `run`. CONTRACT section 3. */
export const intakeQueueName = 'mason-runs'
/** The name of its jobs. */
export const intakeJobName = 'run'

const wakeUpSchema = z.object({ run_id: z.string(), business_id: z.string() })

/** Says only that there may be work: ids, never data. Lost, duplicate and late wake-ups are harmless. */
export type WakeUp = z.infer<typeof wakeUpSchema>

/** Options of a sent job. */
export type SendOptions = {
  /** 0 to 100, higher first, 0 when absent. */
  priority?: number
}

/** A job of the public intake queue. `id` is the caller's idempotency key; the data is as it was sent, not validated yet. */
export type IntakeJob = { id: string; name: string; data: unknown }

/** Handles one wake-up. The signal aborts when the consumer closes. */
export type WakeUpHandler = (wakeUp: WakeUp, signal: AbortSignal) => Promise<void>

const maxPriority = 100

const clampPriority = (priority: number) => Math.min(Math.max(Math.round(priority), 0), maxPriority)

/** Our priority is higher first; BullMQ's is lower first, with 0 (none) before all others. So 100 becomes 1, and 0 becomes 101. */
const toBullPriority = (priority = 0): number => maxPriority + 1 - clampPriority(priority)

/** Our options of a job as BullMQ's. */
export const toBullOptions = ({ priority }: SendOptions): JobsOptions => ({
  priority: toBullPriority(priority),
})

/** As many as those of an `Idempotency-Key`. */
export const maxJobIdLength = 255

/** Throws `invalid_request` for an id that BullMQ or an intake would refuse. */
export function checkJobId(id: string): void {
  const problems = {
    'is empty': id === '',
    'is an integer': String(Number.parseInt(id, 10)) === id,
    'contains a colon': id.includes(':') && (id.split(':').length !== 3 || id.startsWith('0:')),
    'contains a NUL character or half a surrogate pair': /[\0\p{Cs}]/u.test(id),
    'has more than 255 characters': id.length > maxJobIdLength,
  }
  const problem = Object.entries(problems).find(([, applies]) => applies)?.[0]
  if (problem === undefined) return
  throw new MasonError('invalid_request', `the job id ${JSON.stringify(id)} ${problem}`, {
    remedy: 'use letters, digits and . _ @ -, with at least one character that is not a digit',
    detail: { id },
  })
}

/** Keeps the ids only, whatever else the caller's object holds. */
export const toWakeUpData = ({ run_id, business_id }: WakeUp): WakeUp => ({ run_id, business_id })

/** The wake-up of a JSON text; undefined: it is none. */
export const readWakeUp = (text: string): WakeUp | undefined =>
  wakeUpSchema.safeParse(parseJsonOrText(text)).data

/** For so long, in seconds, and so many: what a producer can still read of refused jobs. */
const refusedJobs = { age: 24 * 60 * 60, count: 1_000 }

/** Replaces a sender's options by ours: only a refused job is kept for a while. Changes memory only, so it is called whenever one ends. */
export function overrideJobOptions(job: Job): void {
  Object.assign(job.opts, {
    // without it BullMQ's script fails
    attempts: Number.MAX_SAFE_INTEGER,
    stackTraceLimit: 1,
    removeOnComplete: true,
    removeOnFail: refusedJobs,
  } satisfies JobsOptions)
}
