import { describe, expect, it } from 'vitest'
import type { IntakeQueue } from '../../../src/features/intake/intake-queue.ts'
import { intakeQueueName } from '../../../src/infra/queue/jobs.ts'
import { redisScope, redisUrl, served } from '../../infra/queue/harness.ts'
import { openIntakeOf } from '../../support/intake.ts'

describe.skipIf(redisUrl === undefined)('the intake queue (needs TEST_REDIS_URL)', () => {
  const harness = served(redisUrl ?? '')
  const { keep, open, plainClient } = redisScope(harness)
  const openIntake = async (mayTake = () => true): Promise<IntakeQueue> =>
    keep(openIntakeOf(await open(), mayTake), (queue) => queue.close())
  const done = { run_id: 'run_1', status: 'queued' }

  it('takes jobs from any BullMQ client in their order, whatever options it sets, and leaves nothing', async () => {
    const [queue, client] = [await openIntake(), plainClient(intakeQueueName)]
    await client.add('run', { prompt: 'hello' }, { jobId: 'key-1' })
    await client.add('run', 'no object', { jobId: 'key-2', removeOnComplete: false, attempts: 1 })
    await client.add('other', { prompt: 'hi' }, { jobId: 'a:b:c', removeOnComplete: { count: 1_000 } })
    const jobs = [await queue.take(false), await queue.take(false), await queue.take(false)]
    expect(jobs).toEqual([
      { id: 'key-1', name: 'run', data: { prompt: 'hello' }, length: 18 },
      { id: 'key-2', name: 'run', data: 'no object', length: 11 },
      { id: 'a:b:c', name: 'other', data: { prompt: 'hi' }, length: 15 },
    ])
    expect(await queue.take(false)).toBeNull()
    expect(await queue.listTaken()).toEqual(['key-1', 'key-2', 'a:b:c'])
    for (const id of ['key-2', 'a:b:c', 'key-1']) await queue.end(id, done)
    expect(await queue.listTaken()).toEqual([])
    expect(await client.getJobCountByTypes()).toBe(0)
  })

  it('takes no lock, so that another leader reads and ends what one has taken', async () => {
    const [lost, client] = [await openIntake(), plainClient(intakeQueueName)]
    await client.add('run', { n: 1 }, { jobId: 'a' })
    await client.add('run', { n: 2 }, { jobId: 'b' })
    await lost.take(false)
    await lost.take(false)
    expect(await harness.admin.keys(`${harness.prefix}:*lock*`)).toEqual([])
    const next = await openIntake()
    expect(await next.listTaken()).toEqual(['a', 'b'])
    expect(await next.read('b')).toEqual({ id: 'b', name: 'run', data: { n: 2 } })
    await next.end('a', done)
    await next.end('b', { errors: [{ pointer: '', detail: 'no' }] })
    // too late, which is no error
    await lost.end('a', done)
    await lost.end('b', done)
    expect(await client.getJobState('b')).toBe('failed')
    expect(await next.listTaken()).toEqual([])
  })

  it('takes nothing while it may not, also after a wait', async () => {
    let may = true
    const [queue, client] = [await openIntake(() => may), plainClient(intakeQueueName)]
    expect(await queue.take(false)).toBeNull()
    const waiting = queue.take(true)
    may = false
    await client.add('run', {}, { jobId: 'a' })
    expect(await waiting).toBeNull()
    expect(await queue.listTaken()).toEqual([])
    may = true
    expect(await queue.take(true)).toMatchObject({ id: 'a' })
  })

  it('parks a job aside, and queues it again as the last', async () => {
    const [queue, client] = [await openIntake(), plainClient(intakeQueueName)]
    for (const id of ['a', 'b']) await client.add('run', {}, { jobId: id, priority: 5 })
    await queue.take(false)
    await queue.park('a', new Date(Date.now() + 3_600_000))
    expect(await queue.listTaken()).toEqual([])
    expect(await client.getJobState('a')).toBe('delayed')
    expect([await queue.unpark('a'), await queue.unpark('a'), await queue.unpark('none')]).toEqual([
      ...[true, true, false],
    ])
    expect(await queue.take(false)).toMatchObject({ id: 'b' })
    expect(await queue.take(false)).toMatchObject({ id: 'a' })
  })

  it('ends and parks jobs that Redis has lost without an error', async () => {
    const [queue, client] = [await openIntake(), plainClient(intakeQueueName)]
    await client.add('run', {}, { jobId: 'a' })
    await queue.take(false)
    await client.obliterate({ force: true })
    await queue.end('a', done)
    await queue.end('a', { errors: [] })
    await queue.park('a', new Date())
    expect([await queue.read('a'), await queue.listTaken()]).toEqual([null, []])
  })

  it('fails a refused job at once, and keeps it with its errors whatever its sender wants', async () => {
    const [queue, client] = [await openIntake(), plainClient(intakeQueueName)]
    const errors = [{ pointer: '/a\u0000b', detail: 'half a pair \ud83d'.padEnd(2_000) }]
    await client.add('run', {}, { jobId: 'refused', attempts: 5, removeOnFail: true })
    await queue.take(false)
    await queue.end('refused', { errors })
    expect(await client.getJobState('refused')).toBe('failed')
    const { failedReason = '' } = (await client.getJob('refused')) ?? {}
    expect(JSON.parse(failedReason)).toEqual([
      { pointer: '/a\u0000b', detail: errors[0]?.detail.slice(0, 1_000) },
    ])
  })

  it('does not add an id that waits, and takes a done one again', async () => {
    const [queues, queue, client] = [await open(), await openIntake(), plainClient(intakeQueueName)]
    await queues.submit('same', { take: 1 })
    await queues.submit('same', { take: 2 })
    expect(await client.getJobCountByTypes()).toBe(1)
    expect(await queue.take(false)).toMatchObject({ data: { take: 1 } })
    await queue.end('same', done)
    await queues.submit('same', { take: 3 })
    expect(await queue.take(false)).toMatchObject({ data: { take: 3 } })
  })

  it('hands data over exactly as it was submitted, and what is not JSON as text', async () => {
    const [queues, queue, client] = [await open(), await openIntake(), plainClient(intakeQueueName)]
    const data = {
      z: 'NUL \u0000 here',
      a: 'half a pair \ud83d',
      prompt: 'snow ☃ \u2028',
      '10': [1e21, 0.1, -0],
      '2': null,
      deep: { __proto__: null, x: [] },
    }
    await queues.submit('exact', data)
    expect(JSON.stringify((await queue.take(false))?.data)).toBe(JSON.stringify(data))
    await client.add('run', {}, { jobId: 'broken' })
    await harness.admin.hset(`${harness.prefix}:${intakeQueueName}:broken`, 'data', '{"prompt": ')
    expect(await queue.take(false)).toMatchObject({ id: 'broken', data: '{"prompt": ' })
    expect(await queue.read('broken')).toMatchObject({ id: 'broken', data: '{"prompt": ' })
    expect([
      await queue.readText('exact'),
      await queue.readText('broken'),
      await queue.readText('none'),
    ]).toEqual([...[JSON.stringify(data), '{"prompt": ', null]])
    await client.add('run', {}, { jobId: 'digits' })
    const digits = '{"metadata": {"order": 9007199254740993, "n": 42}}'
    await harness.admin.hset(`${harness.prefix}:${intakeQueueName}:digits`, 'data', digits)
    expect(await queue.take(false)).toMatchObject({
      data: { metadata: { order: '9007199254740993', n: 42 } },
    })
  })
})
