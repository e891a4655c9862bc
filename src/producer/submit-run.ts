import type { JobData } from '../state/run-request.ts'
import { createProducer } from './create-producer.ts'

/**
 * Puts one job straight into the public queue `mason-runs` and returns its id, which is the idempotency key: the same id
 * is admitted once. Throws `invalid_request` with every error of the request, and `queue_unavailable` within 3 s. Each
 * call opens and closes a connection; to submit many jobs, keep a `createProducer` of `mason-runtime/queue`. The prefix is
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
  { id, ...target }: { id?: string; redisUrl?: string; queuePrefix?: string; queueSecret?: string } = {},
): Promise<{ id: string }> => {
  const producer = await createProducer(target)
  try {
    return { id: (await producer.submit(request, { id })).id }
  } finally {
    await producer.close()
  }
}
