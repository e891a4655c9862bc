import { ensureBusiness } from '../../src/accounts/businesses.ts'
import { answerInput } from '../../src/engine/runs/input-answers.ts'
import { reconcileRuns, relayWakeUps } from '../../src/engine/runs/relay.ts'
import { cancelRun } from '../../src/engine/runs/settlement.ts'
import { wakeWaitingRuns } from '../../src/engine/runs/waits.ts'
import type { Database } from '../../src/infra/database/database.ts'
import type { WakeUp } from '../../src/infra/queue/jobs.ts'
import type { Queues } from '../../src/infra/queue/queues.ts'
import { isMasonError } from '../../src/state/errors.ts'
import type { Log } from '../../src/state/ports/log.ts'
import { contentHash } from '../../src/state/text/content-hash.ts'
import { admitRun } from '../../test/support/runs.ts'
import { moves, runnable } from './protocol.ts'
import { createProvider, type Provider } from './provider.ts'
import { type Actor, createStage, type Stage, Violation } from './stage.ts'
import type { ProtocolState } from './state.ts'
import type { Tape } from './tape.ts'
import { work } from './worker.ts'

const tenant = 'b'
const silent: Log = { debug() {}, info() {}, warn() {}, error() {} }
const endings = new Set(['completed', 'failed', 'cancelled'])

export type World = {
  stage: Stage
  provider: Provider
  queue: ReturnType<typeof createQueue>
  /** Runs of the business that may be at work at once. */
  limit: number
  /** Counts up. */
  number(): number
}

/** A queue in memory that may forget everything. */
const createQueue = (stage: Stage) => {
  const wakeUps: WakeUp[] = []
  const wakeMany = async (woken: readonly WakeUp[]): Promise<void> => void wakeUps.push(...woken)
  return {
    wakeUps,
    stub: { wakeMany } as unknown as Queues,
    async takeWakeUp(actor: Actor): Promise<void> {
      await stage.rest(actor, 'takes a wake-up', () => wakeUps.length > 0)
      wakeUps.shift()
    },
  }
}

/** Plays one tape from an empty database to the end of every run. Throws `Violation`. */
export const playTape = async (database: Database, tape: Tape): Promise<Stage> => {
  for (const table of ['outbox', 'actions', 'sessions', 'idempotency', 'businesses'])
    await database.query(`DELETE FROM ${table}`)
  await ensureBusiness(database, tenant)
  const limit = [Number.POSITIVE_INFINITY, 1, 2][tape.next()[0] % 3] ?? 1
  if (Number.isFinite(limit)) await database.query('UPDATE businesses SET max_concurrency = $1', [limit])
  const stage = createStage(database, tape)
  let numbers = 0
  const world: World = {
    ...{ stage, provider: createProvider(stage), queue: createQueue(stage), limit },
    number: () => ++numbers,
  }
  try {
    cast(world)
    await stage.play()
    await drain(world)
  } catch (error) {
    const what = error instanceof Violation ? error.message : String((error as Error)?.stack ?? error)
    throw new Violation(`${what}\nafter\n  ${stage.trace.join('\n  ')}`, { cause: error })
  }
  return stage
}

const cast = (world: World): void => {
  const { stage } = world
  // 1 comes twice under its key, and once with another body
  for (const [name, key, prompt, session] of [
    ['client 1', 'k1', '1', 's1'],
    ['client 1 again', 'k1', '1', 's1'],
    ['client 1 otherwise', 'k1', '4', 's1'],
    ['client 2', 'k2', '2', 's1'],
    ['client 3', 'k3', '3', 's2'],
  ] as const)
    stage.start(name, submit(world, key, prompt, session))
  for (const name of ['worker A', 'worker B', 'worker C']) stage.start(name, work(world))
  stage.start('relay', again(world, 'relays', relayOnce))
  stage.start('reconciler', again(world, 'reconciles', reconcileOnce))
  stage.start('person', again(world, 'answers', answerOne))
  stage.start('ender', again(world, 'ends', endOne))
  stage.start('waker', again(world, 'wakes', wakeOnce))
  stage.start('canceller', again(world, 'cancels', cancelOne))
  stage.start('time', async (actor) => {
    for (;;)
      await stage.rest(
        actor,
        'passes',
        () => true,
        () => passTime(world),
      )
  })
}

const again =
  (world: World, what: string, once: (world: World, actor: Actor) => Promise<void>) =>
  async (actor: Actor) => {
    for (;;) {
      await world.stage.rest(actor, what, () => true)
      await once(world, actor).catch((error: unknown) => {
        if (!isMasonError(error, 'database_unavailable')) throw error
      })
    }
  }

/** Submits until it has an answer, under one key; every answer to a key names the one run. */
const submit =
  ({ stage }: World, key: string, prompt: string, session: string) =>
  async (actor: Actor): Promise<void> => {
    const request = { prompt, user_id: 'u', session_id: session }
    const as = { session, key, hash: contentHash(request) }
    const admits = (state: ProtocolState, seen: ProtocolState) =>
      Object.keys(seen.runs)
        .filter((id) => !state.runs[id])
        .map((id) => moves.admit(state, id, as))
    for (;;)
      try {
        const { run } = await stage.perform(actor, 'submits', admits, (database) =>
          admitRun(database, tenant, request, { route: 'runs', key }),
        )
        const kept = stage.state.keys[key]
        if (kept?.run !== run.id || kept.hash !== as.hash) stage.fail(`${actor.name} was given ${run.id}`)
        return
      } catch (error) {
        if (isMasonError(error, 'database_unavailable')) continue
        if (!isMasonError(error, 'idempotency_conflict')) throw error
        if ((stage.state.keys[key]?.hash ?? as.hash) === as.hash)
          stage.fail(`${actor.name} was refused its own key`)
        return
      }
  }

const relayOnce = async ({ stage, queue }: World, actor: Actor): Promise<void> => {
  let due: number[] = []
  const relays = (state: ProtocolState) => [moves.relayed(state, due)]
  await stage.perform(actor, 'relays', relays, async (database) => {
    const wakeMany = (woken: readonly WakeUp[]): Promise<void> => {
      const dueWakeUps = stage.state.wakeUps.filter((wakeUp) => wakeUp.due)
      due = dueWakeUps.map(({ id }) => id)
      expectSame(
        stage,
        'the relay woke',
        woken,
        dueWakeUps.map(({ run }) => run),
      )
      return queue.stub.wakeMany(woken)
    }
    await relayWakeUps(database, { wakeMany } as unknown as Queues)
  })
}

const reconcileOnce = async ({ stage, queue }: World, actor: Actor): Promise<void> => {
  const expires = (state: ProtocolState) => [moves.expireQuestions(state)]
  await stage.perform(actor, 'reconciles', expires, async (database) => {
    const wakeMany = (woken: readonly WakeUp[]): Promise<void> => {
      expectSame(stage, 'the reconciler woke', woken, runnable(stage.state))
      return queue.stub.wakeMany(woken)
    }
    await reconcileRuns(database, { wakeMany } as unknown as Queues, silent, 3_600_000)
  })
}

const expectSame = (
  stage: Stage,
  what: string,
  woken: readonly WakeUp[],
  expected: readonly string[],
): void => {
  const names = woken.map(({ run_id }) => run_id).sort()
  if (JSON.stringify(names) !== JSON.stringify([...expected].sort()))
    stage.fail(`${what} ${names.join(', ')} in place of ${expected.join(', ')}`)
}

const pick = <Item>(stage: Stage, items: readonly Item[]): Item | undefined =>
  items[stage.choose(items.length || 1)]

const cancelOne = async ({ stage }: World, actor: Actor): Promise<void> => {
  const id = stage.choose(5) === 4 ? pick(stage, Object.keys(stage.state.runs)) : undefined
  if (!id) return
  await stage.perform(
    actor,
    'cancels',
    (state) => [moves.cancel(state, id)],
    (database) =>
      cancelRun(database, tenant, id, 'enough').then(
        () => {
          if (!stage.state.runs[id]?.cancelled) stage.fail(`${id} was not cancelled`)
        },
        (error: unknown) => {
          if (!isMasonError(error, 'run_ended')) throw error
          if (!endings.has(stage.state.runs[id]?.status ?? '')) stage.fail(`${id} was said to have ended`)
        },
      ),
  )
}

const answerOne = async ({ stage }: World, actor: Actor): Promise<void> => {
  const [key, question] = pick(stage, Object.entries(stage.state.questions)) ?? []
  if (!key || !question) return
  const id = key.split('|')[0] ?? ''
  await stage.perform(
    actor,
    'answers',
    (state) => [moves.answer(state, key)],
    (database, operation) =>
      answerInput(database, tenant, id, question.request_id, 'yes').then(
        () => {
          if (operation.moved !== 1) stage.fail('an answer was taken, and nothing goes on')
        },
        (error: unknown) => {
          if (!isMasonError(error, 'input_answered')) throw error
          if (moves.answer(stage.state, key)) stage.fail('an open question was said to be answered')
        },
      ),
  )
}

/** A payment, a job or another run ends that a run waits for; twice now and then. */
const endOne = async ({ stage }: World, actor: Actor): Promise<void> => {
  const key = pick(stage, Object.keys(stage.state.waits))
  if (!key) return
  await stage.perform(
    actor,
    'ends a wait',
    (state) => [moves.endWait(state, key)],
    async (database, operation) => {
      const { rows } = await database.query<{ ended: number }>(
        `SELECT end_wait($1, 'run', $2, '{"status":"done"}') AS ended`,
        [tenant, key.split('|')[0]],
      )
      if (rows[0]?.ended !== operation.moved)
        stage.fail(`${rows[0]?.ended} waits ended, and not ${operation.moved}`)
    },
  )
}

const wakeOnce = ({ stage }: World, actor: Actor): Promise<void> =>
  stage.perform(
    actor,
    'wakes',
    (state) => (['ended', 'late'] as const).map((what) => moves.wakeWaiting(state, what)),
    async (database) => void (await wakeWaitingRuns(database)),
  )

const past = `clock_timestamp() - interval '1 second'`
/** What time brings: the end of a lease, of a question, of a wait; and the queue forgets. */
const passTime = async ({ stage, queue }: World): Promise<void> => {
  const held = Object.entries(stage.state.runs).filter(([, run]) => run.lease === 'held')
  const what = stage.choose(6)
  if (what <= 2) {
    const [id] = pick(stage, held) ?? []
    if (!id) return
    // now and then a worker polls at once
    if (stage.choose(2) === 1) queue.wakeUps.push({ run_id: id, business_id: tenant })
    await stage.meddle((sql) => sql.query(`UPDATE runs SET lease_until = ${past} WHERE run_id = $1`, [id]))
  } else if (what === 3) await stage.meddle(expire)
  else if (what === 4) await stage.meddle(makeDue)
  else queue.wakeUps.length = 0
}

const expire = async (sql: Pick<Database, 'query'>): Promise<void> => {
  await sql.query(`UPDATE input_requests SET expires_at = ${past}`)
  await sql.query(`UPDATE waits SET due_at = ${past} WHERE done_at IS NULL`)
}

const makeDue = async (sql: Pick<Database, 'query'>): Promise<void> => {
  await sql.query(`UPDATE runs SET run_at = ${past} WHERE run_at > clock_timestamp()`)
  await sql.query(`UPDATE outbox SET ring_at = ${past} WHERE ring_at > clock_timestamp()`)
}

const maxRounds = 40

/** With no more faults every run comes to its end: by its wakeUps, and where they were lost by the reconciler. */
const drain = async ({ stage }: World): Promise<void> => {
  for (let round = 0; round < maxRounds; round++) {
    await stage.settle(['relays', 'reconciles', 'wakes'], ['takes a wake-up'])
    const open = Object.values(stage.state.runs).filter(({ status }) => !endings.has(status))
    if (Object.keys(stage.state.runs).length === 3 && open.length === 0) return
    await stage.meddle(async (sql) => {
      await sql.query(`UPDATE runs SET lease_until = ${past} WHERE status = 'running'`)
      await expire(sql)
      await makeDue(sql)
    })
  }
  throw new Violation(`no worker ends ${JSON.stringify(stage.state.runs)}`)
}
