import { Queue } from 'bullmq'
import { Redis } from 'ioredis'
import { toWakeUpsKey } from '../../src/infra/queue/wake-ups.ts'

/** A product that puts its jobs straight into the public queue, as any BullMQ client may. */
export type QueueClient = AsyncDisposable & {
  add(id: string, data: unknown): Promise<void>
  /** Bytes that Redis uses. */
  memory(): Promise<number>
  /** Wake-ups that no worker has taken yet. */
  countWakeUps(): Promise<number>
}

export const openQueueClient = (redisUrl: string): QueueClient => {
  const { hostname, port } = new URL(redisUrl)
  const queue = new Queue('mason-runs', { connection: { host: hostname, port: Number(port) } })
  const redis = new Redis(redisUrl)
  return {
    add: async (id, data) => void (await queue.add('run', data, { jobId: id })),
    memory: async () => Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1]),
    countWakeUps: () => redis.zcard(toWakeUpsKey('bull')),
    async [Symbol.asyncDispose]() {
      await queue.close()
      await redis.quit()
    },
  }
}
