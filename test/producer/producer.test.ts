// backends: either

import { Queue, QueueEvents } from 'bullmq'
import { describe, expect } from 'vitest'
import { TcpProxy } from '../../chaos/failures/tcp-proxy.ts'
import { newRunId } from '../../src/infra/lib/ids.ts'
import { createProducer, type Producer } from '../../src/producer/create-producer.ts'
import { type Backend, unique } from '../support/backend.ts'
import { adminToken, runtimeTest } from '../support/integration-test.ts'
import { deadline } from '../support/test-runtime.ts'

/** Producers over a connection to Redis that drops, delays and is gone for a while, and that send every job twice. */

const jobs = Number(process.env.MASON_TEST_JOBS ?? 12)
/** Rarely enough that connections come back between two cuts. */
const cutEvery = Math.ceil(jobs / 8)
const queueSecret = 'a-queue-secret-of-32-characters--'
const test = runtimeTest
  .extend('runtimeOptions', { scope: 'file' }, () => ({ config: { queueSecrets: [queueSecret] } }))
  .extend('redis', { scope: 'file' }, async ({ backend }, { onCleanup }) => {
    const redis = new TcpProxy(backend.config.redisUrl ?? '')
    await redis.open()
    redis.delayMs = 1
    onCleanup(() => redis.down())
    return redis
  })

const openProducer = ({ config: { redisUrl, queuePrefix } }: Backend, business: string): Promise<Producer> =>
  createProducer({ redisUrl: redisUrl ?? '', queuePrefix, queueSecret, businessId: unique(business) })

const namesIn = (business: string): string[] => Array.from({ length: jobs }, (_, n) => `${business}-${n}`)
const requestOf = (business_id: string) => ({
  prompt: 'Say hello',
  user_id: 'ann',
  business_id,
  delay_ms: 600_000,
})
/** Calls `work` for each job, 20 at once. */
const forEachJob = async (business: string, work: (id: string, index: number) => Promise<void>) => {
  const names = [...namesIn(business).entries()]
  const next = async (): Promise<void> => {
    for (let job = names.shift(); job; job = names.shift()) await work(job[1], job[0])
  }
  await Promise.all(Array.from({ length: 20 }, next))
}
const runIdOf = async (producer: Producer, job: Parameters<Producer['outcome']>[0]): Promise<string> => {
  const outcome = await producer.outcome(job, { signal: deadline() })
  if ('errors' in outcome) throw new Error(JSON.stringify(outcome.errors))
  return outcome.run_id
}
const listRuns = async (
  runtime: { of(business: string): { runs(filter: object): Promise<unknown> } },
  business: string,
) => {
  const ids: string[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page = (await runtime.of(business).runs({ limit: 200, ...(cursor && { cursor }) })) as {
      data: { id: string }[]
      next_cursor: string | null
    }
    ids.push(...page.data.map(({ id }) => id))
    cursor = page.next_cursor
  }
  return ids.sort()
}

describe.runIf(process.env.MASON_TEST_BACKEND === 'served')(
  'jobs over a Redis that drops connections',
  () => {
    test('become one run each, and the producer knows it; over HTTP while Redis is down', async ({
      server,
      runtime,
      backend,
      redis,
    }) => {
      const business = unique('producer')
      const { queuePrefix } = backend.config
      const http = { url: server.url, token: adminToken }
      const producer = await createProducer({ redisUrl: redis.url, queuePrefix, queueSecret, http })
      const known: string[] = []
      const ways = new Set<string>()
      await forEachJob(business, async (id, index) => {
        if (index % cutEvery === 1) redis.cut()
        if (index === Math.floor(jobs / 3)) await redis.down()
        if (index === Math.floor(jobs / 2)) await redis.open()
        const sent = [
          await producer.submit(requestOf(business), { id }),
          await producer.submit(requestOf(business), { id }),
        ]
        for (const { by } of sent) ways.add(by)
        const ids = await Promise.all(sent.map((job) => runIdOf(producer, job)))
        expect(new Set(ids).size).toBe(1)
        known.push(...ids.slice(0, 1))
      })
      await producer.close()
      expect(new Set(known).size).toBe(jobs)
      expect([...ways].sort()).toEqual(['http', 'queue'])
      expect(await listRuns(runtime, business)).toEqual(known.sort())
    })

    test('become one run each also when any BullMQ client sends them', async ({
      runtime,
      backend,
      redis,
    }) => {
      const { signJob } = await import('../../src/producer/index.ts')
      const business = unique('bull')
      const options = {
        connection: { url: redis.url, maxRetriesPerRequest: null },
        prefix: backend.config.queuePrefix,
      }
      const [queue, events] = [new Queue('mason-runs', options), new QueueEvents('mason-runs', options)]
      queue.on('error', () => {})
      events.on('error', () => {})
      await events.waitUntilReady()
      const known = new Map<string, string>()
      const all = new Promise<void>((resolve) =>
        events.on('completed', ({ jobId, returnvalue }) => {
          known.set(jobId, (returnvalue as unknown as { run_id: string }).run_id)
          if (known.size === jobs) resolve()
        }),
      )
      await forEachJob(business, async (id, index) => {
        if (index % cutEvery === 1) redis.cut()
        const job = signJob(id, requestOf(business), queueSecret)
        for (let time = 0; time < 2; time++) await queue.add('run', job, { jobId: id })
      })
      await all
      await Promise.all([queue.close(), events.close()])
      expect(await listRuns(runtime, business)).toEqual([...known.values()].sort())
    })

    test('of one session with several priorities are warned of, once', async ({ backend }) => {
      const producer = await openProducer(backend, 'mixed')
      const warnings: Error[] = []
      const listen = (warning: Error & { code?: string }) =>
        void (warning.code === 'MASON_TURN_ORDER' && warnings.push(warning))
      process.on('warning', listen)
      const send = async (session_id: string, priority?: number) => {
        const job = { prompt: 'Say hello', user_id: 'ann', session_id, delay_ms: 600_000 }
        await producer.submit({ ...job, ...(priority !== undefined && { priority }) })
      }
      for (const session of ['s', 't']) for (const priority of [undefined, 0]) await send(session, priority)
      await send('u', 7)
      expect(warnings).toEqual([])
      await send('s', 5)
      await send('t', 5)
      process.off('warning', listen)
      await producer.close()
      expect(warnings.map(({ message }) => message)).toEqual([
        expect.stringContaining('"s" have the priorities 0 and 5'),
      ])
    })

    test('carry the errors of their refusal, by either way', async ({ server, backend, redis }) => {
      const business = unique('refused')
      const { queuePrefix } = backend.config
      const http = { url: server.url, token: adminToken }
      const target = { redisUrl: redis.url, queuePrefix, queueSecret, businessId: business }
      const producer = await createProducer({ ...target, http })
      await expect(producer.submit({ prompt: '', user_id: 'ann' })).rejects.toMatchObject({
        code: 'invalid_request',
        detail: { errors: [{ pointer: '/prompt' }] },
      })
      // another user of its session: only the admission sees that
      const session = { prompt: 'Say hello', session_id: unique('session') }
      await runIdOf(producer, await producer.submit({ ...session, user_id: 'ann' }))
      const refusal = { errors: [{ pointer: '', detail: expect.stringContaining('user') }] }
      const refused = await producer.submit({ ...session, user_id: 'bob' })
      expect(await producer.outcome(refused, { signal: deadline() })).toEqual(refusal)
      const run_id = newRunId()
      const own = await producer.submit({ prompt: 'Say hello', user_id: 'ann', run_id })
      expect(await runIdOf(producer, own)).toBe(run_id)

      const unsigned = await createProducer({ ...target, queueSecret: '' })
      const job = await unsigned.submit({ prompt: 'Say hello', user_id: 'ann' })
      expect(await unsigned.outcome(job, { signal: deadline() })).toMatchObject({
        errors: [{ pointer: '/signature' }],
      })
      await unsigned.close()

      await redis.down()
      const again = await producer.submit({ ...session, user_id: 'bob' })
      expect([again.by, await producer.outcome(again)]).toEqual(['http', refusal])
      // HTTP takes no id
      const withId = { prompt: 'Say hello', user_id: 'ann', run_id: newRunId() }
      await expect(producer.submit(withId)).rejects.toMatchObject({ code: 'queue_unavailable' })
      await redis.open()
      await producer.close()
    })

    test('have the outcome of what was sent last under their id', async ({ backend }) => {
      const producer = await openProducer(backend, 'same')
      const id = unique('job')
      const request = { prompt: 'Say hello', user_id: 'ann', delay_ms: 600_000 }
      const first = await runIdOf(producer, await producer.submit(request, { id }))
      expect(await runIdOf(producer, await producer.submit(request, { id }))).toBe(first)
      const other = await producer.submit({ ...request, prompt: 'Say goodbye' }, { id })
      expect(await producer.outcome(other, { signal: deadline() })).toEqual({
        errors: [{ pointer: '', detail: expect.stringContaining('another body') }],
      })
      await producer.close()
    })

    test('are not sent where no worker could take them', async ({ backend }) => {
      const redisUrl = backend.config.redisUrl ?? ''
      const { queuePrefix } = backend.config
      const refused = (options: object) => expect(createProducer({ redisUrl, ...options })).rejects
      await refused({ redisUrl: 'localhost' }).toThrow(/^REDIS_URL must be an address/)
      await refused({ queuePrefix: 'a b' }).toThrow(/^MASON_QUEUE_PREFIX must be 1 to 64/)
      await refused({ queuePrefix, queueSecret: 'short' }).toThrow(/^MASON_QUEUE_SECRET .*32/)
      const producer = await createProducer({ redisUrl, queuePrefix, queueSecret })
      const send = (id: string, content_base64 = 'YQ==') =>
        producer.submit(
          { prompt: 'x', user_id: 'ann', files: [{ name: 'a', type: 'text/plain', content_base64 }] },
          { id },
        )
      await expect(send('big', 'QUFB'.repeat(8_400_000))).rejects.toMatchObject({
        code: 'invalid_request',
        detail: { errors: [{ pointer: '', detail: expect.stringContaining('33554432 bytes') }] },
      })
      await expect(send('half a pair \ud800')).rejects.toThrow('half a surrogate pair')
      await expect(send('x'.repeat(256))).rejects.toThrow('more than 255 characters')
      await producer.close()
    })

    test('end with an error where Redis has lost them and there is no other way', async ({
      backend,
      redis,
    }) => {
      const { queuePrefix } = backend.config
      const producer = await createProducer({ redisUrl: redis.url, queuePrefix })
      const lost = { id: unique('lost'), data: { prompt: 'Say hello', user_id: 'ann' }, by: 'queue' } as const
      await expect(producer.outcome(lost)).rejects.toMatchObject({ code: 'not_found' })
      await producer.close()
    })
  },
)
