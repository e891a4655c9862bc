import { randomUUID } from 'node:crypto'
import { toFieldErrors } from '../engine/runs/intake.ts'
import { readEnvironment } from '../infra/config/config.ts'
import { defaultQueuePrefix } from '../infra/config/settings.ts'
import { silentLog } from '../infra/lib/silent-log.ts'
import { openQueues } from '../infra/queue/queues.ts'
import { signJob } from '../infra/queue/signed-jobs.ts'
import { MasonError } from '../state/errors.ts'
import { type JobData, jobDataSchema } from '../state/run-request.ts'

/**
 * Puts one job straight into the public queue `mason-runs` and returns its id, which is the idempotency key: the same id
 * is admitted once. Throws `invalid_request` with every error of the request, and `queue_unavailable` within 3 s. Each
 * call opens and closes a connection; to submit many jobs, keep a BullMQ queue open and add jobs named `run`. The prefix is
 * that of Mason: `queuePrefix`, else MASON_QUEUE_PREFIX, else BullMQ's own. With `queueSecret`, else MASON_QUEUE_SECRET, the job
 * is signed.
 *
 * @example
 * ```ts
 * import { submitRun } from 'mason-runtime'
 *
 * const { id } = await submitRun(
 *   { prompt: 'What is 10% of 300?', user_id: 'ann', session_id: 'chat-7' },
 *   { id: 'message-4711', redisUrl: 'redis://127.0.0.1:6379' },
 * )
 * console.log(id)
 * ```
 */
export const submitRun = async (
  request: JobData,
  options: { id?: string; redisUrl?: string; queuePrefix?: string; queueSecret?: string } = {},
): Promise<{ id: string }> => {
  const parsed = jobDataSchema.safeParse(request)
  if (!parsed.success)
    throw new MasonError('invalid_request', 'the job is invalid', {
      detail: { errors: toFieldErrors(parsed.error) },
    })
  const env = readEnvironment()
  const url = options.redisUrl ?? env.REDIS_URL
  if (!url)
    throw new MasonError('invalid_settings', 'there is no queue to submit to', {
      remedy: 'set REDIS_URL or pass redisUrl; without Redis use POST /v1/runs',
    })
  const id = options.id ?? randomUUID()
  const prefix = options.queuePrefix ?? (env.MASON_QUEUE_PREFIX || defaultQueuePrefix)
  const secret = options.queueSecret ?? env.MASON_QUEUE_SECRET
  const queues = await openQueues({ kind: 'redis', url, prefix, log: silentLog })
  try {
    await queues.submit(id, secret ? signJob(id, parsed.data, secret) : parsed.data, {
      ...(request.priority !== undefined && { priority: request.priority }),
    })
    return { id }
  } finally {
    await queues.close()
  }
}
