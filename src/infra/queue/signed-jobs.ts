import { createHmac } from 'node:crypto'

/** The data of a signed job: what an unsigned one has as data, as the text that was signed. */
export type SignedJob = { payload: string; signature: string }

/**
 * Signs the data of a job for the queue `mason-runs` with MASON_QUEUE_SECRET. The signature covers the job's id, which is the
 * idempotency key, the time, and the data with its `business_id`.
 *
 * @example
 * ```ts
 * import { signJob } from 'mason-runtime'
 *
 * const id = 'message-4711'
 * const job = signJob(id, { prompt: 'What is 10% of 300?', user_id: 'ann', business_id: 'shop' }, 'the-queue-secret')
 * // await queue.add('run', job, { jobId: id })
 * ```
 */
export const signJob = (id: string, data: unknown, secret: string, at = new Date()): SignedJob => {
  const payload = JSON.stringify(data)
  const time = String(Math.floor(at.getTime() / 1000))
  return { payload, signature: `t=${time},v1=${toJobMac(secret, time, id, payload).toString('hex')}` }
}

/** The signature of a job. With the length of the id, so that no part of one field can pass for another. */
export const toJobMac = (secret: string, time: string, id: string, payload: string): Buffer =>
  createHmac('sha256', secret)
    .update(`${time}.${Buffer.byteLength(id)}.${id}.${payload}`)
    .digest()
