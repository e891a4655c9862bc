import { describe, expect, it } from 'vitest'
import { intakeQueueName, type WakeUp } from '../../../src/infra/queue/jobs.ts'
import { isGate } from '../../support/tier.ts'
import {
  embedded,
  gate,
  type Harness,
  redisScope,
  redisUrl,
  scope,
  served,
  until,
  wakeUp,
} from './harness.ts'

function portSuite(harness: Harness) {
  const { open, openHints, logged } = scope(harness)

  /** Opens queues and notes every wake-up that is handled. */
  const openWithWakeUps = async (concurrency = 4) => {
    const queues = await open()
    const heard: string[] = []
    const consumer = await queues.onWakeUp(async ({ run_id }) => void heard.push(run_id), { concurrency })
    return { queues, heard, consumer }
  }

  it('hands a wake-up to the handler with its ids and nothing else', async () => {
    const queues = await open()
    const heard: WakeUp[] = []
    await queues.onWakeUp(async (one) => void heard.push(one), { concurrency: 1 })
    await queues.wake({ ...wakeUp('run-1'), prompt: 'secret' } as WakeUp)
    await until(() => heard.length === 1, 'the wake-up')
    expect(heard).toEqual([{ run_id: 'run-1', business_id: 'acme' }])
  })

  it('delivers every wake-up of a large batch', async () => {
    const { queues, heard } = await openWithWakeUps(16)
    const ids = Array.from({ length: isGate ? 300 : 1_200 }, (_, index) => `run-${index}`)
    // a busy machine may take longer than Mason waits for the queue; the relay sends them again then as well
    let sends = 0
    const isSent = () => {
      sends++
      return queues.wakeMany(ids.map(wakeUp)).then(
        () => true,
        ({ code }) => {
          expect(code).toBe('queue_unavailable')
          return false
        },
      )
    }
    await until(isSent, 'all wake-ups to be sent')
    await until(() => new Set(heard).size === ids.length, 'all wake-ups')
    expect(new Set(heard)).toEqual(new Set(ids))
    if (sends === 1) expect(heard).toHaveLength(ids.length)
  })

  it('keeps one wake-up per run while it waits, and accepts a new one once it is handled', async () => {
    const queues = await open()
    await queues.wakeMany([wakeUp('a'), wakeUp('a'), wakeUp('b')])
    await queues.wake(wakeUp('a'))
    const heard: string[] = []
    const { open: finish, opened: finished } = gate()
    await queues.onWakeUp(
      async ({ run_id }) => {
        heard.push(run_id)
        await finished
      },
      { concurrency: 4 },
    )
    await until(() => heard.length === 2, 'a and b')
    await queues.wakeMany([wakeUp('a'), wakeUp('c')])
    await until(() => heard.length === 4, 'a again, and c')
    expect(heard).toEqual(['a', 'b', 'a', 'c'])
    finish()
  })

  it('runs at most `concurrency` handlers at once', async () => {
    const queues = await open()
    let now = 0
    let most = 0
    let done = 0
    await queues.wakeMany(Array.from({ length: 40 }, (_, index) => wakeUp(`run-${index}`)))
    await queues.onWakeUp(
      async () => {
        most = Math.max(most, ++now)
        await new Promise((resolve) => setTimeout(resolve, 10))
        now--
        done++
      },
      { concurrency: 3 },
    )
    await until(() => done === 40, 'all wake-ups')
    expect(most).toBe(3)
  })

  it('logs a handler that rejects and goes on', async () => {
    const queues = await open()
    const heard: string[] = []
    await queues.onWakeUp(
      async ({ run_id }) => {
        if (run_id === 'bad') throw new Error('no such run')
        heard.push(run_id)
      },
      { concurrency: 1 },
    )
    await queues.wake(wakeUp('bad'))
    await queues.wake(wakeUp('good'))
    await until(() => heard.length === 1, 'the good wake-up')
    expect(logged).toContainEqual(
      expect.objectContaining({ level: 'error', data: expect.objectContaining({ run_id: 'bad' }) }),
    )
  })

  it('starts no handler after a pause and leaves the wake-ups to others', async () => {
    const { queues, heard, consumer } = await openWithWakeUps()
    await queues.wake(wakeUp('before'))
    await until(() => heard.length === 1, 'the wake-up before')
    await consumer.pause()
    for (const id of ['1', '2', '3']) await queues.wake(wakeUp(id))
    const others: string[] = []
    await queues.onWakeUp(async ({ run_id }) => void others.push(run_id), { concurrency: 1 })
    await until(() => others.length === 3, 'the wake-ups after')
    expect(heard).toEqual(['before'])
    expect(others.sort()).toEqual(['1', '2', '3'])
  })

  it('closes after the running handlers', async () => {
    const queues = await open()
    const { open: finish, opened: finished } = gate()
    let state = 'not started'
    await queues.onWakeUp(
      async (_, signal) => {
        state = 'running'
        await finished
        state = signal.aborted ? 'aborted' : 'done'
      },
      { concurrency: 1 },
    )
    await queues.wake(wakeUp('slow'))
    await until(() => state === 'running', 'the handler')
    const closing = queues.close(10_000)
    finish()
    await closing
    expect(state).toBe('done')
  })

  it('aborts a handler that does not end in time and then leaves it behind', async () => {
    const queues = await open()
    let state = 'not started'
    await queues.onWakeUp(
      async (_, signal) => {
        state = 'running'
        signal.addEventListener('abort', () => {
          state = 'aborted'
        })
        await new Promise(() => {})
      },
      { concurrency: 1 },
    )
    await queues.wake(wakeUp('endless'))
    await until(() => state === 'running', 'the handler')
    await queues.close(100)
    expect(state).toBe('aborted')
  })

  it('rejects what is sent after closing, and closes twice', async () => {
    const queues = await open()
    await queues.close()
    await queues.close()
    await expect(queues.wake(wakeUp('late'))).rejects.toMatchObject({ code: 'queue_unavailable' })
    await expect(queues.onWakeUp(async () => {}, { concurrency: 1 })).rejects.toMatchObject({
      code: 'queue_unavailable',
    })
    expect(await queues.ping()).toMatchObject({ ok: false })
  })

  it('delivers hints to every subscriber of a channel until it leaves', async () => {
    const hints = await openHints()
    const heard: string[] = []
    await hints.subscribe('one', () => {
      throw new Error('not my day')
    })
    const leave = await hints.subscribe('one', (message) => void heard.push(`first ${message}`))
    await hints.subscribe('one', (message) => void heard.push(`second ${message}`))
    await hints.subscribe('two', (message) => void heard.push(`two ${message}`))
    await until(() => {
      hints.publish('two', 'ready')
      return heard.includes('two ready')
    }, 'the connection')
    heard.length = 0
    hints.publish('one', 'a')
    await until(() => heard.includes('second a'), 'the first hint')
    await leave()
    hints.publish('one', 'b')
    await until(() => heard.includes('second b'), 'the second hint')
    expect(heard.filter((text) => text.includes('first'))).toEqual(['first a'])
    expect(logged).toContainEqual(
      expect.objectContaining({ level: 'error', message: 'hints: a handler failed' }),
    )
  })

  it('leaves no connection or timer behind', async () => {
    const resources = () => process.getActiveResourcesInfo().filter((name) => /TCP|Timeout/.test(name)).length
    const before = resources()
    const queues = await open()
    const hints = await openHints()
    const heard: string[] = []
    await hints.subscribe('channel', () => {})
    await queues.onWakeUp(async ({ run_id }) => void heard.push(run_id), { concurrency: 2 })
    await queues.wake(wakeUp('run'))
    await until(() => heard.length === 1, 'the wake-up')
    await queues.close()
    await hints.close()
    await until(() => resources() <= before + 1, 'all closed; one is the timer of this wait')
  })
}

function redisSuite(harness: ReturnType<typeof served>) {
  const { open, openHints, plainClient, logged } = redisScope(harness)
  const key = () => `${harness.prefix}:wake-ups`

  it('answers a ping with its milliseconds', async () => {
    const queues = await open()
    let ms: number | null = null
    await until(async () => {
      const answer = await queues.ping()
      if (answer.ok) ms = answer.ms
      return answer.ok
    }, 'an answer')
    expect(ms).toBeGreaterThan(0)
  })

  it('puts jobs of a higher priority first, those without one last', async () => {
    const queues = await open()
    for (const [id, priority] of [['none'], ['low', 1], ['high', 100], ['beyond', 1000]] as const)
      await queues.submit(id, {}, priority === undefined ? {} : { priority })
    const waiting = await plainClient(intakeQueueName).getPrioritized()
    expect(waiting.map(({ id }) => id)).toEqual(['high', 'beyond', 'low', 'none'])
  })

  it('skips what is no wake-up', async () => {
    const queues = await open()
    const heard: string[] = []
    await queues.onWakeUp(async ({ run_id }) => void heard.push(run_id), { concurrency: 1 })
    for (const other of ['{"run_id":7}', 'text']) await harness.admin.zadd(key(), 0, other)
    await queues.wake(wakeUp('good'))
    await until(() => heard.length === 1, 'the good wake-up')
    for (const data of ['{"run_id":7}', 'text'])
      expect(logged).toContainEqual(expect.objectContaining({ level: 'warn', data: { data } }))
  })

  it('keeps the wake-ups that have waited for the longest where there are too many', async () => {
    const queues = await open()
    const full = 100_000
    for (let from = 0; from < full; from += 10_000)
      await harness.admin.zadd(
        key(),
        ...Array.from({ length: 20_000 }, (_, at) => (at % 2 ? `${from + (at >> 1)}` : from)),
      )
    await queues.wakeMany([wakeUp('one'), wakeUp('more')])
    expect(await harness.admin.zcard(key())).toBe(full)
    expect(await harness.admin.zscore(key(), JSON.stringify(wakeUp('more')))).toBeNull()
  })

  it('sends the hints of a channel that no process listened to once one does', async () => {
    const hints = await openHints()
    const heard: string[] = []
    for (const message of ['one', 'two']) hints.publish('steps', message, true)
    await hints.subscribe('steps', (message) => void heard.push(message))
    await until(() => {
      hints.publish('steps', 'late', true)
      return heard.includes('late')
    }, 'a hint')
  })

  it('refuses the job ids that BullMQ refuses, and takes all others', async () => {
    const queues = await open()
    const client = plainClient(intakeQueueName)
    const ids = [
      '12',
      '-3',
      '0',
      'a:b',
      'a:b:c:d',
      '0:b:c',
      '007',
      '1.5',
      'a:b:c',
      'ö ☃',
      'x'.repeat(255),
      '0x10',
      '1e3',
    ]
    for (const id of ids) {
      const bull = await client.add('run', {}, { jobId: id, delay: 60_000 }).then(
        () => 'taken',
        () => 'refused',
      )
      const mason = await queues.submit(id, {}).then(
        () => 'taken',
        (error) => (error.code === 'invalid_request' ? 'refused' : error),
      )
      expect([id, mason]).toEqual([id, bull])
    }
  })

  it('keeps nothing of a wake-up that was handled', async () => {
    const queues = await open()
    let handled = 0
    await queues.onWakeUp(async () => void handled++, { concurrency: 1 })
    await queues.wake(wakeUp('run'))
    await until(() => handled === 1, 'the wake-up')
    await queues.close()
    expect(await harness.admin.exists(key())).toBe(0)
  })
}

function processSuite(harness: Harness) {
  const { open } = scope(harness)

  it('answers a ping until it is closed', async () => {
    const queues = await open()
    expect(await queues.ping()).toEqual({ ok: true, ms: 0 })
    await queues.close()
    expect(await queues.ping()).toMatchObject({ ok: false })
  })

  it('has no public queue', async () => {
    const queues = await open()
    expect(queues.driver).toBeNull()
    await expect(queues.submit('job', {})).rejects.toMatchObject({ code: 'queue_unavailable' })
  })

  it('keeps a wake-up that comes while its run is handled, and one of several', async () => {
    const queues = await open()
    const heard: string[] = []
    const { open: finish, opened: finished } = gate()
    await queues.onWakeUp(
      async ({ run_id }) => {
        heard.push(run_id)
        await finished
      },
      { concurrency: 1 },
    )
    await queues.wake(wakeUp('a'))
    await until(() => heard.length === 1, 'the first')
    for (const id of ['a', 'a', 'b']) await queues.wake(wakeUp(id))
    finish()
    await until(() => heard.length === 3, 'the others')
    expect(heard).toEqual(['a', 'a', 'b'])
  })

  it('leaves room for other work where a handler wakes its own run again and again', async () => {
    const queues = await open()
    let handled = 0
    let otherWork = false
    await queues.onWakeUp(
      async (same) => {
        handled++
        if (!otherWork) await queues.wake(same)
      },
      { concurrency: 4 },
    )
    await queues.wake(wakeUp('busy'))
    await until(() => handled > 100, 'many turns')
    setTimeout(() => {
      otherWork = true
    }, 1)
    await until(() => otherWork, 'a timer')
  })
}

describe('queues, embedded', () => {
  portSuite(embedded())
  processSuite(embedded())
})

describe.skipIf(redisUrl === undefined)('queues on Redis (needs TEST_REDIS_URL)', () => {
  portSuite(served(redisUrl ?? ''))
  redisSuite(served(redisUrl ?? ''))
})
