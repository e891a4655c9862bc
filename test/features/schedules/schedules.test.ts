// backends: either
// asserts: invariants

import { describe, expect } from 'vitest'
import { fireSchedules } from '../../../src/features/schedules/schedule-firing.ts'
import type { Database } from '../../../src/infra/database/database.ts'
import { silentLog } from '../../../src/infra/lib/silent-log.ts'
import { unique } from '../../support/backend.ts'
import { minutesUntil } from '../../support/clock.ts'
import { adminToken, runtimeTest } from '../../support/integration-test.ts'
import { codeOf, count, until } from '../../support/runs.ts'

/** Without a worker: each test fires what is due itself, as one of several workers. */
const test = runtimeTest
  .extend('runtimeOptions', { scope: 'file' }, () => ({ worker: false }))
  .extend(
    'admin',
    { scope: 'file' },
    ({ server }) =>
      (method: string, path: string, json?: object) =>
        server.call(method, `/admin/v1/schedules${path}`, { token: adminToken, ...(json && { json }) }),
  )
  .extend(
    'fire',
    { scope: 'file' },
    ({ runtime, database }) =>
      () =>
        fireSchedules(
          database,
          (business, request, key) => runtime.of(business).submit(request, key),
          silentLog,
        ),
  )

const request = { prompt: 'Report', user_id: 'ann' }
const daily = { name: 'report', cron: '0 9 * * *', request }

/** As if the planned time had come so many minutes ago. */
const makeDue = (database: Database, id: string, minutes: number) =>
  database.query(
    `UPDATE schedules SET next_at = due, try_at = due FROM (SELECT date_trunc('minute', clock_timestamp()) - $2::int * interval '1 minute' AS due) t
     WHERE schedule_id = $1`,
    [id, minutes],
  )
const runsOf = (database: Database, business: string) => count(database, 'runs WHERE tenant = $1', [business])

describe('schedules', () => {
  test('are made, read, changed, paused, resumed, run now and deleted, each of its business', async ({
    admin,
  }) => {
    const business_id = unique('plan')
    const query = `?business_id=${business_id}`
    const made = await admin('POST', '', { ...daily, business_id, time_zone: 'Europe/Berlin' })
    expect(made.status).toBe(201)
    expect(made.body).toMatchObject({
      ...{ business_id, name: 'report', cron: '0 9 * * *', at: null, time_zone: 'Europe/Berlin' },
      ...{ catch_up: 'last', status: 'active', request, last_run_id: null, last_error: null },
    })
    expect(made.headers.get('location')).toBe(`/admin/v1/schedules/${made.body.id}${query}`)
    expect(minutesUntil(made.body.next_at)).toBeGreaterThan(0)
    const path = `/${made.body.id}`
    expect((await admin('GET', path)).status).toBe(404)
    expect((await admin('GET', path + query)).body).toEqual(made.body)
    expect((await admin('GET', query)).body.data).toEqual([made.body])

    const paused = await admin('POST', `${path}/pause${query}`)
    expect(paused.body).toMatchObject({ status: 'paused', next_at: null })
    expect((await admin('POST', `${path}/resume${query}`)).body.next_at).toBe(made.body.next_at)
    const at = '2999-01-01T10:00:00+02:00'
    const once = await admin('PATCH', path + query, { cron: null, at, name: 'once' })
    expect(once.body).toMatchObject({
      cron: null,
      at: '2999-01-01T08:00:00.000Z',
      next_at: '2999-01-01T08:00:00.000Z',
      name: 'once',
    })
    expect((await admin('GET', query)).body.data).toEqual([once.body])
    const run = await admin('POST', `${path}/run${query}`)
    expect(run.body).toMatchObject({ id: expect.stringMatching(/^run_/), turn: 1, status: 'queued' })
    expect((await admin('DELETE', path + query)).status).toBe(204)
    expect((await admin('GET', path + query)).status).toBe(404)
  })

  test('takes a change of its request whose check reads the database', async ({ admin }) => {
    const { id } = (await admin('POST', '', daily)).body
    const changed = await admin('PATCH', `/${id}`, {
      request: { ...request, webhook_url: 'https://shop.example/hook' },
    })
    expect(changed.body.request).toMatchObject({ webhook_url: 'https://shop.example/hook' })
    const refused = { request: { ...request, webhook_url: 'http://127.0.0.1/' } }
    expect((await admin('PATCH', `/${id}`, refused)).body.errors).toMatchObject([
      { pointer: '/request/webhook_url' },
    ])
    expect((await admin('PATCH', '/none', refused)).status).toBe(404)
  })

  test.for<[object, string]>([
    [{ cron: 'every day' }, '/cron'],
    [{ cron: '0 0 31 2 *' }, '/cron'],
    [{ cron: null }, '/cron'],
    [{ at: '2999-01-01T10:00:00Z' }, '/cron'],
    [{ cron: null, at: '2001-01-01T10:00:00Z' }, '/at'],
    [{ cron: null, at: 'tomorrow' }, '/at'],
    [{ time_zone: 'Mars/Base' }, '/time_zone'],
    [{ catch_up: 'some' }, '/catch_up'],
    [{ request: { prompt: 'p' } }, '/request/user_id'],
    [{ request: { ...request, business_id: 'b' } }, '/request/business_id'],
    [{ request: { ...request, tools: ['none'] } }, '/request/tools/0'],
    [{ request: { ...request, webhook_url: 'http://127.0.0.1/' } }, '/request/webhook_url'],
    [
      { request: { ...request, files: [{ name: 'a', type: 'text/plain', content_base64: 'YQ==' }] } },
      '/request/files',
    ],
  ])('%j is refused at %s', async ([change, pointer], { admin }) => {
    const reply = await admin('POST', '', { ...daily, ...change })
    expect([reply.status, reply.body.code]).toEqual([422, 'invalid_request'])
    expect(reply.body.errors.map((error: { pointer: string }) => error.pointer)).toContain(pointer)
  })
})

describe('a planned time', () => {
  test('is one run, however many workers fire it and however often one is killed in between', async ({
    admin,
    database,
    fire,
  }) => {
    const business_id = unique('plan')
    const { id, next_at } = (await admin('POST', '', { ...daily, business_id })).body
    await makeDue(database, id, 1)
    // a worker that is killed after it submitted: the claim lapses, and another fires the same time
    await Promise.all([fire(), fire(), fire()])
    const first = (await admin('GET', `/${id}?business_id=${business_id}`)).body
    expect(first).toMatchObject({ last_run_id: expect.stringMatching(/^run_/), last_error: null, next_at })
    await database.query(
      'UPDATE schedules SET next_at = last_planned_at, try_at = last_planned_at WHERE schedule_id = $1',
      [id],
    )
    await fire()
    expect((await admin('GET', `/${id}?business_id=${business_id}`)).body.last_run_id).toBe(first.last_run_id)
    expect(await runsOf(database, business_id)).toBe(1)
  })

  test.for([
    ['none', 0],
    ['last', 1],
    ['all', 11],
  ] as const)(
    'that passed while no worker was there: %s fires %i',
    async ([catch_up, expected], { admin, database, fire }) => {
      const business_id = unique('plan')
      const plan = { ...daily, cron: '*/6 * * * *', business_id, catch_up }
      const { id } = (await admin('POST', '', plan)).body
      // the latest is between six and seven minutes ago, too late for none
      await database.query(
        `UPDATE schedules SET cron = m || '-59/60,' || m || ' * * * *', next_at = t - interval '10 hours', try_at = t - interval '10 hours'
       FROM (SELECT t, extract(minute FROM t)::int AS m FROM (SELECT date_trunc('minute', clock_timestamp()) - interval '6 minutes' AS t) n) n
       WHERE schedule_id = $1`,
        [id],
      )
      await fire()
      expect(await runsOf(database, business_id)).toBe(expected)
      const { last_error } = (await admin('GET', `/${id}?business_id=${business_id}`)).body
      expect(last_error?.code).toBe(catch_up === 'none' ? 'missed' : undefined)
    },
  )

  test('of a schedule for one time ends it', async ({ admin, database, fire }) => {
    const business_id = unique('plan')
    const { id } = (
      await admin('POST', '', { ...daily, business_id, cron: null, at: '2999-01-01T10:00:00Z' })
    ).body
    await makeDue(database, id, 0)
    await fire()
    expect((await admin('GET', `/${id}?business_id=${business_id}`)).body).toMatchObject({
      status: 'ended',
      next_at: null,
    })
    expect(await runsOf(database, business_id)).toBe(1)
    const resumed = await admin('POST', `/${id}/resume?business_id=${business_id}`)
    expect(resumed.body).toMatchObject({ status: 'ended' })
  })

  test('that is refused has its reason in the row: one that may pass is tried again, another is skipped', async ({
    admin,
    database,
    fire,
  }) => {
    const business_id = unique('plan')
    const read = async (id: string) => (await admin('GET', `/${id}?business_id=${business_id}`)).body
    const other = (
      await admin('POST', '', { ...daily, business_id, request: { ...request, session_id: 's-1' } })
    ).body
    await admin('POST', `/${other.id}/run?business_id=${business_id}`)
    await database.query(`UPDATE sessions SET user_id = 'bob' WHERE tenant = $1`, [business_id])
    await makeDue(database, other.id, 0)
    await fire()
    expect(await read(other.id)).toMatchObject({
      last_run_id: null,
      last_error: { code: 'session_of_another_user' },
      next_at: other.next_at,
    })

    await database.query('UPDATE businesses SET quota_queued_runs = 1 WHERE tenant = $1', [business_id])
    // a schedule of its own each time: that of the time before has a run already where the quota was not known yet
    const full = await until('the quota is full', async () => {
      const { id } = (await admin('POST', '', { ...daily, business_id })).body
      await makeDue(database, id, 0)
      await fire()
      return (await read(id)).last_error && { id }
    })
    const refused = await read(full.id)
    expect(refused.last_error).toMatchObject({ code: 'too_many_requests', planned_at: refused.next_at })
    await database.query('UPDATE businesses SET quota_queued_runs = NULL WHERE tenant = $1', [business_id])
    await until('it is tried again', async () => {
      await database.query('UPDATE schedules SET try_at = clock_timestamp() WHERE schedule_id = $1', [
        full.id,
      ])
      await fire()
      return (await read(full.id)).last_error === null
    })
  })
})

/** With MASON_SCHEDULES=10000 as the issue has it; fewer in every test run. */
const many = Number(process.env.MASON_SCHEDULES ?? 300)

test(
  'thousands that are due at once delay no other business, and each is one run',
  async ({ admin, database, fire }) => {
    const [crowd, alone] = [unique('crowd'), unique('alone')]
    const { id } = (await admin('POST', '', { ...daily, business_id: crowd })).body
    await database.query(
      `INSERT INTO schedules (tenant, schedule_id, name, cron, time_zone, catch_up, request, next_at, try_at)
     SELECT tenant, 'sch_' || n, name, cron, time_zone, catch_up, request, clock_timestamp(), clock_timestamp()
     FROM schedules, generate_series(1, $2::int) n WHERE schedule_id = $1`,
      [id, many],
    )
    const other = (await admin('POST', '', { ...daily, business_id: alone })).body
    await makeDue(database, other.id, 0)
    const fired = fire()
    await until('the other business has its run', () => runsOf(database, alone))
    const crowdBefore = await runsOf(database, crowd)
    const sum = await fired
    expect(sum).toEqual({ fired: many + 1, failed: 0 })
    expect(await runsOf(database, crowd)).toBe(many)
    expect(crowdBefore).toBeLessThan(many)
    expect(await codeOf(fire())).toBe('no error')
    expect(await runsOf(database, crowd)).toBe(many)
  },
  180_000 + 60 * many,
)
