import { Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { openQueues } from '../../src/infra/queue/queues.ts'
import type { Case, Figures, Variant } from '../case.ts'
import type { Place } from '../support/place.ts'

const jobs = 6000
const concurrencies = [1, 16, 64]
const log = { debug() {}, info() {}, warn() {}, error() {} }

type Sender = (n: number) => Promise<unknown>
/** Handles jobs until it is stopped; calls `handled` for each. */
type Receiver = (concurrency: number, handled: () => void) => Promise<{ stop(): Promise<unknown> }>

/** Sixteen senders at a time, then receivers of each width work off as many jobs as were sent; sending is the last time's. */
const measure = async (place: Place, send: Sender, receive: Receiver): Promise<Figures> => {
  const found: Figures = {}
  const count = place.count(jobs)
  for (const concurrency of concurrencies) {
    let sent = 0
    const since = performance.now()
    await Promise.all(
      Array.from({ length: 16 }, async () => {
        while (sent < count) await send(sent++)
      }),
    )
    found['sent/s'] = (count / (performance.now() - since)) * 1000
    let left = count
    let begun = 0
    let ended: () => void = () => {}
    const all = new Promise<void>((resolve) => {
      ended = resolve
    })
    const receiver = await receive(concurrency, () => {
      // from the first job on: connecting is not what is measured
      begun ||= performance.now()
      if (--left === 0) ended()
    })
    await all
    found[`jobs/s at ${concurrency}`] = ((count - 1) / (performance.now() - begun)) * 1000
    await receiver.stop()
  }
  return found
}

const ours: Variant = async (place) => {
  const queues = await openQueues({
    kind: 'redis',
    url: place.redisUrl,
    prefix: place.config.queuePrefix,
    log,
  })
  const found = await measure(
    place,
    (n) => queues.wake({ run_id: `run_${n}`, business_id: 'default' }),
    async (concurrency, handled) => {
      const consumer = await queues.onWakeUp(async () => handled(), { concurrency })
      return { stop: () => consumer.close(1000) }
    },
  )
  await queues.close()
  return found
}

/** BullMQ as its guide shows it, with connections that are kept. */
const raw =
  (priority: number | undefined): Variant =>
  async (place) => {
    const name = 'raw'
    const prefix = place.config.queuePrefix
    const connection = new Redis(place.redisUrl, { maxRetriesPerRequest: null })
    const queue = new Queue(name, { connection, prefix })
    const options = { removeOnComplete: true, removeOnFail: true, ...(priority && { priority }) }
    const found = await measure(
      place,
      (n) => queue.add('wake-up', { run_id: `run_${n}`, business_id: 'default' }, options),
      async (concurrency, handled) => {
        const worker = new Worker(name, async () => handled(), { connection, prefix, concurrency })
        await worker.waitUntilReady()
        return { stop: () => worker.close() }
      },
    )
    await queue.close()
    await connection.quit()
    return found
  }

const queueCase: Case = {
  about: 'wake-ups through our queue against the same as jobs through bare BullMQ',
  ours: { Mason: ours },
  beside: { 'raw BullMQ': raw(undefined), 'raw BullMQ, with a priority': raw(101) },
}

export default queueCase
