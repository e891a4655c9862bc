import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import { TcpProxy } from '../../../chaos/failures/tcp-proxy.ts'
import { openHints } from '../../../src/infra/queue/hints.ts'
import { openQueues } from '../../../src/infra/queue/queues.ts'
import { openIntakeOf } from '../../support/intake.ts'
import { gate, recordingLog, redisUrl, runPrefix, scope, served, until, wakeUp } from './harness.ts'

describe.skipIf(redisUrl === undefined)('queues on Redis (needs TEST_REDIS_URL)', () => {
  const url = redisUrl ?? ''
  const harness = served(url)
  const { keep, logged } = scope(harness)
  let proxy: TcpProxy
  beforeEach(async () => {
    proxy = keep(new TcpProxy(url), (value) => value.down())
    await proxy.open()
  })
  const open = async () =>
    keep(
      await openQueues({
        kind: 'redis',
        url: proxy.url,
        prefix: `${runPrefix}-${randomUUID()}`,
        log: recordingLog(logged),
      }),
      (queues) => queues.close(1_000),
    )

  it('opens with Redis down, rejects, and works when Redis is there', async () => {
    await proxy.down()
    const opening = open()
    const { wake, onWakeUp, ping } = await opening
    const heard: string[] = []
    await onWakeUp(async ({ run_id }) => void heard.push(run_id), { concurrency: 1 })
    const refused = { code: 'queue_unavailable', message: expect.stringContaining('ECONNREFUSED') }
    await expect(wake(wakeUp('lost'))).rejects.toMatchObject(refused)
    expect(await ping()).toMatchObject({ ok: false, error: expect.stringContaining('ECONNREFUSED') })
    await proxy.open()
    await until(async () => (await ping()).ok, 'the connection')
    await wake(wakeUp('found'))
    await until(() => heard.length === 1, 'the wake-up')
    expect(heard).toEqual(['found'])
  })

  it('goes on by itself after the connection was cut', async () => {
    const queues = await open()
    const heard: string[] = []
    const { open: finish, opened: finished } = gate()
    await queues.onWakeUp(
      async ({ run_id }) => {
        heard.push(run_id)
        if (run_id === 'long') await finished
      },
      { concurrency: 2 },
    )
    await queues.wake(wakeUp('long'))
    await until(() => heard.length === 1, 'the first wake-up')
    await proxy.down()
    finish()
    await until(async () => !(await queues.ping()).ok, 'the loss')
    await proxy.open()
    await until(async () => (await queues.ping()).ok, 'the connection')
    await queues.wake(wakeUp('after'))
    await until(() => heard.includes('after'), 'the wake-up after')
    expect(heard).toEqual(['long', 'after'])
    expect(logged.filter(({ level }) => level === 'warn')).toHaveLength(1)
    expect(logged.filter(({ level }) => level === 'error')).toEqual([])
  })

  it('rejects when Redis is frozen, and closes all the same', async () => {
    const queues = await open()
    await queues.onWakeUp(async () => {}, { concurrency: 1 })
    await queues.wake(wakeUp('first'))
    proxy.freeze()
    const ringing = queues.wake(wakeUp('frozen'))
    await expect(ringing).rejects.toMatchObject({ code: 'queue_unavailable' })
    expect(await queues.ping()).toMatchObject({ ok: false })
    await queues.close(100)
    proxy.thaw()
  })

  it('closes with Redis down', async () => {
    const queues = await open()
    await queues.onWakeUp(async () => {}, { concurrency: 1 })
    const intake = openIntakeOf(queues)
    await intake.take(false)
    const waiting = intake.take(true).catch(() => null)
    await proxy.down()
    await Promise.all([intake.close(), waiting])
    await queues.close(100)
  })

  it('subscribes to hints again when Redis is back', async () => {
    await proxy.down()
    const hints = keep(
      await openHints({ kind: 'redis', url: proxy.url, prefix: runPrefix, log: recordingLog(logged) }),
      (opened) => opened.close(),
    )
    const heard: string[] = []
    await hints.subscribe('early', (message) => void heard.push(message))
    for (const round of ['one', 'two']) {
      await proxy.open()
      await until(() => {
        hints.publish('early', round)
        return heard.includes(round)
      }, `hint ${round}`)
      await proxy.down()
    }
  })

  describe('whose prefix belongs to a database', () => {
    const openAs = async (databaseId: string, prefix: string, at = proxy.url) =>
      keep(
        await openQueues({ kind: 'redis', url: at, prefix, databaseId, log: recordingLog(logged) }),
        (queues) => queues.close(1_000),
      )
    const toKey = (prefix: string) => `${prefix}:mason-database`
    const newPrefix = () => `${runPrefix}-${randomUUID()}`

    it('refuse the process of another database, and say both ids and the remedy', async () => {
      const prefix = newPrefix()
      await openAs('db_a', prefix)
      await openAs('db_a', prefix)
      const refusal = await openAs('db_b', prefix).catch((error: unknown) => error)
      expect(refusal).toMatchObject({
        code: 'invalid_settings',
        message: expect.stringMatching(/db_a.*db_b/),
        remedy: expect.stringContaining('mason queue claim'),
      })
      await openAs('db_b', newPrefix())
    })

    it('give no job to a process that could not read the owner when it started', async () => {
      const prefix = newPrefix()
      await proxy.down()
      const late = await openAs('db_b', prefix)
      const taken: string[] = []
      await late.onWakeUp(async ({ run_id }) => void taken.push(`b ${run_id}`), { concurrency: 1 })
      const first = await openAs('db_a', prefix, url)
      await proxy.open()
      await until(async () => !(await late.ping()).ok && logged.some(({ level }) => level === 'error'), 'it')
      expect(await late.ping()).toMatchObject({ ok: false, error: expect.stringMatching(/db_a.*db_b/) })
      const intake = keep(openIntakeOf(late), (opened) => opened.close())
      expect(await intake.isOurs()).toBe(false)
      // one that it takes makes it pause; all are handled by the owner
      for (const id of ['one', 'two', 'three']) await first.wake(wakeUp(id))
      await first.onWakeUp(async ({ run_id }) => void taken.push(`a ${run_id}`), { concurrency: 1 })
      await until(() => taken.length === 3, 'the jobs')
      expect(taken.sort()).toEqual(['a one', 'a three', 'a two'])
    })

    it('learn the owner again from a running process after Redis was emptied', async () => {
      const prefix = newPrefix()
      const queues = await openAs('db_a', prefix)
      const intake = openIntakeOf(queues)
      keep(intake, (opened) => opened.close())
      const isWritten = async () => (await harness.admin.get(toKey(prefix))) === 'db_a'
      await harness.admin.del(toKey(prefix))
      await proxy.down()
      await proxy.open()
      await until(isWritten, 'the owner after a reconnection')
      await harness.admin.del(toKey(prefix))
      let count = 0
      await until(async () => {
        await queues.submit(`job-${count++}`, {})
        await intake.isOurs()
        return isWritten()
      }, 'the owner after a job')
    })
  })
})
