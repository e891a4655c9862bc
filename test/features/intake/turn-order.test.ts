// backends: either
// asserts: invariants

import { Queue } from 'bullmq'
import { describe, expect, onTestFinished } from 'vitest'
import type { Intake } from '../../../src/features/intake/intake-batches.ts'
import { LeaseLostError } from '../../../src/features/intake/intake-lease.ts'
import type { IntakeQueue } from '../../../src/features/intake/intake-queue.ts'
import { deleteSession } from '../../../src/features/user-memory/store/delete-session.ts'
import type { Database } from '../../../src/infra/database/database.ts'
import { silentLog } from '../../../src/infra/lib/silent-log.ts'
import { systemClock } from '../../../src/infra/lib/system-clock.ts'
import { signJob } from '../../../src/infra/queue/signed-jobs.ts'
import { MasonError } from '../../../src/state/errors.ts'
import type { JobData } from '../../../src/state/run-request.ts'
import { unique } from '../../support/backend.ts'
import { deferred } from '../../support/deferred.ts'
import {
  asLeader,
  createFakeQueue,
  deliverAll,
  openTestIntake,
  readEpoch,
  startIntakeLeader,
} from '../../support/intake.ts'
import { runtimeTest, test } from '../../support/integration-test.ts'
import { count, unavailable, until } from '../../support/runs.ts'

const isServed = process.env.MASON_TEST_BACKEND === 'served'

const jobOf = (business_id: string, session_id: string, n: number) => ({
  id: `${business_id}.${session_id}.${n}`,
  name: 'run',
  data: { prompt: `${n}`, user_id: 'ann', business_id, session_id, delay_ms: 600_000 },
})
type TestJob = ReturnType<typeof jobOf>

const numbers = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, at) => `${from + at}`)
/** Jobs of one session. */
const jobsOf = (business: string, from: number, to: number): TestJob[] =>
  numbers(from, to).map((n) => jobOf(business, 's', Number(n)))

/** The prompts of a session in the order of its turns. */
const readTurns = async (database: Database, business: string, session = 's'): Promise<string[]> => {
  const { rows } = await database.query<{ prompt: string }>(
    `SELECT q.request->>'prompt' AS prompt FROM runs r JOIN run_requests q USING (tenant, run_id)
     WHERE r.tenant = $1 AND r.session_id = $2 ORDER BY r.turn`,
    [business, session],
  )
  return rows.map(({ prompt }) => prompt)
}
const isHeld = (result: object | undefined): boolean => result !== undefined && 'heldUntil' in result

type FakeQueue = ReturnType<typeof createFakeQueue>
/** The queue as its leader opens it, with other operations. */
const withChanges = (
  queue: FakeQueue,
  change: (opened: IntakeQueue) => Partial<IntakeQueue>,
): Pick<FakeQueue, 'open'> => ({
  open(mayTake) {
    const opened = queue.open(mayTake)
    return { ...opened, ...change(opened) }
  },
})
const startLeader = (
  database: Database,
  queue: Pick<FakeQueue, 'open'>,
  intake = openTestIntake(database),
) => {
  const leader = startIntakeLeader({
    ...{ database, openQueue: queue.open, intake, clock: systemClock, log: silentLog },
    workerId: unique('w'),
  })
  onTestFinished(() => leader.stop())
  return leader
}
const untilEnded = ({ outcomes }: FakeQueue, jobs: number) =>
  until(`${jobs} jobs to end`, () => outcomes.size === jobs)

const makeDue = (database: Database) =>
  database.query(
    // before now by any reading of the clock
    "UPDATE held_jobs SET look_at = clock_timestamp() - interval '1 minute' WHERE look_at IS NOT NULL AND outcome IS NULL",
  )
const release = async (intake: Intake, database: Database): Promise<boolean> => {
  await makeDue(database)
  return asLeader(database, (epoch) => intake.release(epoch))
}
const tooMany = new MasonError('too_many_requests', 'the business is full')
/** An intake whose check of a job throws what `find` finds. */
const openRefusing = (database: Database, find: (request: JobData) => Error | false | null): Intake =>
  openTestIntake(database, {
    async check(request) {
      const error = find(request)
      if (error) throw error
      return new Map()
    },
  })

describe('the leader of the intake', () => {
  test('admits the jobs of each session in the order in which they were taken, and ends its lease at once when it stops', async ({
    database,
  }) => {
    const [queue, business] = [createFakeQueue(), unique('b')]
    for (const n of [1, 2, 3, 4, 5]) queue.add(...numbers(1, 20).map((s) => jobOf(business, s, n)))
    const leader = startLeader(database, queue)
    await untilEnded(queue, 100)
    await leader.stop()
    for (const session of numbers(1, 20))
      expect(await readTurns(database, business, session)).toEqual(numbers(1, 5))
    expect(await count(database, 'runs WHERE tenant = $1', [business])).toBe(100)
    expect(queue.taken).toEqual([])
    expect(await count(database, 'intake_lease WHERE lease_until > clock_timestamp()')).toBe(0)
  })

  test('begins with what another one had taken, at its place, and counts it before it takes anything', async ({
    database,
  }) => {
    const [queue, business] = [createFakeQueue(), unique('b')]
    const intake = openTestIntake(database)
    const waiting: number[] = []
    const watched: Intake = {
      ...intake,
      recover(...parameters) {
        waiting.push(queue.waiting.length)
        return intake.recover(...parameters)
      },
    }
    queue.add(...jobsOf(business, 1, 4))
    const lost = queue.open(() => true)
    await lost.take(false)
    await lost.take(false)
    startLeader(database, queue, watched)
    await untilEnded(queue, 4)
    expect(await readTurns(database, business)).toEqual(numbers(1, 4))
    expect(waiting).toEqual([2, 2])
    expect(await count(database, 'recovered_jobs')).toBe(0)
  })

  test('that is frozen between take and commit beyond its lease admits nothing, and takes nothing after it', async ({
    database,
  }) => {
    const [queue, business] = [createFakeQueue(), unique('b')]
    const [frozen, thawed] = [deferred<void>(), deferred<void>()]
    let checks = 0
    const first = openTestIntake(database, {
      async check() {
        checks++
        frozen.resolve()
        await thawed.promise
        return new Map()
      },
    })
    const end = deferred<unknown>()
    const watched: Intake = {
      ...first,
      admit: (jobs, epoch) =>
        first.admit(jobs, epoch).catch((error: unknown) => {
          end.resolve(error)
          throw error
        }),
    }
    queue.add(...jobsOf(business, 1, 2))
    startLeader(database, queue, watched)
    await frozen.promise
    // as if its renewals were frozen too
    await database.query(
      `UPDATE intake_lease SET epoch = epoch + 1, lease_until = clock_timestamp() - interval '1 second'`,
    )
    startLeader(database, queue)
    queue.add(jobOf(business, 's', 3))
    await untilEnded(queue, 3)
    thawed.resolve()
    expect(await end.promise).toBeInstanceOf(LeaseLostError)
    expect(await readTurns(database, business)).toEqual(['1', '2', '3'])
    expect(checks).toBe(2)
  })

  test('adopts a job that a former leader takes too late, before those that come after it', async ({
    database,
  }) => {
    const [queue, business] = [createFakeQueue(), unique('b')]
    const former = queue.open(() => true)
    let isFirst = true
    queue.add(...jobsOf(business, 1, 2))
    // the take of the former one reaches Redis right before the first of this one
    const late = withChanges(queue, (opened) => ({
      async take(wait) {
        if (isFirst) await former.take(false)
        isFirst = false
        return opened.take(wait)
      },
    }))
    startLeader(database, late)
    await untilEnded(queue, 2)
    expect(await readTurns(database, business)).toEqual(['1', '2'])
  })

  test('admits what it has taken although Redis comes back empty, and what comes then', async ({
    database,
  }) => {
    const [queue, business] = [createFakeQueue(), unique('b')]
    const [first, second, third] = jobsOf(business, 1, 3) as [TestJob, TestJob, TestJob]
    let isEmptied = false
    queue.add(first, second)
    const emptied = withChanges(queue, (opened) => ({
      async listTaken() {
        if (!isEmptied && queue.taken.length === 2) {
          isEmptied = true
          queue.empty()
        }
        return opened.listTaken()
      },
    }))
    startLeader(database, emptied)
    await until('two runs', async () => (await count(database, 'runs WHERE tenant = $1', [business])) === 2)
    queue.add(third, second)
    await untilEnded(queue, 2)
    expect(await readTurns(database, business)).toEqual(['1', '2', '3'])
  })

  test('that alone has lost Redis lets another one lead', async ({ database }) => {
    const [queue, business] = [createFakeQueue(), unique('b')]
    const [lost, back] = [deferred<void>(), deferred<void>()]
    const redis = { isCut: false, isAway: false }
    const cutOff = withChanges(queue, (opened) => ({
      // commands wait for the server
      async take(wait) {
        if (redis.isCut) {
          redis.isAway = true
          lost.resolve()
          await back.promise
        }
        return opened.take(wait)
      },
      isOurs: () => (redis.isAway ? Promise.reject(new Error('Redis is away')) : opened.isOurs()),
    }))
    startLeader(database, cutOff)
    queue.add(jobOf(business, 's', 1))
    await untilEnded(queue, 1)
    redis.isCut = true
    await lost.promise
    queue.add(jobOf(business, 's', 2))
    startLeader(database, queue)
    await untilEnded(queue, 2)
    back.resolve()
    expect(await readTurns(database, business)).toEqual(['1', '2'])
  })

  test('takes and admits 4 MiB at once, and a larger job alone', async ({ database }) => {
    const [queue, business] = [createFakeQueue(), unique('b')]
    const intake = openTestIntake(database)
    const admitted: string[][] = []
    const watched: Intake = {
      ...intake,
      admit(jobs, epoch) {
        admitted.push(jobs.map(({ id }) => id))
        return intake.admit(jobs, epoch)
      },
    }
    for (const [id, length] of [
      ['a', 10],
      ['b', 10],
      ['c', 5 * 1024 * 1024],
      ['d', 10],
    ] as const)
      queue.add({ id, name: 'run', data: { business_id: business, padding: 'x'.repeat(length) } })
    startLeader(database, queue, watched)
    await untilEnded(queue, 4)
    expect(admitted).toEqual([['a', 'b'], ['c'], ['d']])
  })

  test('trusts the order of its own takes for one list that fails, and for no second one', async ({
    database,
  }) => {
    const [queue, business] = [createFakeQueue(), unique('b')]
    const [first, second, third] = jobsOf(business, 1, 3) as [TestJob, TestJob, TestJob]
    const former = queue.open(() => true)
    const failing = new Set([first.id, third.id])
    const open = withChanges(queue, (opened) => ({
      async take(wait) {
        if (queue.waiting[0] === second.id) await former.take(false)
        return opened.take(wait)
      },
      async listTaken() {
        const cause = queue.taken.find((id) => failing.delete(id))
        if (cause === first.id) queue.add(second, third)
        if (cause) throw new Error('Redis is away')
        return opened.listTaken()
      },
    }))
    queue.add(first)
    startLeader(database, open)
    await untilEnded(queue, 3)
    expect(failing.size).toBe(0)
    expect(await readTurns(database, business)).toEqual(['1', '2', '3'])
  })
})

describe('an admission of the queue', () => {
  test('is refused whole for a leader whose lease has ended, also where no other one leads', async ({
    database,
  }) => {
    const [intake, business] = [openTestIntake(database), unique('b')]
    const [first, second] = jobsOf(business, 1, 2) as [TestJob, TestJob]
    await deliverAll(intake, database, [first])
    const epoch = await readEpoch(database)
    await database.query(`UPDATE intake_lease SET lease_until = clock_timestamp() - interval '1 second'`)
    await expect(intake.admit([second], epoch)).rejects.toBeInstanceOf(LeaseLostError)
    await readEpoch(database)
    await expect(intake.admit([second], epoch)).rejects.toBeInstanceOf(LeaseLostError)
    expect(await readTurns(database, business)).toEqual(['1'])
  })

  test('that is repeated is the same run, with a known job between new ones', async ({ database }) => {
    const [intake, business] = [openTestIntake(database), unique('b')]
    const jobs = jobsOf(business, 1, 4)
    const first = await deliverAll(intake, database, jobs.slice(1, 2))
    const all = await deliverAll(intake, database, jobs)
    expect(all[1]).toEqual(first[0])
    expect(await readTurns(database, business)).toEqual(['2', '1', '3', '4'])
    expect(await deliverAll(intake, database, jobs)).toEqual(all)
  })

  test('refuses a job of another user alone, and admits those around it in their order', async ({
    database,
  }) => {
    const [intake, business] = [openTestIntake(database), unique('b')]
    const [first, second, third] = jobsOf(business, 1, 3) as [TestJob, TestJob, TestJob]
    const others = { ...second, data: { ...second.data, user_id: 'bob' } }
    const results = await deliverAll(intake, database, [first, others, third])
    expect(results[1]).toMatchObject({ outcome: { errors: [{ detail: expect.stringContaining('user') }] } })
    expect(await readTurns(database, business)).toEqual(['1', '3'])
  })
})

describe('a deadly job', () => {
  type AnyJob = { id: string; name: string; data: unknown }
  /** Redis with one job that another leader had taken. */
  const queueOf = (job: AnyJob) => {
    const queue = createFakeQueue()
    queue.add(job)
    return queue.open(() => true)
  }
  const recover = (database: Database, intake: Intake, job: AnyJob, queue = queueOf(job)) =>
    asLeader(database, (epoch) => intake.recover(job.id, queue, epoch))
  const loseThree = (database: Database, { id }: AnyJob) =>
    database.query('INSERT INTO recovered_jobs (job_id, attempts) VALUES ($1, 3)', [id])
  const readRejected = async (database: Database, { id }: AnyJob): Promise<unknown[]> => {
    const found = await database.query<{ data: unknown }>(
      'SELECT data FROM rejected_jobs WHERE job_id = $1',
      [id],
    )
    return found.rows.map(({ data }) => data)
  }
  const lostWith = (workers: number) => ({
    outcome: { errors: [{ detail: expect.stringContaining(`${workers} workers were lost`) }] },
  })

  test('is tried alone after the first lost leader, and is rejected unread after the fourth', async ({
    database,
  }) => {
    const [intake, job] = [openTestIntake(database), jobOf(unique('b'), 's', 1)]
    let reads = 0
    const queue = {
      ...queueOf(job),
      read() {
        reads++
        return Promise.reject(new Error('this process has died'))
      },
    }
    // the first was lost with it among others
    for (let lost = 2; lost <= 4; lost++)
      await expect(recover(database, intake, job, queue)).rejects.toThrow('died')
    expect(await recover(database, intake, job, queue)).toMatchObject(lostWith(4))
    expect(reads).toBe(3)
    // unparsed, and none the less kept
    expect(await readRejected(database, job)).toEqual([job.data])
    expect(await count(database, 'recovered_jobs WHERE job_id = $1', [job.id])).toBe(0)
  })

  test('is refused without its data where reading that as text has cost a worker too', async ({
    database,
  }) => {
    const [intake, job] = [openTestIntake(database), jobOf(unique('b'), 's', 1)]
    const die = () => Promise.reject(new Error('this process has died'))
    const queue = { ...queueOf(job), read: die, readText: die }
    for (let lost = 2; lost <= 5; lost++)
      await expect(recover(database, intake, job, queue)).rejects.toThrow('died')
    expect(await recover(database, intake, job, queue)).toMatchObject(lostWith(5))
    expect(await readRejected(database, job)).toEqual(['[this data was not read again]'])
  })

  test('is none that workers were lost beside which had just begun', async ({ database }) => {
    const job = jobOf(unique('b'), 's', 1)
    await loseThree(database, job)
    const killed = new Error('killed by another')
    const intake = openTestIntake(database, { sleep: () => Promise.reject(killed) })
    for (let lost = 4; lost <= 7; lost++) await expect(recover(database, intake, job)).rejects.toBe(killed)
    expect(await count(database, 'recovered_jobs WHERE job_id = $1 AND attempts = 3', [job.id])).toBe(1)
  })

  test.for([
    ['of Postgres', unavailable(), true],
    ['of Redis', new Error('the connection is closed'), false],
  ] as const)(
    'is none that met passing errors %s, however often',
    async ([, error, redisAnswers], { database }) => {
      const business = unique('b')
      const job = jobOf(business, 's', 1)
      let fails = true
      const intake = openRefusing(database, () => fails && redisAnswers && error)
      const known = queueOf(job)
      const isAway = () => fails && !redisAnswers
      const queue = {
        ...known,
        read: (id: string) => (isAway() ? Promise.reject(error) : known.read(id)),
        isOurs: () => (isAway() ? Promise.reject(error) : known.isOurs()),
      }
      for (let times = 1; times <= 5; times++)
        await expect(recover(database, intake, job, queue)).rejects.toBe(error)
      fails = false
      expect(await recover(database, intake, job, queue)).toHaveProperty('outcome.run_id')
      expect(await readTurns(database, business)).toEqual(['1'])
    },
  )

  test('is none that was admitted: it ends with its run', async ({ database }) => {
    const [intake, job] = [openTestIntake(database), jobOf(unique('b'), 's', 1)]
    const [admitted] = await deliverAll(intake, database, [job])
    await loseThree(database, job)
    expect(await recover(database, intake, job)).toEqual(admitted)
    expect(await readRejected(database, job)).toEqual([])
  })

  test('is found admitted whatever its data escapes, and whatever SQL cannot read in it', async ({
    database,
  }) => {
    const intake = openTestIntake(database)
    const job = jobOf(unique('b'), 's', 1)
    job.data.prompt = 'Hi 😀\u0000 \ud83d, \\u0000'
    const [admitted] = await deliverAll(intake, database, [job])
    // as Python writes JSON
    const text = JSON.stringify(job.data).replaceAll('😀', '\\ud83d\\ude00')
    await loseThree(database, job)
    const queue = { ...queueOf(job), readText: async () => text }
    expect(await recover(database, intake, job, queue)).toEqual(admitted)
  })

  test('ends with the run of its id only where it is signed as that was', async ({ database }) => {
    const secret = 'a-queue-secret-of-32-characters--'
    const intake = openTestIntake(database, { secrets: [secret] })
    const { id, name, data } = jobOf(unique('b'), 's', 1)
    const signed = { id, name, data: signJob(id, data, secret) }
    const [admitted] = await deliverAll(intake, database, [signed])
    expect(admitted).toHaveProperty('outcome.run_id')
    for (const forged of [data, signJob(id, data, `${secret}-`), signJob(`${id}-`, data, secret)]) {
      const job = { id, name, data: forged }
      await loseThree(database, job)
      expect(await recover(database, intake, job)).toMatchObject(lostWith(4))
    }
    await loseThree(database, signed)
    expect(await recover(database, intake, signed)).toEqual(admitted)
  })

  test('that is held is none after passing errors', async ({ database }) => {
    let error: Error | null = tooMany
    const intake = openRefusing(database, () => error)
    const business = unique('b')
    await deliverAll(intake, database, [jobOf(business, 's', 1), jobOf(business, 't', 1)])
    error = unavailable()
    for (let times = 1; times <= 7; times++)
      await expect(release(intake, database)).rejects.toMatchObject({ code: 'database_unavailable' })
    error = null
    await release(intake, database)
    expect(await readTurns(database, business)).toEqual(['1'])
    expect(await readTurns(database, business, 't')).toEqual(['1'])
    expect(await count(database, 'rejected_jobs WHERE tenant = $1', [business])).toBe(0)
  })
})

describe('a job that must wait', () => {
  const readHeld = async (database: Database, business: string) =>
    (
      await database.query<{ job_id: string; is_first: boolean }>(
        'SELECT job_id, look_at IS NOT NULL AS is_first FROM held_jobs WHERE tenant = $1 AND outcome IS NULL ORDER BY seq',
        [business],
      )
    ).rows

  test('holds the later ones of its session, and only those, until it is admitted', async ({ database }) => {
    let isFull = true
    const checked: string[] = []
    const intake = openRefusing(database, ({ prompt, session_id }) => {
      checked.push(`${session_id}.${prompt}`)
      return isFull && session_id === 's' && prompt === '2' && tooMany
    })
    const business = unique('b')
    const of = (session: string, n: number) => jobOf(business, session, n)
    const results = await deliverAll(intake, database, [of('s', 1), of('s', 2), of('t', 1), of('s', 3)])
    expect(results.map(isHeld)).toEqual([false, true, false, true])
    checked.length = 0
    const later = await deliverAll(intake, database, [of('t', 2), of('s', 4)])
    expect(later.map(isHeld)).toEqual([false, true])
    // one behind another spends no budget
    expect(checked).toEqual(['t.2'])
    expect(await readHeld(database, business)).toEqual(
      [2, 3, 4].map((n) => ({ job_id: of('s', n).id, is_first: n === 2 })),
    )
    await release(intake, database)
    expect(await readTurns(database, business)).toEqual(['1'])
    isFull = false
    await release(intake, database)
    expect(await readTurns(database, business)).toEqual(numbers(1, 4))
    expect(await readTurns(database, business, 't')).toEqual(['1', '2'])
    expect(await readHeld(database, business)).toEqual([])
  })

  test('ends with its run when it comes again from Redis, and its row is gone then', async ({ database }) => {
    let isFull = true
    const [queue, business] = [createFakeQueue(), unique('b')]
    queue.add(...jobsOf(business, 1, 2))
    startLeader(
      database,
      queue,
      openRefusing(database, () => isFull && tooMany),
    )
    await until('both to be held', () => queue.parked.size === 2)
    expect(queue.taken).toEqual([])
    isFull = false
    await makeDue(database)
    await untilEnded(queue, 2)
    await until('no row', async () => !(await count(database, 'held_jobs WHERE tenant = $1', [business])))
    expect(await readTurns(database, business)).toEqual(['1', '2'])
    const run = { run_id: expect.any(String), status: 'queued' }
    expect([...queue.outcomes.values()]).toEqual([run, run])
  })

  test('is rejected when its time is over, which frees those behind it', async ({ database }) => {
    const intake = openRefusing(database, ({ prompt }) => prompt === '1' && tooMany)
    const business = unique('b')
    const [first, second] = jobsOf(business, 1, 2) as [TestJob, TestJob]
    await deliverAll(intake, database, [first, second])
    await database.query('UPDATE held_jobs SET expires_at = clock_timestamp() WHERE job_id = $1', [first.id])
    await asLeader(database, (epoch) => intake.release(epoch))
    const detail = expect.stringMatching(/waited longer.*the business is full/)
    expect(await deliverAll(intake, database, [first])).toMatchObject([
      { outcome: { errors: [{ pointer: '', detail }] } },
    ])
    await release(intake, database)
    expect(await readTurns(database, business)).toEqual(['2'])
  })

  // one who holds a lock while another waits needs a connection of its own
  test.runIf(isServed)(
    'for a locked session delays no other, and becomes its turn in order',
    async ({ database, elsewhere }) => {
      const intake = openTestIntake(database)
      const [business, other] = [unique('b'), unique('b')]
      const [first, second, third] = jobsOf(business, 1, 3) as [TestJob, TestJob, TestJob]
      await deliverAll(intake, database, [first])
      const [locked, done] = [deferred<void>(), deferred<void>()]
      const holding = elsewhere.transaction(async (sql) => {
        await sql.query('SELECT FROM sessions WHERE tenant = $1 FOR UPDATE', [business])
        locked.resolve()
        await done.promise
      })
      await locked.promise
      const jobs = [second, jobOf(business, 't', 1), third, jobOf(other, 's', 1)]
      const results = await deliverAll(intake, database, jobs).finally(() => done.resolve())
      expect(results.map(isHeld)).toEqual([true, false, true, false])
      await holding
      await release(intake, database)
      expect(await readTurns(database, business)).toEqual(['1', '2', '3'])
    },
  )

  test('is tried at once after others of its business that were due with it', async ({ database }) => {
    let isFull = true
    const intake = openRefusing(database, () => isFull && tooMany)
    const business = unique('b')
    await deliverAll(
      intake,
      database,
      numbers(1, 10).map((session) => jobOf(business, session, 1)),
    )
    // all of them wait on
    expect(await release(intake, database)).toBe(false)
    isFull = false
    expect([await release(intake, database), await release(intake, database)]).toEqual([true, false])
    expect(await count(database, 'runs WHERE tenant = $1', [business])).toBe(10)
  })

  test('ends when its session is deleted', async ({ database }) => {
    let isFull = false
    const intake = openRefusing(database, () => isFull && tooMany)
    const business = unique('b')
    const [first, ...later] = jobsOf(business, 1, 3) as [TestJob, TestJob, TestJob]
    await deliverAll(intake, database, [first])
    isFull = true
    await deliverAll(intake, database, later)
    expect(await deleteSession(database, business, 's')).toBe(true)
    const ended = { outcome: { errors: [{ detail: expect.stringContaining('session was deleted') }] } }
    expect(await deliverAll(intake, database, later)).toMatchObject([ended, ended])
    expect(await count(database, `held_jobs WHERE tenant = $1 AND data::text <> 'null'`, [business])).toBe(0)
  })

  test('is one beyond the hundred queued runs of its session: 250 jobs become turns in their order', async ({
    database,
  }) => {
    const [intake, business] = [openTestIntake(database), unique('b')]
    const jobs = jobsOf(business, 1, 250)
    const results = []
    for (let from = 0; from < 250; from += 64)
      results.push(...(await deliverAll(intake, database, jobs.slice(from, from + 64))))
    expect(results.filter(isHeld)).toHaveLength(150)
    expect(await readTurns(database, business)).toEqual(numbers(1, 100))
    await until('all are turns', async () => {
      await database.query(`UPDATE runs SET status = 'completed' WHERE tenant = $1`, [business])
      await release(intake, database)
      return (await readTurns(database, business)).length === 250
    })
    expect(await readTurns(database, business)).toEqual(numbers(1, 250))
  })

  test('by an unexpected error is tried again in its order, and rejected after the fifth', async ({
    database,
  }) => {
    const intake = openRefusing(database, ({ prompt }) => prompt === '1' && new Error('a bug'))
    const business = unique('b')
    const jobs = jobsOf(business, 1, 2)
    expect((await deliverAll(intake, database, jobs)).map(isHeld)).toEqual([true, true])
    for (let tries = 2; tries <= 5; tries++) {
      expect(await readTurns(database, business)).toEqual([])
      await release(intake, database)
    }
    await release(intake, database)
    expect(await readTurns(database, business)).toEqual(['2'])
    expect(await count(database, 'rejected_jobs WHERE job_id = $1', [jobs[0]?.id])).toBe(1)
  })
})

describe.runIf(isServed)('jobs on Redis', () => {
  runtimeTest(
    'become turns in the order in which Redis took them: those of one priority as sent, a higher one first',
    async ({ runtime, backend, database }) => {
      const business = unique('b')
      const settings = {
        connection: { url: backend.config.redisUrl ?? '' },
        prefix: backend.config.queuePrefix,
      }
      const queue = new Queue('mason-runs', settings)
      // waiting together, as for a worker that was down
      await queue.pause()
      for (const n of [1, 2, 3, 4, 5])
        for (let session = 0; session < 20; session++) {
          const { id, name, data } = jobOf(business, `s${session}`, n)
          await queue.add(name, data, { jobId: id, priority: 50 })
        }
      for (const [n, priority] of [
        [1, 50],
        [2, 50],
        [3, 10],
      ] as const) {
        const { id, name, data } = jobOf(business, 'mixed', n)
        await queue.add(name, data, { jobId: id, priority })
      }
      await queue.resume()
      await until(
        'all runs',
        async () => (await count(database, 'runs WHERE tenant = $1', [business])) === 103,
      )
      await until('no job', async () => (await queue.getJobCountByTypes('active', 'prioritized')) === 0)
      await queue.close()
      for (let session = 0; session < 20; session++)
        expect(await readTurns(database, business, `s${session}`)).toEqual(numbers(1, 5))
      expect(await readTurns(database, business, 'mixed')).toEqual(['3', '1', '2'])
      expect((await runtime.of(business).runs({ limit: 1 })).data).toHaveLength(1)
    },
  )
})
