import { randomUUID } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { ClientError, isTransient } from '../client/client-error.ts'
import { createClient } from '../client/create-client.ts'
import type { ServerTarget } from '../client/http.ts'
import { readEnvironment } from '../infra/config/config.ts'
import { settingsSchema } from '../infra/config/settings.ts'
import { silentLog } from '../infra/lib/silent-log.ts'
import { settlesWithin } from '../infra/lib/timeouts.ts'
import type { JobOutcome } from '../infra/queue/job-outcome.ts'
import { openQueues } from '../infra/queue/queues.ts'
import { signJob } from '../infra/queue/signed-jobs.ts'
import { isMasonError, MasonError, toSettingsError } from '../state/errors.ts'
import { createFieldsError, isJsonWithin, toFieldErrors } from '../state/resource-schema.ts'
import { type JobData, jobDataSchema, maxRequestBytes } from '../state/run-request.ts'
import { watchJobOutcomes } from './job-outcomes.ts'

/** Where jobs are sent. */
export type ProducerOptions = {
  /** Absent: REDIS_URL. */
  redisUrl?: string | undefined
  /** Absent: MASON_QUEUE_PREFIX, else BullMQ's own prefix. */
  queuePrefix?: string | undefined
  /** Jobs are signed with it. Absent: MASON_QUEUE_SECRET, else they are not signed. */
  queueSecret?: string | undefined
  /** Of jobs that name no business; absent: `default`. */
  businessId?: string | undefined
  /** The HTTP API, which takes the jobs while Redis is down. */
  http?: ServerTarget | undefined
}

/**
 * A job that was sent: its id, which is its idempotency key, its data, and the way it took. What `outcome` needs, also in another
 * process.
 *
 * @example
 * ```ts
 * import type { SentJob } from 'mason-runtime/queue'
 *
 * const describe = ({ id, by }: SentJob): string => `${id} went by ${by}`
 * ```
 */
export type SentJob = { id: string; data: JobData; by: 'queue' | 'http' }

/** Between two questions to Redis about a job whose event may have been missed. */
const pollMs = 2_000
/** For the event of a job that Redis no longer has. */
const graceMs = 500
/** Of so many sessions a producer remembers the priority. */
const maxSessions = 10_000

const sentJobSchema = jobDataSchema.refine(
  isJsonWithin(maxRequestBytes),
  `is larger than ${maxRequestBytes} bytes; upload its files with POST /v1/files and name them by file_id`,
)

const parseJob = (request: JobData): JobData => {
  const parsed = sentJobSchema.safeParse(request)
  if (parsed.success) return parsed.data
  throw createFieldsError(...toFieldErrors(parsed.error))
}

const targetSchema = settingsSchema.pick({
  REDIS_URL: true,
  MASON_QUEUE_PREFIX: true,
  MASON_QUEUE_SECRET: true,
})

/** Where jobs go, by the options and the environment. An empty text is none. */
const readTarget = (options: ProducerOptions) => {
  const env = readEnvironment()
  const { data, error } = targetSchema.safeParse({
    REDIS_URL: (options.redisUrl ?? env.REDIS_URL) || undefined,
    MASON_QUEUE_PREFIX: (options.queuePrefix ?? env.MASON_QUEUE_PREFIX) || undefined,
    MASON_QUEUE_SECRET: (options.queueSecret ?? env.MASON_QUEUE_SECRET) || undefined,
  })
  if (data?.REDIS_URL) return { ...data, url: data.REDIS_URL }
  const problem = error?.issues.map(({ path, message }) => `${path.join()} ${message}`).join('; ')
  throw toSettingsError(
    problem ?? 'there is no queue to submit to',
    problem
      ? 'correct redisUrl, queuePrefix or queueSecret, or the setting that is used in its place'
      : 'set REDIS_URL or pass redisUrl; without Redis use mason-runtime/client',
  )
}

/** Warns once of jobs of one session with several priorities. */
const createOrderWarning = (): ((job: JobData) => void) => {
  const priorities = new LRUCache<string, number>({ max: maxSessions })
  let hasWarned = false
  return ({ business_id, session_id, priority = 0 }) => {
    if (session_id === undefined || hasWarned) return
    const key = JSON.stringify([business_id, session_id])
    const before = priorities.get(key) ?? priority
    priorities.set(key, priority)
    if (before === priority) return
    hasWarned = true
    process.emitWarning(
      `jobs of the session "${session_id}" have the priorities ${before} and ${priority}: the higher one overtakes, and the turns of the session swap`,
      { code: 'MASON_TURN_ORDER', detail: 'send all jobs of a session with one priority' },
    )
  }
}

/** The refusal of a request as a queue job has it; null for an error that says nothing about the request. */
const readRefusal = (error: unknown): JobOutcome | null => {
  if (!(error instanceof ClientError)) return null
  const { status, problem, message } = error
  if (isTransient(error) || status === 401 || status === 403) return null
  return { errors: problem?.errors ?? [{ pointer: '', detail: message }] }
}

const createGoneError = (id: string): MasonError =>
  new MasonError('not_found', `Redis no longer has the job "${id}", and its event was missed`, {
    remedy: 'look for its run by GET /v1/runs?idempotency_key=; a producer with `http` does so itself',
  })

/**
 * A producer of the public queue, which keeps its connections. Each job is checked before it is sent, and signed where there is a
 * secret. One id is one run of its business, however often and by whichever way it is sent.
 *
 * @example
 * ```ts
 * import { createProducer } from 'mason-runtime/queue'
 *
 * const producer = await createProducer({
 *   redisUrl: 'redis://127.0.0.1:6379',
 *   http: { url: 'http://127.0.0.1:8080', token: 'the-token-of-the-business' },
 * })
 * const job = await producer.submit({ prompt: 'What is 10% of 300?', user_id: 'ann' }, { id: 'message-4711' })
 * const outcome = await producer.outcome(job)
 * console.log('errors' in outcome ? outcome.errors : outcome.run_id)
 * await producer.close()
 * ```
 */
export const createProducer = async (options: ProducerOptions = {}) => {
  const { url, MASON_QUEUE_PREFIX: prefix, MASON_QUEUE_SECRET: secret } = readTarget(options)
  const { businessId: business_id = 'default', http } = options
  const queues = await openQueues({ kind: 'redis', url, prefix, log: silentLog })
  const warnOfOrder = createOrderWarning()
  let watch: ReturnType<typeof watchJobOutcomes> | null = null

  /** The run of this key by the HTTP API: the one that the queue made of it, or a new one. */
  const askServer = async (
    server: ServerTarget,
    { id, data }: Pick<SentJob, 'id' | 'data'>,
    signal: AbortSignal | undefined,
  ): Promise<JobOutcome> => {
    const { business_id: businessId, run_id, ...request } = data
    const client = createClient({ ...server, businessId })
    try {
      const known = await client.runs.list({ idempotency_key: id, limit: 1 }, { signal })
      if (!known.data[0] && run_id !== undefined) throw createGoneError(id)
      const run = known.data[0] ?? (await client.submit(request, { idempotencyKey: id, signal }))
      return { run_id: run.id, status: run.status }
    } catch (error) {
      const refusal = readRefusal(error)
      if (!refusal) throw error
      return refusal
    }
  }

  return {
    /**
     * Sends a job. Throws `invalid_request` with every error of the job, and `queue_unavailable` within 3 s where Redis is down
     * and there is no other way. A job with a `run_id` has none: HTTP takes no id. Warns once where jobs of a session have several
     * priorities, since the higher one overtakes.
     */
    async submit(
      request: JobData,
      { id = randomUUID(), signal }: { id?: string | undefined; signal?: AbortSignal | undefined } = {},
    ): Promise<SentJob> {
      const data = parseJob({ business_id, ...request })
      const { priority } = data
      warnOfOrder(data)
      const keepOutcome = watch?.forget(id)
      try {
        const signed = secret ? signJob(id, data, secret) : data
        await queues.submit(id, signed, { ...(priority !== undefined && { priority }) })
        return { id, data, by: 'queue' }
      } catch (error) {
        keepOutcome?.()
        if (!isMasonError(error, 'queue_unavailable') || !http || data.run_id !== undefined) throw error
        // the job may be on Redis all the same: both ways have one key, so it is one run
        await askServer(http, { id, data }, signal)
        return { id, data, by: 'http' }
      }
    },
    /**
     * What became of a job: its run, or the errors for which it was refused. Waits until a worker has taken it. Where Redis cannot
     * say, the HTTP API is asked; without one, `not_found` where Redis no longer has the job.
     */
    async outcome(job: SentJob, { signal }: { signal?: AbortSignal | undefined } = {}): Promise<JobOutcome> {
      watch ??= watchJobOutcomes({ url, prefix })
      if (job.by === 'http' && http) return askServer(http, job, signal)
      for (let wasGone = false; ; ) {
        signal?.throwIfAborted()
        const known = await watch.find(job.id, wasGone ? graceMs : pollMs, signal)
        const found: JobOutcome | 'gone' | null =
          known ?? (await watch.readJob(job.id).catch(() => (http ? 'gone' : null)))
        if (found !== null && found !== 'gone') return found
        if (found === 'gone' && http) return askServer(http, job, signal)
        // once more: the event of a job that has just ended may still come
        if (found === 'gone' && wasGone) throw createGoneError(job.id)
        wasGone = found === 'gone'
      }
    },
    async close(): Promise<void> {
      await settlesWithin(Promise.allSettled([queues.close(), watch?.close()]), 2_000)
    },
  }
}

/**
 * See `createProducer`.
 *
 * @example
 * ```ts
 * import type { Producer } from 'mason-runtime/queue'
 *
 * const send = async (producer: Producer, text: string): Promise<string> =>
 *   (await producer.submit({ prompt: text, user_id: 'ann' })).id
 * ```
 */
export type Producer = Awaited<ReturnType<typeof createProducer>>
