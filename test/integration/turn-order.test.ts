import { Queue } from 'bullmq'
import { describe, expect, onTestFinished } from 'vitest'
import type { Intake } from '../../src/engine/runs/intake-batches.ts'
import { LeaseLostError } from '../../src/engine/runs/intake-lease.ts'
import { deleteSession } from '../../src/engine/sessions/delete-session.ts'
import { startIntakeLeader } from '../../src/engine/worker/intake-leader.ts'
import type { Database } from '../../src/infra/database/database.ts'
import { silentLog } from '../../src/infra/lib/silent-log.ts'
import { systemClock } from '../../src/infra/lib/system-clock.ts'
import type { JobOutcome } from '../../src/infra/queue/jobs.ts'
import { MasonError } from '../../src/state/errors.ts'
import { unique } from '../support/backend.ts'
import { deferred } from '../support/deferred.ts'
import { asLeader, createFakeQueue, deliverAll, openTestIntake, readEpoch } from '../support/intake.ts'
import { runtimeTest, test } from '../support/integration-test.ts'
import { count, until } from '../support/runs.ts'

const jobOf = (business_id: string, session_id: string, n: number) => ({
  id: `${business_id}.${session_id}.${n}`,
  name: 'run',
  data: { prompt: `${n}`, user_id: 'ann', business_id, session_id, delay_ms: 600_000 },
})
type TestJob = ReturnType<typeof jobOf>

/** The prompts of a session in the order of its turns. */
const readTurns = async (database: Database, business: string, session: string): Promise<string[]> => {
  const { rows } = await database.query<{ prompt: string }>(
    `SELECT q.request->>'prompt' AS prompt FROM runs r JOIN run_requests q USING (tenant, run_id)
     WHERE r.tenant = $1 AND r.session_id = $2 ORDER BY r.turn`,
    [business, session],
  )
  return rows.map(({ prompt }) => prompt)
}
const numbers = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, at) => `${from + at}`)
const endLease = (database: Database) =>
  database.query(`UPDATE intake_lease SET lease_until = clock_timestamp() - interval '1 second'`)
const isHeld = (result: object | undefined): boolean => result !== undefined && 'heldUntil' in result
const startLeader = (database: Database, queue: ReturnType<typeof createFakeQueue>, intake: Intake) => {
  const leader = startIntakeLeader({
    ...{ database, openQueue: queue.open, intake, clock: systemClock, log: silentLog },
    workerId: unique('w'),
  })
  onTestFinished(() => leader.stop())
  return leader
}
const release = async (intake: Intake, database: Database): Promise<void> => {
  await database.query(
    'UPDATE held_jobs SET look_at = clock_timestamp() WHERE look_at IS NOT NULL AND outcome IS NULL',
  )
  await asLeader(database, (epoch) => intake.release(epoch))
}

describe('the leader of the intake', () => {
  test('admits the jobs of each session in the order in which they were taken', async ({ database }) => {
    const [queue, business] = [createFakeQueue(), unique('b')]
    const sessions = Array.from({ length: 20 }, (_, at) => `s${at}`)
    for (const n of [1, 2, 3, 4, 5]) queue.add(...sessions.map((session) => jobOf(business, session, n)))
    const leader = startLeader(database, queue, openTestIntake(database))
    await until('all jobs to end', () => queue.outcomes.size === 100)
    await leader.stop()
    for (const session of sessions)
      expect(await readTurns(database, business, session)).toEqual(numbers(1, 5))
    expect(await count(database, 'runs WHERE tenant = $1', [business])).toBe(100)
    expect(queue.taken).toEqual([])
  })

  test('begins with what another one had taken, at its place', async ({ database }) => {
    const [queue, business] = [createFakeQueue(), unique('b')]
    queue.add(...[1, 2, 3].map((n) => jobOf(business, 's', n)))
    const lost = queue.open(() => true)
    await lost.take(false)
    await lost.take(false)
    const leader = startLeader(database, queue, openTestIntake(database))
    await until('all jobs to end', () => queue.outcomes.size === 3)
    await leader.stop()
    expect(await readTurns(database, business, 's')).toEqual(['1', '2', '3'])
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
    const ends: object[] = []
    const watched: Intake = {
      ...first,
      admit: (jobs, epoch) =>
        first.admit(jobs, epoch).catch((error: unknown) => {
          ends.push(error as object)
          throw error
        }),
    }
    queue.add(jobOf(business, 's', 1), jobOf(business, 's', 2))
    const old = startLeader(database, queue, watched)
    await frozen.promise
    // as if its renewals were frozen too
    await database.query(
      `UPDATE intake_lease SET epoch = epoch + 1, lease_until = clock_timestamp() - interval '1 second'`,
    )
    const next = startLeader(database, queue, openTestIntake(database))
    queue.add(jobOf(business, 's', 3))
    await until('the other leader to admit all', () => queue.outcomes.size === 3)
    thawed.resolve()
    await until('the frozen leader to give up', () => ends.length > 0)
    await Promise.all([old.stop(), next.stop()])
    expect(ends[0]).toBeInstanceOf(LeaseLostError)
    expect(await readTurns(database, business, 's')).toEqual(['1', '2', '3'])
    expect(checks).toBe(2)
  })

  test('adopts a job that a former leader takes too late, before those that come after it', async ({
    database,
  }) => {
    const [queue, business] = [createFakeQueue(), unique('b')]
    const former = queue.open(() => true)
    const open = (mayTake: () => boolean) => {
      const opened = queue.open(mayTake)
      // the take of the former one reaches Redis right before the first of this one
      let isFirst = true
      return {
        ...opened,
        async take(wait: boolean) {
          if (queue.waiting.length > 0 && isFirst) {
            isFirst = false
            await former.take(false)
          }
          return opened.take(wait)
        },
      }
    }
    queue.add(jobOf(business, 's', 1), jobOf(business, 's', 2))
    const leader = startLeader(database, { ...queue, open }, openTestIntake(database))
    await until('both jobs to end', () => queue.outcomes.size === 2)
    await leader.stop()
    expect(await readTurns(database, business, 's')).toEqual(['1', '2'])
  })

  test('admits what it has taken although Redis comes back empty, and what comes then', async ({
    database,
  }) => {
    const [queue, business] = [createFakeQueue(), unique('b')]
    let isEmptied = false
    const open = (mayTake: () => boolean) => {
      const opened = queue.open(mayTake)
      return {
        ...opened,
        async listTaken() {
          if (!isEmptied && queue.taken.length === 2) {
            isEmptied = true
            queue.empty()
          }
          return opened.listTaken()
        },
      }
    }
    queue.add(jobOf(business, 's', 1), jobOf(business, 's', 2))
    const leader = startLeader(database, { ...queue, open }, openTestIntake(database))
    await until('two runs', async () => (await count(database, 'runs WHERE tenant = $1', [business])) === 2)
    queue.add(jobOf(business, 's', 3), jobOf(business, 's', 2))
    await until('the jobs that came then', () => queue.outcomes.size === 2)
    await leader.stop()
    expect(await readTurns(database, business, 's')).toEqual(['1', '2', '3'])
  })

  test('that alone has lost Redis lets another one lead', async ({ database }) => {
    const [queue, business] = [createFakeQueue(), unique('b')]
    const [lost, back] = [deferred<void>(), deferred<void>()]
    const redis = { isCut: false, isAway: false }
    const open = (mayTake: () => boolean) => {
      const opened = queue.open(mayTake)
      return {
        ...opened,
        // commands wait for the server
        async take(wait: boolean) {
          if (redis.isCut) {
            redis.isAway = true
            lost.resolve()
            await back.promise
          }
          return opened.take(wait)
        },
        isOurs: () => (redis.isAway ? Promise.reject(new Error('Redis is away')) : opened.isOurs()),
      }
    }
    const cutOff = startLeader(database, { ...queue, open }, openTestIntake(database))
    queue.add(jobOf(business, 's', 1))
    await until('the first job', () => queue.outcomes.size === 1)
    redis.isCut = true
    await lost.promise
    queue.add(jobOf(business, 's', 2))
    const next = startLeader(database, queue, openTestIntake(database))
    await until('the second job', () => queue.outcomes.size === 2)
    back.resolve()
    await Promise.all([cutOff.stop(), next.stop()])
    expect(await readTurns(database, business, 's')).toEqual(['1', '2'])
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
    const ids = [1, 2, 3, 4].map((n) => jobOf(business, 's', n).id)
    const [a = '', b = '', c = '', d = ''] = ids
    for (const id of ids) {
      const padding = 'x'.repeat(id === c ? 5 * 1024 * 1024 : 10)
      queue.add({ id, name: 'run', data: { business_id: business, padding } })
    }
    const leader = startLeader(database, queue, watched)
    await until('all jobs to end', () => queue.outcomes.size === 4)
    await leader.stop()
    expect(admitted).toEqual([[a, b], [c], [d]])
  })

  test('recovers what others had taken, counted, before it takes anything', async ({ database }) => {
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
    queue.add(...[1, 2, 3].map((n) => jobOf(business, 's', n)))
    await queue.open(() => true).take(false)
    const leader = startLeader(database, queue, watched)
    await until('all jobs to end', () => queue.outcomes.size === 3)
    await leader.stop()
    expect(waiting).toEqual([2])
  })

  test('trusts the order of its own takes for one list that fails, and for no second one', async ({
    database,
  }) => {
    const [queue, business] = [createFakeQueue(), unique('b')]
    const [first, second, third] = [1, 2, 3].map((n) => jobOf(business, 's', n)) as [
      TestJob,
      TestJob,
      TestJob,
    ]
    const former = queue.open(() => true)
    const failing = new Set([first.id, third.id])
    const open = (mayTake: () => boolean) => {
      const opened = queue.open(mayTake)
      return {
        ...opened,
        async take(wait: boolean) {
          if (queue.waiting[0] === second.id) await former.take(false)
          return opened.take(wait)
        },
        async listTaken() {
          const cause = queue.taken.find((id) => failing.delete(id))
          if (cause === first.id) queue.add(second, third)
          if (cause) throw new Error('Redis is away')
          return opened.listTaken()
        },
      }
    }
    queue.add(first)
    const leader = startLeader(database, { ...queue, open }, openTestIntake(database))
    await until('all jobs to end', () => queue.outcomes.size === 3)
    await leader.stop()
    expect(failing.size).toBe(0)
    expect(await readTurns(database, business, 's')).toEqual(['1', '2', '3'])
  })

  test('ends its lease at once when it stops, and another one goes on', async ({ database }) => {
    const [queue, business] = [createFakeQueue(), unique('b')]
    const intake = openTestIntake(database)
    const leader = startLeader(database, queue, intake)
    queue.add(jobOf(business, 's', 1))
    await until('the first job', () => queue.outcomes.size === 1)
    await leader.stop()
    const { rows } = await database.query<{ holds: boolean }>(
      'SELECT lease_until > clock_timestamp() AS holds FROM intake_lease',
    )
    expect(rows).toEqual([{ holds: false }])
    queue.add(jobOf(business, 's', 2))
    const next = startLeader(database, queue, intake)
    await until('the second job', () => queue.outcomes.size === 2)
    await next.stop()
  })
})

describe('an admission of the queue', () => {
  test('is refused whole for a leader whose lease has ended, also where no other one leads', async ({
    database,
  }) => {
    const intake = openTestIntake(database)
    const business = unique('b')
    await deliverAll(intake, database, [jobOf(business, 's', 1)])
    const epoch = await readEpoch(database)
    await endLease(database)
    await expect(intake.admit([jobOf(business, 's', 2)], epoch)).rejects.toBeInstanceOf(LeaseLostError)
    await readEpoch(database)
    await expect(intake.admit([jobOf(business, 's', 2)], epoch)).rejects.toBeInstanceOf(LeaseLostError)
    expect(await readTurns(database, business, 's')).toEqual(['1'])
  })

  test('that is repeated is the same run, with a known job between new ones', async ({ database }) => {
    const intake = openTestIntake(database)
    const business = unique('b')
    const jobs = [1, 2, 3, 4].map((n) => jobOf(business, 's', n))
    const first = await deliverAll(intake, database, jobs.slice(1, 2))
    const all = await deliverAll(intake, database, jobs)
    expect(all[1]).toEqual(first[0])
    expect(await readTurns(database, business, 's')).toEqual(['2', '1', '3', '4'])
    expect(await deliverAll(intake, database, jobs)).toEqual(all)
  })

  test('refuses a job of another user alone, and admits those around it in their order', async ({
    database,
  }) => {
    const intake = openTestIntake(database)
    const business = unique('b')
    const jobs: TestJob[] = [1, 2, 3].map((n) => jobOf(business, 's', n))
    const [, second] = jobs
    if (second) second.data.user_id = 'bob'
    const results = await deliverAll(intake, database, jobs)
    expect(results[1]).toMatchObject({ outcome: { errors: [{ detail: expect.stringContaining('user') }] } })
    expect(await readTurns(database, business, 's')).toEqual(['1', '3'])
  })
})

/** Redis with one job that another leader had taken. */
const queueOf = (job: TestJob) => {
  const queue = createFakeQueue()
  queue.add(job)
  return queue.open(() => true)
}
const recover = (database: Database, intake: Intake, job: TestJob, queue: ReturnType<typeof queueOf>) =>
  asLeader(database, (epoch) => intake.recover(job.id, queue, epoch))
const readRejected = async (database: Database, job: TestJob): Promise<unknown[]> => {
  const { rows } = await database.query<{ data: unknown }>(
    'SELECT data FROM rejected_jobs WHERE job_id = $1',
    [job.id],
  )
  return rows.map(({ data }) => data)
}

describe('a deadly job', () => {
  test('is tried alone after the first lost leader, and is rejected unread after the third', async ({
    database,
  }) => {
    const intake = openTestIntake(database)
    const job = jobOf(unique('b'), 's', 1)
    let reads = 0
    const queue = {
      ...queueOf(job),
      read() {
        reads++
        return Promise.reject(new Error('this process has died'))
      },
    }
    // the first was lost with it among others
    for (let lost = 2; lost <= 3; lost++)
      await expect(recover(database, intake, job, queue)).rejects.toThrow('died')
    expect(await recover(database, intake, job, queue)).toMatchObject({
      outcome: { errors: [{ detail: expect.stringContaining('3 workers were lost') }] },
    })
    expect(reads).toBe(2)
    // unparsed, and none the less kept
    expect(await readRejected(database, job)).toEqual([job.data])
    expect(await count(database, 'recovered_jobs WHERE job_id = $1', [job.id])).toBe(0)
  })

  test('is refused without its data where reading that as text has cost a worker too', async ({
    database,
  }) => {
    const intake = openTestIntake(database)
    const job = jobOf(unique('b'), 's', 1)
    const die = () => Promise.reject(new Error('this process has died'))
    const queue = { ...queueOf(job), read: die, readText: die }
    for (let lost = 2; lost <= 4; lost++)
      await expect(recover(database, intake, job, queue)).rejects.toThrow('died')
    expect(await recover(database, intake, job, queue)).toMatchObject({
      outcome: { errors: [{ detail: expect.stringContaining('4 workers were lost') }] },
    })
    expect(await readRejected(database, job)).toEqual(['[this data was not read again]'])
  })

  test.for([
    ['of Postgres', () => new MasonError('database_unavailable', 'a failover'), true],
    ['of Redis', () => new Error('the connection is closed'), false],
  ] as const)(
    'is none that met passing errors %s, however often',
    async ([, fail, redisAnswers], { database }) => {
      const state = { fails: true }
      const check = async () => {
        if (state.fails) throw fail()
        return new Map()
      }
      const intake = openTestIntake(database, { check: redisAnswers ? check : async () => new Map() })
      const business = unique('b')
      const job = jobOf(business, 's', 1)
      const queue = {
        ...queueOf(job),
        read: () => (state.fails && !redisAnswers ? Promise.reject(fail()) : queueOf(job).read(job.id)),
        isOurs: () => (state.fails && !redisAnswers ? Promise.reject(fail()) : Promise.resolve(true)),
      }
      for (let times = 1; times <= 5; times++)
        await expect(recover(database, intake, job, queue)).rejects.toThrow(fail().message)
      state.fails = false
      expect(await recover(database, intake, job, queue)).toMatchObject({
        outcome: { run_id: expect.any(String) },
      })
      expect(await readTurns(database, business, 's')).toEqual(['1'])
    },
  )

  test('is none that was admitted: it ends with its run', async ({ database }) => {
    const intake = openTestIntake(database)
    const job = jobOf(unique('b'), 's', 1)
    const [admitted] = await deliverAll(intake, database, [job])
    await database.query('INSERT INTO recovered_jobs (job_id, attempts) VALUES ($1, 2)', [job.id])
    expect(await recover(database, intake, job, queueOf(job))).toEqual(admitted)
    expect(await readRejected(database, job)).toEqual([])
  })

  test('that is held is none after passing errors', async ({ database }) => {
    const state: { error: Error | null } = { error: new MasonError('too_many_requests', 'full') }
    const intake = openTestIntake(database, {
      async check() {
        if (state.error) throw state.error
        return new Map()
      },
    })
    const business = unique('b')
    const [first, second] = [jobOf(business, 's', 1), jobOf(business, 't', 1)]
    await deliverAll(intake, database, [first, second])
    state.error = new MasonError('database_unavailable', 'a failover')
    for (let times = 1; times <= 7; times++)
      await expect(release(intake, database)).rejects.toThrow('a failover')
    state.error = null
    await release(intake, database)
    expect(await readTurns(database, business, 's')).toEqual(['1'])
    expect(await readTurns(database, business, 't')).toEqual(['1'])
    expect(await count(database, 'rejected_jobs WHERE tenant = $1', [business])).toBe(0)
  })
})

describe('a job that must wait', () => {
  const full = () => new MasonError('too_many_requests', 'the business is full')
  const readHeld = async (database: Database, business: string) =>
    (
      await database.query<{ job_id: string; is_first: boolean }>(
        'SELECT job_id, look_at IS NOT NULL AS is_first FROM held_jobs WHERE tenant = $1 AND outcome IS NULL ORDER BY seq',
        [business],
      )
    ).rows

  test('holds the later ones of its session, and only those, until it is admitted', async ({ database }) => {
    const state = { full: true }
    const checked: string[] = []
    const intake = openTestIntake(database, {
      async check({ prompt, session_id }) {
        checked.push(`${session_id}.${prompt}`)
        if (state.full && session_id === 's' && prompt === '2') throw full()
        return new Map()
      },
    })
    const business = unique('b')
    const jobs = [
      jobOf(business, 's', 1),
      jobOf(business, 's', 2),
      jobOf(business, 't', 1),
      jobOf(business, 's', 3),
    ]
    const results = await deliverAll(intake, database, jobs)
    expect(results.map(isHeld)).toEqual([false, true, false, true])
    checked.length = 0
    const later = await deliverAll(intake, database, [jobOf(business, 't', 2), jobOf(business, 's', 4)])
    expect(later.map(isHeld)).toEqual([false, true])
    // one behind another spends no budget
    expect(checked).toEqual(['t.2'])
    expect(await readHeld(database, business)).toEqual(
      [2, 3, 4].map((n) => ({ job_id: jobOf(business, 's', n).id, is_first: n === 2 })),
    )
    await release(intake, database)
    expect(await readTurns(database, business, 's')).toEqual(['1'])
    state.full = false
    await release(intake, database)
    expect(await readTurns(database, business, 's')).toEqual(numbers(1, 4))
    expect(await readTurns(database, business, 't')).toEqual(['1', '2'])
    expect(await readHeld(database, business)).toEqual([])
  })

  test('ends with its run when it comes again from Redis, and its row is gone then', async ({ database }) => {
    const state = { full: true }
    const intake = openTestIntake(database, {
      async check() {
        if (state.full) throw full()
        return new Map()
      },
    })
    const [queue, business] = [createFakeQueue(), unique('b')]
    queue.add(jobOf(business, 's', 1), jobOf(business, 's', 2))
    const leader = startLeader(database, queue, intake)
    await until('both to be held', () => queue.parked.size === 2)
    expect(queue.taken).toEqual([])
    state.full = false
    await until('both to end', () => queue.outcomes.size === 2)
    await until(
      'no row',
      async () => (await count(database, 'held_jobs WHERE tenant = $1', [business])) === 0,
    )
    await leader.stop()
    expect(await readTurns(database, business, 's')).toEqual(['1', '2'])
    expect([...queue.outcomes.values()]).toEqual([
      { run_id: expect.any(String), status: 'queued' },
      { run_id: expect.any(String), status: 'queued' },
    ])
  })

  test('is rejected when its time is over, which frees those behind it', async ({ database }) => {
    const intake = openTestIntake(database, {
      async check({ prompt }) {
        if (prompt === '1') throw full()
        return new Map()
      },
    })
    const business = unique('b')
    const first = jobOf(business, 's', 1)
    await deliverAll(intake, database, [first, jobOf(business, 's', 2)])
    await database.query('UPDATE held_jobs SET expires_at = clock_timestamp() WHERE job_id = $1', [first.id])
    await asLeader(database, (epoch) => intake.release(epoch))
    const [result] = await deliverAll(intake, database, [first])
    expect((result as { outcome: JobOutcome }).outcome).toEqual({
      errors: [{ pointer: '', detail: expect.stringMatching(/waited longer.*the business is full/) }],
    })
    await release(intake, database)
    expect(await readTurns(database, business, 's')).toEqual(['2'])
  })

  test('for a locked session delays no other, and becomes its turn in order', async ({
    database,
    elsewhere,
  }) => {
    const intake = openTestIntake(database)
    const [business, other] = [unique('b'), unique('b')]
    await deliverAll(intake, database, [jobOf(business, 's', 1)])
    const [locked, done] = [deferred<void>(), deferred<void>()]
    const holding = elsewhere.transaction(async (sql) => {
      await sql.query('SELECT FROM sessions WHERE tenant = $1 FOR UPDATE', [business])
      locked.resolve()
      await done.promise
    })
    await locked.promise
    const results = await deliverAll(intake, database, [
      jobOf(business, 's', 2),
      jobOf(business, 't', 1),
      jobOf(business, 's', 3),
      jobOf(other, 's', 1),
    ])
    expect(results.map(isHeld)).toEqual([true, false, true, false])
    done.resolve()
    await holding
    await release(intake, database)
    expect(await readTurns(database, business, 's')).toEqual(['1', '2', '3'])
  })

  test('is tried at once after others of its business that were due with it', async ({ database }) => {
    const state = { full: true }
    const intake = openTestIntake(database, {
      async check() {
        if (state.full) throw full()
        return new Map()
      },
    })
    const business = unique('b')
    await deliverAll(
      intake,
      database,
      numbers(1, 10).map((session) => jobOf(business, `s${session}`, 1)),
    )
    const releaseDue = () => asLeader(database, (epoch) => intake.release(epoch))
    const makeDue = () =>
      database.query(
        'UPDATE held_jobs SET look_at = clock_timestamp() WHERE tenant = $1 AND outcome IS NULL',
        [business],
      )
    await makeDue()
    // all of them wait on
    expect(await releaseDue()).toBe(false)
    state.full = false
    await makeDue()
    expect([await releaseDue(), await releaseDue()]).toEqual([true, false])
    expect(await count(database, 'runs WHERE tenant = $1', [business])).toBe(10)
  })

  test('ends when its session is deleted', async ({ database }) => {
    const state = { full: false }
    const intake = openTestIntake(database, {
      async check() {
        if (state.full) throw full()
        return new Map()
      },
    })
    const business = unique('b')
    const [first, second, third] = [1, 2, 3].map((n) => jobOf(business, 's', n)) as [
      TestJob,
      TestJob,
      TestJob,
    ]
    await deliverAll(intake, database, [first])
    state.full = true
    await deliverAll(intake, database, [second, third])
    expect(await deleteSession(database, business, 's')).toBe(true)
    const ended = { outcome: { errors: [{ detail: expect.stringContaining('session was deleted') }] } }
    expect(await deliverAll(intake, database, [second, third])).toMatchObject([ended, ended])
    expect(await count(database, `held_jobs WHERE tenant = $1 AND data::text <> 'null'`, [business])).toBe(0)
  })

  test('is one beyond the hundred queued runs of its session: 250 jobs become turns in their order', async ({
    database,
  }) => {
    const intake = openTestIntake(database)
    const business = unique('b')
    const results = []
    for (let from = 1; from <= 250; from += 64)
      results.push(
        ...(await deliverAll(
          intake,
          database,
          numbers(from, Math.min(from + 63, 250)).map((n) => jobOf(business, 's', Number(n))),
        )),
      )
    expect(results.filter(isHeld)).toHaveLength(150)
    expect(await readTurns(database, business, 's')).toEqual(numbers(1, 100))
    for (let round = 0; round < 4; round++) {
      await database.query(`UPDATE runs SET status = 'completed' WHERE tenant = $1`, [business])
      await release(intake, database)
    }
    expect(await readTurns(database, business, 's')).toEqual(numbers(1, 250))
  })

  test('by an unexpected error is tried again in its order, and rejected after the fifth', async ({
    database,
  }) => {
    const intake = openTestIntake(database, {
      async check({ prompt }) {
        if (prompt === '1') throw new Error('a bug')
        return new Map()
      },
    })
    const business = unique('b')
    const jobs = [jobOf(business, 's', 1), jobOf(business, 's', 2)]
    expect((await deliverAll(intake, database, jobs)).map(isHeld)).toEqual([true, true])
    for (let tries = 2; tries <= 5; tries++) {
      expect(await readTurns(database, business, 's')).toEqual([])
      await release(intake, database)
    }
    await release(intake, database)
    expect(await readTurns(database, business, 's')).toEqual(['2'])
    expect(await count(database, 'rejected_jobs WHERE job_id = $1', [jobs[0]?.id])).toBe(1)
  })
})

describe.runIf(process.env.MASON_TEST_BACKEND === 'served')('jobs on Redis', () => {
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
