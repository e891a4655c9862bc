import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { ensureBusiness } from '../../src/accounts/businesses.ts'
import type { Feed } from '../../src/engine/events/feed.ts'
import { readActionRows } from '../../src/engine/runs/run-queries.ts'
import type { ServiceFactories } from '../../src/engine/runs/run-services.ts'
import { cancelRun } from '../../src/engine/runs/settlement.ts'
import { createWorker } from '../../src/engine/worker/worker.ts'
import { leadIntake } from '../../src/features/intake/intake-leader.ts'
import { acquireIntake, LeaseLostError, renewIntake } from '../../src/features/intake/intake-lease.ts'
import type { IntakeQueue } from '../../src/features/intake/intake-queue.ts'
import type { Graph } from '../../src/graph/build.ts'
import { sendCallEffect } from '../../src/graph/call-effect.ts'
import type { LiveRun } from '../../src/graph/live-run.ts'
import { noScenarios } from '../../src/graph/scenario-defaults.ts'
import type { Database } from '../../src/infra/database/database.ts'
import { silentLog } from '../../src/infra/lib/silent-log.ts'
import { systemClock } from '../../src/infra/lib/system-clock.ts'
import { isMasonError } from '../../src/state/errors.ts'
import { foldActions } from '../../src/state/fold.ts'
import type { Clock } from '../../src/state/ports/clock.ts'
import type { EffectRequest } from '../../src/state/ports/effects.ts'
import type { Log } from '../../src/state/ports/log.ts'
import type { SqlValues } from '../../src/state/ports/sql.ts'
import { createFakeQueue, openTestIntake } from '../../test/support/intake.ts'
import { admitRun } from '../../test/support/runs.ts'
import { type Actor, createActor } from './actor.ts'

const tenant = 'b'
/** No lease ends by itself here. */
const leaseMs = 3_600_000

export type EffectClass = EffectRequest['class']
/** A connection for each who takes part, and one to look on. */
export type Connections = { first: Database; second: Database; observer: Database }

/** One play: runs, a provider, and those who take part, from an empty database. */
export const openStage = async (
  { first, second, observer }: Connections,
  { runs = 1, effect = 'keyed' }: { runs?: number; effect?: EffectClass } = {},
) => {
  for (const table of ['outbox', 'actions', 'sessions', 'idempotency', 'recovered_jobs'])
    await observer.query(`DELETE FROM ${table}`)
  await observer.query(`UPDATE intake_lease SET lease_until = '-infinity'`)
  await ensureBusiness(observer, tenant)
  const ids: string[] = []
  for (let turn = 1; turn <= runs; turn++) {
    const { run } = await admitRun(observer, tenant, { prompt: `${turn}`, user_id: 'u', session_id: 's' })
    ids.push(run.id)
  }
  const provider = createProvider(effect)
  const queue = createFakeQueue()
  let sent = 0
  const steps: string[] = []
  const wrong: string[] = []
  const log: Log = { ...silentLog, error: (details) => void wrong.push(JSON.stringify(details)) }
  const cancelPolls: (() => Promise<void>)[] = []
  const closing: (() => Promise<void>)[] = []

  const openWorker = (name: string, database: Database): { actor: Actor; freeze(): void } => {
    let aheadMs = 0
    const clock: Clock = {
      now: () => new Date(systemClock.now().getTime() + aheadMs),
      monotonicMs: () => systemClock.monotonicMs() + aheadMs,
      sleep: systemClock.sleep,
    }
    const watches = new Set<() => void>()
    const polls = new Set<Promise<unknown>>()
    let isTold = false
    const feed = {
      onCancel: (watch: () => void) => {
        watches.add(watch)
        return () => void watches.delete(watch)
      },
      ...{ publishChange() {}, publishDelta() {}, publishPaymentWork() {} },
    } as unknown as Feed
    /** Of what a worker does by a timer only the look for cancel requests takes part, when it hears of one. */
    const withoutTimers = (watched: Database): Database => ({
      ...watched,
      query<Row>(text: string, values?: SqlValues, options?: { timeoutMs?: number }) {
        const isPoll = text.includes('AS is_lost')
        if (/(INTO|FROM) workers/.test(text) || (isPoll && !isTold)) return Promise.resolve({ rows: [] })
        const answer = watched.query<Row>(text, values, options)
        if (isPoll) polls.add(answer)
        return answer
      },
    })
    const actor: Actor = createActor(name, async () => {
      await (await worker.offer(0))?.ended
    })
    const worker = createWorker({
      ...{ database: withoutTimers(actor.watch(database)), feed, clock, log, workerId: name },
      ...{ graph: createGraph(actor, provider), scenarios: noScenarios },
      services: { clock: () => clock, log: () => log } as unknown as ServiceFactories,
      ...{ leaseMs, concurrency: 1, maxRuns: 1, wake() {} },
      onRunReleased: (run, exit) => void (exit === 'ended' && compare(run)),
    })
    cancelPolls.push(async () => {
      isTold = true
      for (const watch of watches) watch()
      await Promise.all(polls)
      await nextTurn()
      isTold = false
    })
    closing.push(() => worker.close())
    return {
      actor,
      /** As if the process had been stopped for longer than its lease: both clocks have gone on. */
      freeze() {
        aheadMs += leaseMs
      },
    }
  }

  const checks: Promise<void>[] = []
  /** What a worker holds at the end is what the rows say. */
  const compare = (run: LiveRun): void => {
    const { session_id, turn } = run.claimed
    const held = run.state
    checks.push(
      readActionRows(observer, tenant, session_id, turn).then((rows) => {
        if (!isDeepStrictEqual(foldActions(rows), held))
          wrong.push('a worker ended a run with another state than its rows')
      }),
    )
  }

  /** Lets one go on to its next point, to its end, or to where it waits for a lock that another holds. */
  const advance = async (actor: Actor, point: string | null): Promise<void> => {
    steps.push(`${actor.name} to ${point ?? 'its end'}`)
    actor.goTo(point)
    while (!actor.isStill) {
      await Promise.race([actor.still(), pause(5)])
      if (!actor.isStill && (await isBlocked())) {
        steps.push(`${actor.name} waits for a lock`)
        return
      }
    }
    await actor.still()
  }

  const isBlocked = async (): Promise<boolean> => {
    const { rows } = await observer.query(
      `SELECT FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE NOT l.granted AND a.datname = current_database() LIMIT 1`,
    )
    return rows.length > 0
  }

  return {
    ids,
    provider,
    steps,
    advance,
    worker: (which: 'A' | 'B' | 'C') => openWorker(`worker ${which}`, which === 'A' ? first : second),
    /** Cancels the first run, and tells the workers. `refused`: the run has ended. */
    canceller() {
      const found = { refused: false }
      const actor: Actor = createActor('the canceller', async () => {
        try {
          await cancelRun(actor.watch(second), tenant, ids[0] ?? '', 'enough')
        } catch (error) {
          if (!isMasonError(error, 'run_ended')) throw error
          found.refused = true
        }
        for (const poll of cancelPolls) await poll()
      })
      return { actor, found }
    },
    /** Sends the next job of a session to the public queue. */
    send(): void {
      const prompt = `${++sent}`
      const data = { prompt, user_id: 'u', session_id: 'q', business_id: tenant }
      queue.add({ id: `job ${prompt}`, name: 'run', data })
    },
    /** A term of the intake, until no job is left; none while another one leads. It takes part before and after each commit. */
    leader(which: 'A' | 'B'): Actor {
      const actor: Actor = createActor(`leader ${which}`, async () => {
        const epoch = await acquireIntake(observer, which)
        if (epoch === null) return
        await renewIntake(observer, epoch, leaseMs)
        // what it does at once comes one after the other, and stands still with it
        let held = Promise.resolve<unknown>(null)
        const reach = (point: string): Promise<unknown> => (held = held.then(() => actor.reached(point)))
        const own = which === 'A' ? first : second
        const database = actor.watch({
          ...own,
          query: (...statement) => held.then(() => own.query(...statement)) as never,
          asBusiness: (...work) => reach('before-commit').then(() => own.asBusiness(...work)) as never,
        })
        const opened = queue.open(() => true)
        const watched: IntakeQueue = {
          ...opened,
          isOurs: () => held.then(() => true),
          async take(wait) {
            const job = await opened.take(wait)
            if (job) await reach('after-pop')
            return job
          },
          end: (id, outcome) => reach('before-ack').then(() => opened.end(id, outcome)),
        }
        const isOver = (): boolean => queue.waiting.length + queue.taken.length === 0
        const term = { epoch, isOver, workerStops: AbortSignal.abort() }
        const intake = openTestIntake(database)
        await leadIntake(watched, term, { database, intake, clock: systemClock, log }, () => {}).catch(
          (error: unknown) => {
            if (!(error instanceof LeaseLostError)) throw error
          },
        )
      })
      return actor
    },
    async endIntakeLease(): Promise<void> {
      steps.push('the lease of the intake ends')
      await observer.query(`UPDATE intake_lease SET lease_until = '-infinity'`)
    },
    /** What is wrong with the turns of the jobs that were sent. */
    async judgeTurns(): Promise<string[]> {
      const { rows } = await observer.query<{ job: string; run: string }>(
        `SELECT 'job ' || (q.request->>'prompt') AS job, run_id AS run FROM runs r JOIN run_requests q USING (tenant, run_id)
         WHERE r.session_id = 'q' ORDER BY r.turn`,
      )
      const jobs = Array.from({ length: sent }, (_, at) => `job ${at + 1}`)
      const ends = [...queue.outcomes]
      const isRight =
        rows.map(({ job }) => job).join() === jobs.join() &&
        rows.every(({ job, run }) =>
          isDeepStrictEqual(queue.outcomes.get(job), { run_id: run, status: 'queued' }),
        )
      return isRight
        ? []
        : [`the turns are ${JSON.stringify(rows)}, and the jobs ended with ${JSON.stringify(ends)}`]
    },
    /** Lets all go on to their ends, in turn where one waits for a lock of another. */
    async finish(...actors: Actor[]): Promise<void> {
      while (actors.some(({ hasEnded }) => !hasEnded))
        for (const actor of actors) if (!actor.hasEnded) await advance(actor, null)
    },
    endLeases: async () => {
      steps.push('the leases end')
      await observer.query(
        `UPDATE runs SET lease_until = clock_timestamp() - interval '1 second' WHERE status = 'running'`,
      )
    },
    /** What is wrong with the runs by now, all of which must have ended. */
    async judge(): Promise<string[]> {
      await Promise.all(checks)
      return [...wrong, ...(await findFaults(observer, provider))]
    },
    close: () => Promise.all(closing.map((close) => close())),
  }
}

export type Stage = Awaited<ReturnType<typeof openStage>>
type Provider = ReturnType<typeof createProvider>

/** Acts once for a key where it knows keys, and each time where it does not. */
const createProvider = (effectClass: EffectClass) => {
  const bodies = new Map<string, Set<string>>()
  let acts = 0
  return {
    effectClass,
    get acts(): number {
      return acts
    },
    bodies,
    act(body: string, key: string): string {
      const known = bodies.get(key)
      if (effectClass !== 'keyed' || !known) acts++
      bodies.set(key, (known ?? new Set()).add(body))
      return 'done'
    },
  }
}

/** The shortest graph with all kinds of writes: two actions, a side effect with its action, and the end. */
const createGraph = (actor: Actor, provider: Provider): Graph => {
  const append = (run: LiveRun, summary: string, effect: Parameters<LiveRun['append']>[4] = null) =>
    run.append(run.openVisit(), 'load-session', { summary, next: [] }, {}, effect)
  const pay = async (run: LiveRun, signal: AbortSignal): Promise<void> => {
    const request: EffectRequest = {
      ...{ class: provider.effectClass, request: `paid by ${actor.name}`, windowMs: leaseMs },
      async send(body, key, checkLease) {
        await actor.reached('before-send')
        checkLease()
        const response = provider.act(body, key)
        await actor.reached('after-send')
        return response
      },
      ...(provider.effectClass === 'queryable' && {
        lookup: async (key: string) => (provider.bodies.has(key) ? 'done' : null),
      }),
    }
    try {
      const call = { plan_seq: run.actions[1]?.id ?? 0, index: 0 }
      await append(run, 'paid', await sendCallEffect(run.log, call, request, async () => false, signal))
    } catch (error) {
      if (!isMasonError(error, 'effect_unknown')) throw error
      await append(run, 'unknown')
    }
  }
  const graph: Pick<Graph, 'version' | 'missing' | 'walk' | 'visit'> = {
    version: 'orders',
    missing: () => null,
    async walk({ run, signal }) {
      for (const summary of ['begins', 'plans'].slice(run.actions.length)) {
        signal.throwIfAborted()
        await append(run, summary)
      }
      signal.throwIfAborted()
      if (run.actions.length === 2) await pay(run, signal)
      run.outcome = { status: 'completed', reason: 'answered' }
    },
    async visit(name, { run }) {
      if (name !== 'end') await append(run, 'begins')
      else if (run.outcome) await run.finish(run.openVisit(), { summary: 'ends' }, {}, run.outcome)
    },
  }
  return graph as Graph
}

type RunFacts = {
  status: string
  leased: boolean
  epoch: number
  results: number
  next: number
  actions: { seq: number; epoch: number; summary: string }[]
  effects: string[]
}

const readRuns = async (sql: Database): Promise<RunFacts[]> => {
  const { rows } = await sql.query<RunFacts>(
    `SELECT status, lease_until IS NOT NULL AS leased, epoch, next_seq - first_seq AS next,
       (SELECT count(*)::int FROM run_results o WHERE (o.tenant, o.run_id) = (r.tenant, r.run_id)) AS results,
       (SELECT COALESCE(json_agg(json_build_object('seq', a.seq - r.first_seq, 'epoch', a.epoch, 'summary', a.body->>'summary') ORDER BY a.seq), '[]')
        FROM actions a WHERE (a.tenant, a.run_id) = (r.tenant, r.run_id)) AS actions,
       (SELECT COALESCE(json_agg(e.status), '[]') FROM effects e WHERE (e.tenant, e.run_id) = (r.tenant, r.run_id)) AS effects
     FROM runs r ORDER BY turn`,
  )
  return rows
}

const findFaults = async (sql: Database, provider: Provider): Promise<string[]> => {
  const faults: string[] = []
  const runs = await readRuns(sql)
  let payments = 0
  for (const run of runs) {
    const expect = (holds: boolean, what: string): void => {
      if (!holds) faults.push(`${what}: ${JSON.stringify(run)}`)
    }
    const { actions } = run
    const summaries = actions.map(({ summary }) => summary)
    expect(run.status === 'completed' || run.status === 'cancelled', 'a run has not ended')
    expect(!run.leased && run.results === 1, 'a run that ended has a lease, or not one result')
    expect(
      actions.every(({ seq }, index) => seq === index),
      'actions have gaps',
    )
    expect(actions.length === (run.next ?? 0), 'the next id is not that after the last action')
    expect(
      actions.every(({ epoch }, index) => epoch >= (actions[index - 1]?.epoch ?? 1) && epoch <= run.epoch),
      'a worker wrote after another had the run',
    )
    expect(new Set(summaries).size === summaries.length, 'an action is there twice')
    if (run.status === 'completed')
      expect(
        ['begins plans paid ends', 'begins plans unknown ends'].includes(summaries.join(' ')),
        'actions are missing',
      )
    if (summaries.includes('paid')) {
      payments++
      expect(run.effects.join() === 'succeeded', 'a side effect is not settled with its action')
    }
    if (summaries.includes('unknown'))
      expect(
        provider.effectClass === 'manual',
        'a side effect was given up that could be looked up or sent again',
      )
  }
  if (provider.acts < payments || provider.acts > provider.bodies.size || provider.bodies.size > runs.length)
    faults.push(
      `the provider acted ${provider.acts} times, for ${payments} payments under ${provider.bodies.size} keys`,
    )
  for (const bodies of provider.bodies.values())
    if (bodies.size > 1) faults.push(`one key came with ${bodies.size} bodies`)
  return faults
}
