// backends: both
// asserts: invariants

import { describe, expect } from 'vitest'
import { createUserProfiles } from '../../../src/accounts/users.ts'
import { createBacklogReader } from '../../../src/engine/runs/backlog.ts'
import { type ClaimOrder, claimNextRun, type RunClaim } from '../../../src/engine/runs/claim.ts'
import { handBackRun } from '../../../src/engine/runs/release.ts'
import { cancelRun } from '../../../src/engine/runs/settlement.ts'
import type { Database } from '../../../src/infra/database/database.ts'
import { test } from '../../support/integration-test.ts'
import {
  appendAction,
  claim,
  codeOf,
  endLease,
  entry,
  mustClaim,
  rowOf,
  submitTo,
} from '../../support/runs.ts'
import { isSaidByServers } from '../../support/tier.ts'

test.afterEach(async ({ database }) => {
  for (const table of ['outbox', 'actions', 'sessions', 'idempotency', 'users'])
    await database.query(`DELETE FROM ${table}`)
  await database.query('DELETE FROM businesses')
})

const finish = (database: Database, run: RunClaim) =>
  database.query(`UPDATE runs SET status = 'completed', lease_until = NULL WHERE run_id = $1`, [run.run_id])

describe('a claim', () => {
  test('takes a lease under a new epoch and gives the request and the id of the first action', async ({
    database,
  }) => {
    const run = await submitTo(database, 'a', { prompt: 'do it', metadata: { x: 1 } })
    const claimed = await mustClaim(database, 'me', 5000)
    expect(claimed).toMatchObject({
      tenant: 'a',
      run_id: run.id,
      session_id: run.session_id,
      turn: 1,
      user_id: 'u1',
    })
    expect(claimed).toMatchObject({ epoch: 1, next_seq: 1, stalls: 1, worked_ms: 0, cancel_requested: false })
    expect(claimed.request).toMatchObject({ prompt: 'do it', metadata: { x: 1 }, files: [] })
    const { rows } = await database.query(
      `SELECT status, lease_owner, lease_until - started_at BETWEEN interval '4.9 seconds' AND interval '5.1 seconds' AS leased,
         started_at IS NOT NULL AS started, (SELECT count(*)::int FROM outbox) AS wake_ups FROM runs`,
    )
    expect(rows).toEqual([{ status: 'running', lease_owner: 'me', leased: true, started: true, wake_ups: 0 }])
  })

  test('finds nothing where nothing is due, and never what another worker holds', async ({ database }) => {
    expect(await claim(database)).toBeNull()
    await submitTo(database, 'a')
    await submitTo(database, 'a', { delay_ms: 60_000 })
    await mustClaim(database)
    expect(await claim(database)).toBeNull()
  })

  test('passes over businesses that have their share, serves some last, and leaves suspects where it has enough', async ({
    database,
  }) => {
    for (const tenant of ['a', 'b', 'c']) await submitTo(database, tenant)
    const take = async (order: Partial<ClaimOrder>) =>
      (
        await claimNextRun(database, 'w1', 30_000, null, {
          ...{ excluded: [], last: [], takesSuspects: true },
          ...order,
        })
      )?.tenant ?? null
    expect(await take({ excluded: ['a'], last: ['b'] })).toBe('c')
    expect(await take({ excluded: ['a'], last: ['b'] })).toBe('b')
    expect(await take({ excluded: ['a'] })).toBe(null)
    await database.query(`UPDATE runs SET stalls = 2 WHERE tenant = 'a'`)
    expect(await take({ takesSuspects: false })).toBe(null)
    expect(await take({})).toBe('a')
  })

  test('takes over when the lease has ended, under a higher epoch', async ({ database }) => {
    await submitTo(database, 'a')
    const first = await mustClaim(database, 'first')
    await endLease(database, first.run_id)
    const second = await mustClaim(database, 'second')
    expect(second).toMatchObject({ run_id: first.run_id, epoch: 2, stalls: 2, next_seq: 1 })
    expect(await codeOf(appendAction(database, first, entry(1)))).toBe('lease_lost')
    expect(await codeOf(appendAction(database, second, entry(1)))).toBe('no error')
  })

  test('continues the action ids of its session', async ({ database }) => {
    const { session_id } = await submitTo(database, 'a')
    const first = await mustClaim(database)
    for (const seq of [1, 2, 3]) await appendAction(database, first, entry(seq))
    await finish(database, first)
    await submitTo(database, 'a', { session_id })
    expect(await mustClaim(database)).toMatchObject({ turn: 2, next_seq: 4 })
  })
})

describe('the order', () => {
  test('of a session is that of its turns, whatever their priority, also while one waits for a person', async ({
    database,
  }) => {
    await submitTo(database, 'a', { session_id: 's' })
    await submitTo(database, 'a', { session_id: 's', priority: 100 })
    const first = await mustClaim(database)
    expect(first.turn).toBe(1)
    expect(await claim(database)).toBeNull()
    await database.query(`UPDATE runs SET status = 'input_required', lease_until = NULL WHERE turn = 1`)
    expect(await claim(database)).toBeNull()
    await finish(database, first)
    expect((await mustClaim(database)).turn).toBe(2)
  })

  test('within a business is that of priority, then of arrival', async ({ database }) => {
    const ids: string[] = []
    for (const priority of [0, 50, 50, 100]) ids.push((await submitTo(database, 'a', { priority })).id)
    const order = [ids[3], ids[1], ids[2], ids[0]]
    for (const id of order) expect((await mustClaim(database)).run_id).toBe(id)
  })

  test('between businesses is round-robin: a backlog of one does not starve another', async ({
    database,
  }) => {
    for (let at = 0; at < 20; at++) await submitTo(database, 'a', { priority: 100 })
    for (let at = 0; at < 2; at++) await submitTo(database, 'b')
    const tenants: string[] = []
    for (let at = 0; at < 6; at++) tenants.push((await mustClaim(database)).tenant)
    expect(tenants.slice(0, 4).sort()).toEqual(['a', 'a', 'b', 'b'])
    expect(tenants.slice(4)).toEqual(['a', 'a'])
  })

  test('does not get stuck behind a session that is busy', async ({ database }) => {
    for (let at = 0; at < 30; at++) await submitTo(database, 'a', { session_id: 'busy', priority: 100 })
    const other = await submitTo(database, 'a')
    expect((await mustClaim(database)).session_id).toBe('busy')
    expect((await mustClaim(database)).run_id).toBe(other.id)
  })
})

describe('ten claimers at once', () => {
  /** Each claims until nothing is due for it; gives all claims. */
  const claimAll = async (database: Database): Promise<RunClaim[]> => {
    const claims: RunClaim[] = []
    const work = async (worker: string): Promise<void> => {
      for (;;) {
        const claimed = await claim(database, worker)
        if (!claimed) return
        claims.push(claimed)
      }
    }
    await Promise.all(Array.from({ length: 10 }, (_, at) => work(`w${at}`)))
    return claims
  }

  test('take every run that is due, each once', async ({ database }) => {
    for (let at = 0; at < 30; at++) await submitTo(database, at % 3 ? 'a' : 'b')
    const claims = await claimAll(database)
    expect(new Set(claims.map((claimed) => claimed.run_id)).size).toBe(30)
    expect(claims).toHaveLength(30)
  })

  test.skipIf(isSaidByServers)(
    'never start more runs of a business than its limit allows',
    async ({ database }) => {
      // without the guard the moment is met in every third round only
      const rounds = 20
      for (let at = 0; at < 3 * rounds; at++) await submitTo(database, 'a')
      for (let at = 0; at < 5; at++) await submitTo(database, 'b')
      await database.query(`UPDATE businesses SET max_concurrency = 3 WHERE tenant = 'a'`)
      for (let round = 1; round <= rounds; round++) {
        const claims = await claimAll(database)
        expect(claims.filter(({ tenant }) => tenant === 'a')).toHaveLength(3)
        expect(claims.filter(({ tenant }) => tenant === 'b')).toHaveLength(round === 1 ? 5 : 0)
        await Promise.all(claims.map((run) => finish(database, run)))
      }
    },
  )

  test('still find runs while others submit to the same business', async ({ database }) => {
    for (let at = 0; at < 5; at++) await submitTo(database, 'a')
    let submitting = true
    const submits = Promise.all(
      [1, 2, 3, 4].map(async () => {
        while (submitting) await submitTo(database, 'a', { delay_ms: 60_000 })
      }),
    )
    const claims = await claimAll(database)
    submitting = false
    await submits
    expect(claims).toHaveLength(5)
  })
})

describe('claims without an action', () => {
  test('are counted; an action or a clean hand-back undoes the count', async ({ database }) => {
    await submitTo(database, 'a')
    const first = await mustClaim(database)
    await endLease(database, first.run_id)
    const second = await mustClaim(database)
    expect(second.stalls).toBe(2)
    await appendAction(database, second, entry(1))
    expect((await rowOf(database, first.run_id)).stalls).toBe(0)
    expect(await handBackRun(database, second, 5)).toBe(true)
    const third = await mustClaim(database)
    expect(third.stalls).toBe(1)
    expect(await handBackRun(database, third, 5)).toBe(true)
    expect(await rowOf(database, first.run_id)).toMatchObject({
      status: 'queued',
      stalls: 0,
      lease_owner: null,
    })
    expect(await handBackRun(database, second, 5)).toBe(false)
  })

  test('of a run that was cancelled while its worker was stopping: it is settled on the way', async ({
    database,
  }) => {
    const { id } = await submitTo(database, 'a')
    const claimed = await mustClaim(database)
    await appendAction(database, claimed, entry(1))
    await cancelRun(database, 'a', id, 'enough')
    expect(await handBackRun(database, claimed, 5)).toBe(true)
    expect(await rowOf(database, id)).toMatchObject({ status: 'cancelled', next_seq: 3 })
  })
})

test('the first claim brings the profile of its user, which is read again afterwards', async ({
  database,
}) => {
  const { id } = await submitTo(database, 'a')
  const { tenant, user_id, profile: none } = await mustClaim(database)
  expect(none).toEqual({})
  const setProfile = (name: string) =>
    database.query(
      `INSERT INTO users (tenant, user_id, profile) VALUES ($1, $2, json_build_object('name', $3::text))
       ON CONFLICT (tenant, user_id) DO UPDATE SET profile = excluded.profile`,
      [tenant, user_id, name],
    )
  await setProfile('Ann')
  await database.query('UPDATE runs SET epoch = 0, lease_until = NULL WHERE run_id = $1', [id])
  const first = await mustClaim(database)
  await setProfile('Anna')
  const users = createUserProfiles(database, tenant, first)
  expect(await users.profile('another')).toEqual({})
  expect(await users.profile(user_id)).toEqual({ name: 'Ann' })
  expect(await users.profile(user_id)).toEqual({ name: 'Anna' })
  await endLease(database, id)
  const second = await mustClaim(database)
  expect(second.profile).toBeNull()
  expect(await createUserProfiles(database, tenant, second).profile(user_id)).toEqual({ name: 'Anna' })
})

describe('the backlog', () => {
  const clock = { monotonicMs: () => 0 }

  test('counts as ready what a claim would find, and not what waits for an earlier turn, for later or for a worker', async ({
    database,
  }) => {
    const read = () => createBacklogReader(database, clock)()
    expect(await read()).toMatchObject({ queued: 0, ready: 0, oldest_ready_s: 0, unlearned: 0 })
    const first = await submitTo(database, 'a')
    await submitTo(database, 'a', { session_id: first.session_id })
    await submitTo(database, 'a', { delay_ms: 60_000 })
    expect(await read()).toMatchObject({ queued: 3, running: 0, ready: 1 })
    const claimed = await mustClaim(database)
    expect(claimed).toMatchObject({ run_id: first.id, waited_ms: expect.any(Number) })
    expect(await read()).toMatchObject({ queued: 2, running: 1, ready: 0, oldest_ready_s: 0 })
    await endLease(database, first.id)
    expect(await read()).toMatchObject({ queued: 2, running: 1, ready: 1 })
    expect((await mustClaim(database)).waited_ms).toBeNull()
    // the second turn waits from now on, not from when it was submitted
    await database.query(`UPDATE runs SET run_at = run_at - interval '1 hour' WHERE session_id = $1`, [
      first.session_id,
    ])
    await database.query(
      `UPDATE runs SET status = 'failed', lease_until = NULL, ended_at = clock_timestamp() WHERE run_id = $1`,
      [first.id],
    )
    const { ready, oldest_ready_s } = await read()
    expect([ready, oldest_ready_s < 600]).toEqual([1, true])
    const { waited_ms } = await mustClaim(database)
    expect(waited_ms).toBeLessThan(600_000)
  })

  test('is read once for all scrapes within five seconds', async ({ database }) => {
    let ms = 0
    let queries = 0
    const counting = {
      query: <Row>(text: string, values?: readonly unknown[]) => {
        queries += 1
        return database.query<Row>(text, values)
      },
    }
    const read = createBacklogReader(counting, { monotonicMs: () => ms })
    await Promise.all([read(), read()])
    await read()
    expect(queries).toBe(1)
    ms = 5_000
    await read()
    expect(queries).toBe(2)
  })
})
