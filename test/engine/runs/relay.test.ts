// backends: either
// asserts: invariants

import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, describe, expect, onTestFinished, vi } from 'vitest'
import { openFeed } from '../../../src/engine/events/feed.ts'
import { reconcileRuns, relayWakeUps } from '../../../src/engine/runs/relay.ts'
import { failPoisonedRun, handBackRun } from '../../../src/engine/runs/release.ts'
import { createWorker } from '../../../src/engine/worker/worker.ts'
import type { Graph } from '../../../src/graph/build.ts'
import { noScenarios } from '../../../src/graph/scenario-defaults.ts'
import type { Database } from '../../../src/infra/database/database.ts'
import { systemClock } from '../../../src/infra/lib/system-clock.ts'
import { openHints } from '../../../src/infra/queue/hints.ts'
import type { WakeUp } from '../../../src/infra/queue/jobs.ts'
import type { Queues } from '../../../src/infra/queue/queues.ts'
import { MasonError } from '../../../src/state/errors.ts'
import type { Clock } from '../../../src/state/ports/clock.ts'
import type { Log } from '../../../src/state/ports/log.ts'
import type { Models } from '../../../src/state/ports/models.ts'
import type { Backend } from '../../support/backend.ts'
import { deferred } from '../../support/deferred.ts'
import type { FakeModel } from '../../support/fake-model/fake-model.ts'
import { test } from '../../support/integration-test.ts'
import { checkInvariants } from '../../support/invariants.ts'
import { noOpModels } from '../../support/no-op-models.ts'
import { callTool, graphWith } from '../../support/parts.ts'
import {
  appendAction,
  claim,
  count,
  endLease,
  entry,
  mustClaim,
  openWithDatabase,
  rowOf,
  submitTo,
  until,
} from '../../support/runs.ts'
import { fakeServices, sharedServices } from '../../support/services.ts'
import { deadline, eventsOf, fakeModels, nodesOf } from '../../support/test-runtime.ts'

let backend: Backend
let model: FakeModel
/** Without a worker, for the tests that need none. */
let idle: Awaited<ReturnType<typeof openDeaf>>

test.beforeAll(async ({ backend: b, model: m }) => {
  ;[backend, model] = [b, m]
  idle = await openDeaf({ worker: false })
  return () => idle.runtime.close()
})
afterEach(async () => {
  idle.queues.state.down = false
  idle.queues.state.woken.length = 0
  for (const table of ['outbox', 'actions', 'sessions', 'idempotency', 'workers'])
    await idle.database.query(`DELETE FROM ${table}`)
})

const warnings: { data: Record<string, unknown>; message: string }[] = []
const log: Log = {
  debug() {},
  info() {},
  warn: (data, message) => void warnings.push({ data, message }),
  error() {},
}

/** A queue that records wake-ups and delivers none; `down` makes it fail. */
const deaf = (queues: Queues) => {
  const woken: WakeUp[] = []
  const state = { woken, down: false }
  const note = (wakeUps: readonly WakeUp[]): void => {
    if (state.down) throw new MasonError('queue_unavailable', 'the queue is unavailable')
    woken.push(...wakeUps)
  }
  const stub: Queues = {
    ...queues,
    wake: async (wakeUp) => note([wakeUp]),
    wakeMany: async (wakeUps) => note(wakeUps),
  }
  return { stub, state }
}

const openDeaf = async (options: { worker: boolean; leaseMs?: number }) => {
  let made: ReturnType<typeof deaf> | null = null
  const opened = await openWithDatabase(backend, {
    ...options,
    models: fakeModels(model.baseUrl),
    wrap: {
      queues(queues) {
        made = deaf(queues)
        return made.stub
      },
    },
  })
  return { ...opened, queues: made as unknown as ReturnType<typeof deaf> }
}

describe('when every wake-up is lost', () => {
  test('runs get done all the same, in a session one after the other', async () => {
    const { runtime } = await openDeaf({ worker: true, leaseMs: 600 })
    const api = runtime.of('default')
    const runs = []
    for (const at of [1, 2, 3])
      runs.push(await api.submit({ prompt: `${at}`, user_id: 'u1', ...(at < 3 && { session_id: 's' }) }))
    for (const { run } of runs) expect((await api.wait(run.id, deadline())).status).toBe('completed')
    await runtime.close()
  })

  test('a question that was answered goes on, and so does a run whose worker died', async () => {
    const { runtime, database } = await openDeaf({ worker: false })
    const { id } = await submitTo(database, 'default')
    const dead = await mustClaim(database, 'dead')
    await appendAction(database, dead, entry(1, { action: { next: ['user-context'] } }))
    await endLease(database, id)
    await runtime.startWorker()
    expect((await runtime.of('default').wait(id, deadline())).status).toBe('completed')
    const state = await runtime.stateOf(id)
    expect(nodesOf(state)).toEqual(['load-session', 'user-context', 'planner', 'answer', 'end'])
    await runtime.close()
  })
})

describe('the outbox', () => {
  test('holds a wake-up until the queue has it, also while the queue is down', async () => {
    const { database, queues } = idle
    const { id } = await submitTo(database, 'a')
    const later = await submitTo(database, 'a', { delay_ms: 60_000 })
    queues.state.down = true
    await expect(relayWakeUps(database, queues.stub)).rejects.toMatchObject({ code: 'queue_unavailable' })
    expect(await count(database, 'outbox')).toBe(2)
    queues.state.down = false
    expect(await relayWakeUps(database, queues.stub)).toBe(1)
    expect(queues.state.woken).toEqual([{ run_id: id, business_id: 'a' }])
    expect(await relayWakeUps(database, queues.stub)).toBe(0)
    expect(await count(database, 'outbox WHERE run_id = $1', [later.id])).toBe(1)
  })

  test('loses its wake-up when the run is claimed: no worker is woken for nothing', async () => {
    const { database } = idle
    await submitTo(database, 'a')
    await mustClaim(database)
    expect(await count(database, 'outbox')).toBe(0)
  })
})

describe('the reconciler', () => {
  const look = (database: Database, queues: Queues) => reconcileRuns(database, queues, log, 60_000)

  test('wakes runs that are due and not claimed, and no others', async () => {
    const { database, queues } = idle
    const due = await submitTo(database, 'a', { session_id: 's' })
    await submitTo(database, 'a', { session_id: 's' })
    await submitTo(database, 'a', { delay_ms: 60_000 })
    await look(database, queues.stub)
    expect(queues.state.woken.map((wakeUp) => wakeUp.run_id)).toEqual([due.id])
    const claimed = await mustClaim(database)
    queues.state.woken.length = 0
    await look(database, queues.stub)
    expect(queues.state.woken).toEqual([])
    await endLease(database, claimed.run_id)
    await look(database, queues.stub)
    expect(queues.state.woken.map((wakeUp) => wakeUp.run_id)).toEqual([due.id])
  })

  test('fails a run that waited too long to be started, whose stream ends; one that was started never', async () => {
    const { runtime, database, queues } = idle
    const expire = () =>
      database.query(`UPDATE runs SET expires_at = clock_timestamp() - interval '1 second'`)
    const started = await submitTo(database, 'default', { session_id: 's' })
    await handBackRun(database, await mustClaim(database), 1)
    const { id } = await submitTo(database, 'default')
    const next = await submitTo(database, 'default', { session_id: 's' })
    await expire()
    await database.query(
      `UPDATE runs SET expires_at = clock_timestamp() + interval '1 hour' WHERE run_id = $1`,
      [next.id],
    )
    await Promise.all([look(database, queues.stub), look(database, queues.stub)])
    expect(await rowOf(database, started.id)).toMatchObject({ status: 'queued' })
    const api = runtime.of('default')
    expect(await api.run(id)).toMatchObject({ status: 'failed', error: { code: 'expired' } })
    expect((await eventsOf(api, id)).map(({ event }) => event)).toEqual(['status', 'done'])
    expect((await api.run(next.id))?.status).toBe('queued')
  })

  test('reports a dead worker once, and forgets it', async () => {
    const { database, queues } = idle
    await database.query(
      `INSERT INTO workers (worker_id, running, seen_at) VALUES ('silent', 3, clock_timestamp() - interval '1 hour'), ('there', 0, clock_timestamp())`,
    )
    warnings.length = 0
    await look(database, queues.stub)
    await look(database, queues.stub)
    expect(warnings.map(({ data }) => data)).toEqual([{ worker_id: 'silent', running: 3 }])
    expect(await count(database, 'workers')).toBe(1)
  })

  test('does the rest when one of its steps fails', async () => {
    const { database, queues } = idle
    const { id } = await submitTo(database, 'a')
    await database.query(`UPDATE runs SET expires_at = clock_timestamp() - interval '1 second'`)
    queues.state.down = true
    await look(database, queues.stub)
    expect((await rowOf(database, id)).status).toBe('failed')
  })

  test('drops keys after two days and none before', async () => {
    const { runtime, database, queues } = idle
    const api = runtime.of('default')
    for (const key of ['old', 'new']) await api.submit({ prompt: 'x', user_id: 'u1' }, key)
    await database.query(
      `UPDATE idempotency SET created_at = created_at - interval '49 hours' WHERE key = 'old'`,
    )
    await database.query(
      `UPDATE idempotency SET created_at = created_at - interval '25 hours' WHERE key = 'new'`,
    )
    await look(database, queues.stub)
    expect((await database.query('SELECT key FROM idempotency')).rows).toEqual([{ key: 'new' }])
  })
})

describe('poison', () => {
  test('a run that five workers took without one action fails, its neighbours are unharmed', async () => {
    const { runtime, database } = await openDeaf({ worker: false })
    const bad = await submitTo(database, 'default', { session_id: 's', priority: 100 })
    const after = await submitTo(database, 'default', { session_id: 's' })
    const other = await submitTo(database, 'default')
    for (let at = 1; at <= 5; at++) {
      expect(await claim(database, `dies ${at}`)).toMatchObject({ run_id: bad.id, stalls: at })
      await endLease(database, bad.id)
    }
    await runtime.startWorker({ concurrency: 1 })
    const api = runtime.of('default')
    expect(await api.wait(bad.id, deadline())).toMatchObject({ status: 'failed', error: { code: 'poison' } })
    for (const { id } of [after, other]) expect((await api.wait(id, deadline())).status).toBe('completed')
    const state = await runtime.stateOf(after.id)
    checkInvariants(state)
    expect(nodesOf(state, 0)).toEqual(['load-session', 'end'])
    await runtime.close()
  })

  test('a run whose session crashes its readers fails as well, also before its first action', async () => {
    const readable: { broken: boolean } = { broken: false }
    const { runtime, database } = await openWithDatabase(backend, {
      ...{ worker: false, models: fakeModels(model.baseUrl) },
      wrap: {
        database: (opened) => ({
          ...opened,
          async query<Row>(text: string, values?: readonly unknown[]) {
            if (readable.broken && text.includes('octet_length(body'))
              throw new Error('no memory is left for this session')
            return opened.query<Row>(text, values)
          },
        }),
      },
    })
    const failed = { status: 'failed', reason: 'x', error: { code: 'x', message: 'x' } } as const
    await submitTo(database, 'default', { session_id: 'huge' })
    expect(await failPoisonedRun(database, await mustClaim(database), failed)).toMatchObject({
      outcome: failed,
    })
    const bad = await submitTo(database, 'default', {
      ...{ session_id: 'huge', prompt: 'again', output: { style: 'short' } },
    })
    for (let at = 1; at <= 5; at++) {
      expect(await claim(database, `dies ${at}`)).toMatchObject({ run_id: bad.id, stalls: at })
      await endLease(database, bad.id)
    }
    readable.broken = true
    await runtime.startWorker({ concurrency: 1 })
    const api = runtime.of('default')
    expect(await api.wait(bad.id, deadline())).toMatchObject({ status: 'failed', error: { code: 'poison' } })
    const state = await runtime.stateOf(bad.id)
    checkInvariants(state)
    expect(nodesOf(state)).toEqual(['load-session', 'end'])
    expect(state).toMatchObject({ prompts: ['hello', 'again'], output_style: 'short' })
    expect(state.chat_history.at(-1)).toEqual({ role: 'user', content: 'again', turn: 2 })
    await runtime.close()
  })
})

/** Workers that a test offers runs to itself, on one feed. */
const openWorkers = async (database: Database, graph: Graph, models: Models, clock = systemClock) => {
  const hints = await openHints({ kind: 'embedded', log })
  const feed = await openFeed({ sql: database, hints, clock: systemClock, log })
  const open = (workerId: string, concurrency: number, maxRuns = concurrency) =>
    createWorker({
      maxRuns,
      ...{ database, feed, graph, scenarios: noScenarios },
      services: sharedServices(fakeServices({ models, clock: systemClock, log })),
      ...{ clock, log, workerId, leaseMs: 30_000, concurrency, wake() {} },
    })
  return { feed, open }
}

/** A database that tells of each claim as it is sent, and of its answer before the worker has it. */
const watchClaims = (
  database: Database,
  { onSend = () => {}, onAnswer = async () => {} }: { onSend?: () => void; onAnswer?: () => Promise<void> },
): Database => {
  const watch = async <T>(text: string, send: () => Promise<T>): Promise<T> => {
    if (!text.includes('UPDATE businesses b SET claims')) return send()
    onSend()
    const answer = await send()
    await onAnswer()
    return answer
  }
  return {
    ...database,
    query: (text, values, options) => watch(text, () => database.query(text, values, options)),
    transaction: (work, scope) =>
      database.transaction(
        (sql) => work({ query: (text, values) => watch(text, () => sql.query(text, values)) }),
        scope,
      ),
  }
}

describe('a worker', () => {
  test('asks the database nothing at a wake-up for a run that it has, or that ended here', async () => {
    model.reset()
    model.script({ planner: [{ hold: true, text: 'late' }, { text: 'Done.' }] })
    const models = fakeModels(model.baseUrl)
    const { runtime, database } = await openWithDatabase(backend, { models, worker: false })
    let claims = 0
    const counted = watchClaims(database, {
      onSend: () => {
        claims++
      },
    })
    const { feed, open } = await openWorkers(counted, runtime.graph, models)
    const worker = open('one', 4)
    const { id } = await submitTo(database, 'default')
    const run = { tenant: 'default', run_id: id }
    const working = worker.offer(0, run).then((offered) => offered?.ended)
    await until('the model call', () => model.held() === 1)
    expect(claims).toBe(1)
    expect(await worker.offer(0, run)).not.toBe(null)
    expect(claims).toBe(1)
    model.release()
    await working
    // the one after its end, which finds nothing
    expect(claims).toBe(2)
    expect(await worker.offer(0, run)).not.toBe(null)
    expect(claims).toBe(2)
    const other = await submitTo(database, 'default')
    await (await worker.offer(0, { tenant: 'default', run_id: other.id }))?.ended
    expect(await rowOf(database, other.id)).toMatchObject({ status: 'completed' })
    await worker.close()
    await feed.close()
    await runtime.close()
  })

  test('asks once for what is due however often it polls meanwhile, and misses nothing', async () => {
    model.reset()
    model.script({ planner: [{ text: 'Done.' }] })
    const models = fakeModels(model.baseUrl)
    const { runtime, database } = await openWithDatabase(backend, { models, worker: false })
    const gate = deferred()
    let claims = 0
    const counted = watchClaims(database, {
      async onAnswer() {
        if (++claims === 1) await gate.promise
      },
    })
    const { feed, open } = await openWorkers(counted, runtime.graph, models)
    const worker = open('polled', 4)
    worker.poll()
    await until('the first claim, which finds nothing', () => claims === 1)
    const { id } = await submitTo(database, 'default')
    for (let n = 0; n < 5; n++) worker.poll()
    gate.resolve()
    await until('the run', async () => (await rowOf(database, id)).status === 'completed')
    // the second found it; a third followed at once and a fourth its end
    await worker.close()
    expect(claims).toBeLessThanOrEqual(4)
    await feed.close()
    await runtime.close()
  })
})

describe('a worker beside a flood', () => {
  test('asks the database nothing at a wake-up of a business whose begun runs wait for permits, and claims once they work', async () => {
    const quick = noOpModels()
    const [replied, stored] = [deferred(), deferred()]
    let asked = 0
    const models: Models = {
      ...quick,
      async call(request, signal) {
        asked++
        await replied.promise
        return quick.call(request, signal)
      },
    }
    const { runtime, database } = await openWithDatabase(backend, { models, worker: false })
    let claims = 0
    let storing = 0
    const watched = watchClaims(database, {
      onSend: () => {
        claims++
      },
    })
    const gated: Database = {
      ...watched,
      async query<Row>(text: string, values?: readonly unknown[], options = {}) {
        if (text.includes('INSERT INTO actions') && asked > 0) {
          storing++
          await stored.promise
        }
        return watched.query<Row>(text, values, options)
      },
    }
    const clock: Clock = { ...systemClock, sleep: async () => {} }
    const { feed, open } = await openWorkers(gated, runtime.graph, models, clock)
    // a visit keeps its permit, and no poll begins, however long this takes
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const soon = async (fact: () => boolean) => {
      while (!fact()) await nextTurn()
    }
    const worker = open('one', 1, 8)
    const offer = async () => {
      const { id } = await submitTo(database, 'default')
      return { id, offered: worker.offer(0, { tenant: 'default', run_id: id }) }
    }
    const waits = await offer()
    await soon(() => asked === 1)
    const works = await offer()
    await soon(() => storing === 1)
    replied.resolve()
    for (let turns = 0; turns < 20; turns++) await nextTurn()
    const before = claims
    const delayed = await offer()
    let answer: unknown = 'none'
    void delayed.offered.then((offered) => {
      answer = offered
    })
    for (let turns = 0; turns < 20; turns++) await nextTurn()
    expect([answer, claims]).toEqual([null, before])
    stored.resolve()
    vi.advanceTimersByTime(100)
    vi.useRealTimers()
    for (const { id } of [waits, works, delayed])
      await until('the end', async () => (await rowOf(database, id)).status === 'completed')
    await worker.close()
    await feed.close()
    await runtime.close()
  })

  test('claims the runs of a business that it held up, without another wake-up and while none has ended', async () => {
    const flood = 6
    model.reset()
    model.script(({ messages }) =>
      JSON.stringify(messages).includes('poison')
        ? { failure: { status: 500 } }
        : { hold: true, text: 'Done.' },
    )
    const models = fakeModels(model.baseUrl)
    const { runtime, database } = await openWithDatabase(backend, { models, worker: false })
    let ms = 0
    const clock: Clock = { ...systemClock, monotonicMs: () => ms }
    const { feed, open } = await openWorkers(database, runtime.graph, models, clock)
    const worker = open('one', 16)
    const poisonous = await submitTo(database, 'flood', { prompt: 'poison' })
    await (await worker.offer(0, { tenant: 'flood', run_id: poisonous.id }))?.ended
    expect(await count(database, 'run_outages')).toBe(1)
    const working: (Promise<void> | undefined)[] = []
    for (const tenant of ['other', ...Array<string>(flood).fill('flood')]) {
      const { id } = await submitTo(database, tenant)
      working.push((await worker.offer(0, { tenant, run_id: id }))?.ended)
    }
    await until('the model call of the other', () => model.held() === 1)
    // all of the flood, since time stands still since its last claim
    expect(await count(database, `runs WHERE tenant = 'flood' AND status = 'queued'`)).toBe(flood + 1)
    await until('all model calls', () => {
      ms += 50
      return model.held() === flood + 1
    })
    model.release()
    await Promise.all(working)
    const ended = `runs WHERE tenant IN ('other', 'flood') AND status = 'completed'`
    await until('the ends', async () => (await count(database, ended)) === flood + 1)
    await worker.close()
    await feed.close()
    await runtime.close()
  })
})

describe('a worker that is stopped', () => {
  test('in the middle of a side effect records it first: no person is asked whether it took place', async () => {
    const [sent, answer] = [deferred<void>(), deferred<string>()]
    const send = (): Promise<string> => {
      sent.resolve()
      return answer.promise
    }
    const orders = callTool(
      'orders',
      (_args, context) => context.effect({ class: 'manual', request: 'one', send }),
      false,
    )
    model.reset()
    model.script({ planner: [{ tool_calls: [{ name: 'orders', arguments: {} }] }, { text: 'Done.' }] })
    const models = fakeModels(model.baseUrl)
    const { runtime, database } = await openWithDatabase(backend, { models, worker: false })
    const { feed, open } = await openWorkers(database, await graphWith([orders]), models)
    const stopping = open('stopping', 1)
    const { id } = await submitTo(database, 'default')
    const working = stopping.offer(0).then((offered) => offered?.ended)
    await sent.promise
    const closing = stopping.close()
    answer.resolve('order 7')
    await Promise.all([closing, working])
    expect(await rowOf(database, id)).toMatchObject({ status: 'queued', stalls: 0 })
    expect(await count(database, `effects WHERE run_id = $1 AND status = 'succeeded'`, [id])).toBe(1)
    const next = open('next', 1)
    await (await next.offer(0))?.ended
    await next.close()
    await feed.close()
    expect(await runtime.of('default').run(id)).toMatchObject({ status: 'completed', answer: 'Done.' })
    const made = (await runtime.stateOf(id)).action_history[0]?.filter(({ node }) => node === 'orders')
    expect(made?.map(({ result }) => result.text)).toEqual(['order 7'])
    await runtime.close()
  })

  test('hands its runs back at once, for another to go on from the last action', async () => {
    model.reset()
    model.script({ planner: [{ hold: true, text: 'late' }, { text: 'Done.' }] })
    const models = fakeModels(model.baseUrl)
    const { runtime, database } = await openWithDatabase(backend, { models, worker: false })
    const { feed, open } = await openWorkers(database, runtime.graph, models)
    const worker = open('stopping', 2)
    const { id } = await submitTo(database, 'default')
    const working = worker.offer(0).then((offered) => offered?.ended)
    await until(
      'the model call',
      () => model.requests('planner').length > 0 && model.held() === 1 && model.open() === 1,
    )
    const before = await rowOf(database, id)
    await Promise.all([worker.close(), working])
    await feed.close()
    expect(await rowOf(database, id)).toMatchObject({
      ...{ status: 'queued', stalls: 0, epoch: before.epoch, lease_owner: null },
    })
    expect(await count(database, 'outbox WHERE run_id = $1', [id])).toBe(1)
    await until('the call is broken off', () => model.open() === 0)
    await runtime.startWorker()
    expect(await runtime.of('default').wait(id, deadline())).toMatchObject({
      status: 'completed',
      answer: 'Done.',
    })
    const state = await runtime.stateOf(id)
    checkInvariants(state)
    expect(nodesOf(state)).toEqual(['load-session', 'user-context', 'planner', 'answer', 'end'])
    await runtime.close()
  })
})
