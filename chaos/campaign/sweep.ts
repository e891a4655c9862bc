import { setTimeout as pause } from 'node:timers/promises'
import { Queue } from 'bullmq'
import { seededPick } from '../seeded-choice.ts'
import { type Accepted, bodyOf, type Clients } from './clients.ts'
import type { Write } from './crash-points.ts'
import type { Job, StepKind } from './job.ts'
import { type Reply, replyTo } from './ledger.ts'
import type { Side } from './watch-writes.ts'
import type { Witness } from './witness.ts'
import type { Order } from './worker-process.ts'
import { isNearPoison } from './workers.ts'
import type { World } from './world.ts'

/** How a worker is brought to a write. */
type Way = {
  rounds?: StepKind[][]
  /** What the ledger says to the first order of the job's first call. */
  reply?: Reply
  /** What the job has gone through before the worker that dies: it waits for a person, an operator has settled its side effect, or it looks like poison. */
  first?: 'asked' | 'settled' | 'stalled'
  /** How the job comes: over HTTP if absent. */
  through?: 'queue' | 'bad job'
  order?: Order['do']
  /** The worker gets its stop signal once the ledger has heard of the job, or at once. */
  stops?: 'at work' | 'idle'
  nth?: number
}

type Point = { write: Write; sides: readonly Side[]; way: Way }

const statement = ['before', 'after'] as const
const transaction = ['before', 'after', 'committed'] as const

/** Every durable write and a way to it: the worker dies there, and others have to make the best of it. */
export const points: readonly Point[] = [
  { write: 'admit', sides: transaction, way: { through: 'queue' } },
  { write: 'reject', sides: statement, way: { through: 'bad job' } },
  { write: 'claim', sides: statement, way: {} },
  { write: 'append', sides: statement, way: {} },
  { write: 'append', sides: statement, way: { nth: 4, rounds: [['look', 'look', 'calculate']] } },
  { write: 'finish', sides: statement, way: {} },
  { write: 'keep-blob', sides: statement, way: { rounds: [['big']] } },
  { write: 'effect-intent', sides: statement, way: { rounds: [['keyed']] } },
  { write: 'effect-sent', sides: statement, way: { rounds: [['keyed']] } },
  { write: 'effect-sent', sides: statement, way: { rounds: [['queryable']] } },
  { write: 'effect-sent', sides: statement, way: { rounds: [['manual']] } },
  { write: 'effect-unknown', sides: statement, way: { rounds: [['manual']], reply: 'broken' } },
  {
    write: 'effect-sent',
    sides: statement,
    way: { rounds: [['manual']], reply: 'lost', first: 'settled' },
  },
  { write: 'append', sides: statement, way: { rounds: [['manual']], reply: 'lost', first: 'settled' } },
  { write: 'park', sides: statement, way: { rounds: [['ask']] } },
  { write: 'answer', sides: transaction, way: { rounds: [['ask']], first: 'asked', order: 'answer' } },
  { write: 'requeue', sides: statement, way: { rounds: [['stumble'], ['look']] } },
  { write: 'hand-back', sides: transaction, way: { rounds: [['keyed']], reply: 'late', stops: 'at work' } },
  { write: 'give-up', sides: transaction, way: { first: 'stalled' } },
  { write: 'cancel', sides: transaction, way: { rounds: [['ask']], first: 'asked', order: 'cancel' } },
  { write: 'settle', sides: transaction, way: { rounds: [['ask']], first: 'asked', order: 'cancel' } },
  { write: 'heartbeat', sides: statement, way: { rounds: [['keyed']], reply: 'late' } },
  { write: 'presence', sides: statement, way: {} },
  { write: 'farewell', sides: statement, way: { stops: 'idle' } },
  { write: 'silent-workers', sides: statement, way: {} },
  { write: 'outbox-delete', sides: statement, way: {} },
  { write: 'expire-question', sides: statement, way: {} },
  { write: 'old-keys', sides: statement, way: {} },
]

export type ChosenPoint = { write: Write; side: Side; way: Way }

/** All points on all their sides; at a smaller scale each on one side that the seed picks, at less than a hundredth every seventh point. */
export const choosePoints = (seed: number, scale: number): ChosenPoint[] =>
  points.flatMap(({ write, sides, way }, nth) => {
    if (scale < 0.01 && (nth + seed) % 7 !== 0) return []
    return (scale >= 1 ? sides : [seededPick(sides, seed, 'side', nth)]).map((side) => ({ write, side, way }))
  })

const reachMs = 120_000

/** A worker dies at each of these points, one after the other. Gives the points that were not reached, and how many were. */
export const sweepPoints = async (
  world: World,
  witness: Witness,
  clients: Clients,
  seed: number,
  chosen: readonly ChosenPoint[],
  say: (line: string) => void,
  signal: AbortSignal,
): Promise<{ reached: number; failures: string[]; rejected: number }> => {
  const failures: string[] = []
  let [named, asked, reached, rejected] = [0, 0, 0, 0]
  await using queue = intakeOf(world)

  /** A job whose first order the ledger answers like this. */
  const jobFor = ({ rounds = [['calculate']], reply = 'ok' }: Way): Job => {
    for (;;) {
      const name = `p${++named}`
      // the latest first, so that a worker takes it up before what earlier deaths have left
      if (replyTo(seed, `${name}.0.0`, 1) === reply)
        return { name, rounds, cancelAfterMs: null, isRepeated: false, priority: Math.min(100, ++asked) }
    }
  }

  const submit = (job: Job): Promise<Accepted> =>
    clients.submit({ id: job.name, jobs: [job], pipelined: false }, job)

  /** A worker in good health takes the run to its question, or to its first actions. */
  const prepare = async (accepted: Accepted, first: Way['first']): Promise<Order | null> => {
    if (first === undefined) return null
    const { run_id } = accepted
    const worker = world.startWorker(first === 'stalled' ? { crashAt: 'after-append:2' } : {})
    if (first === 'stalled') {
      await worker.exited
      accepted.isGivenUp = true
      await witness.query('UPDATE runs SET stalls = 6, lease_until = clock_timestamp() WHERE run_id = $1', [
        run_id,
      ])
      return null
    }
    const waiting = first === 'asked' ? openQuestion : openEffect
    const id = await waiting(witness, run_id, signal)
    worker.kill('SIGTERM')
    await worker.exited
    if (first === 'asked')
      return { do: 'answer', run_id, request_id: id, answer: `yes ${accepted.job.name}.0.0` }
    await clients.settle(run_id, id, false)
    return null
  }

  /** Earlier deaths leave runs that a later worker takes up, and dies with: before that is too often, one lives. */
  const spareThoseNearPoison = async (): Promise<void> => {
    if (!(await isNearPoison(witness))) return
    const worker = world.startWorker()
    while (await isNearPoison(witness)) await pause(100, undefined, { signal })
    worker.kill('SIGTERM')
    await worker.exited
  }

  for (const { write, side, way } of chosen) {
    await spareThoseNearPoison()
    const job = jobFor(way)
    let accepted: Accepted | null = null
    let order: Order | null = null
    if (way.through === 'bad job') {
      await queue.add('run', { prompt: 7 }, { jobId: `bad-${job.name}` })
      rejected++
    } else if (way.through === 'queue')
      await queue.add('run', { ...bodyOf(job.name, job), business_id: 'default' }, { jobId: job.name })
    else {
      accepted = await submit(job)
      order = await prepare(accepted, way.first)
      if (order && way.order === 'cancel') order = { do: 'cancel', run_id: accepted.run_id }
    }
    const at = `${side}-${write}:${way.nth ?? 1}`
    const worker = world.startWorker({ crashAt: at, ...(order && { order }) })
    if (way.stops) {
      await worker.waitForLine((line) => line.includes('"ready"'))
      if (way.stops === 'at work') await worker.counted('"acted"', 3, 10_000)
      worker.kill('SIGTERM')
    }
    const died = await Promise.race([
      worker.waitForLine((line) => line.includes('"crashing"')),
      pause(reachMs, null, { signal, ref: false }),
    ])
    worker.kill('SIGKILL')
    await worker.exited
    say(`${at} ${died ? 'reached' : 'NOT REACHED'}`)
    if (died) reached++
    else failures.push(`the point ${at} was never reached (job ${job.name})`)
    // who asked was not answered, and asks again
    if (accepted && order?.do === 'cancel') await clients.cancel(accepted)
    // the same key: it finds the run that the queue's job became, if it became one
    if (way.through === 'queue') await submit(job)
  }
  return { reached, failures, rejected }
}

const readId =
  (statement: string) =>
  async (witness: Witness, runId: string, signal: AbortSignal): Promise<string> => {
    for (;;) {
      const [row] = await witness.query<{ id: string }>(statement, [runId])
      if (row) return row.id
      await pause(100, undefined, { signal })
    }
  }

const openQuestion = readId(
  `SELECT request_id AS id FROM input_requests i JOIN runs r USING (tenant, run_id)
   WHERE r.run_id = $1 AND r.status = 'input_required' AND i.answered_at IS NULL`,
)
const openEffect = readId(
  `SELECT ref_id AS id FROM waits w JOIN runs r USING (tenant, run_id)
   WHERE r.run_id = $1 AND r.status = 'waiting' AND w.kind = 'effect' AND w.done_at IS NULL`,
)

/** The public queue, as any BullMQ client uses it. */
const intakeOf = (world: World) => {
  const { redis, queuePrefix: prefix } = world.servers
  const { hostname: host, port } = new URL(redis.url)
  const queue = new Queue('mason-runs', { connection: { host, port: Number(port) }, prefix })
  return {
    add: (name: string, data: unknown, options: { jobId: string }) => queue.add(name, data, options),
    [Symbol.asyncDispose]: () => queue.close(),
  }
}
