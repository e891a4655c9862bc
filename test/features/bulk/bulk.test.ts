// backends: either

import { describe, expect } from 'vitest'
import type { Runtime } from '../../../src/app/api.ts'
import { settleRun } from '../../../src/engine/runs/settlement.ts'
import { bulkRef } from '../../../src/features/bulk/bulk.ref.ts'
import type { BulkJob } from '../../../src/features/bulk/bulk-job.ts'
import { actInBulk, createBulkWork } from '../../../src/features/bulk/bulk-work.ts'
import type { Database } from '../../../src/infra/database/database.ts'
import { silentLog } from '../../../src/infra/lib/silent-log.ts'
import { MasonError } from '../../../src/state/errors.ts'
import { unique } from '../../support/backend.ts'
import { deferred } from '../../support/deferred.ts'
import type { TestServer } from '../../support/http.ts'
import { adminToken, runtimeTest } from '../../support/integration-test.ts'
import { codeOf, count, submitTo } from '../../support/runs.ts'

const test = runtimeTest.extend('runtimeOptions', { scope: 'file' }, { worker: false })
const failure = { status: 'failed', reason: 'poison', error: { code: 'poison', message: 'x' } } as const

/** Runs that wait for an hour. */
const submitMany = async (database: Database, business: string, runs: number): Promise<string[]> => {
  const ids: string[] = []
  for (let nth = 0; nth < runs; nth++)
    ids.push((await submitTo(database, business, { delay_ms: 3_600_000, metadata: { nth } })).id)
  return ids
}
const fail = (database: Database, business: string, runId: string) =>
  database.asBusiness(business, (sql) => settleRun(sql, business, runId, failure))

const createClient = (
  server: TestServer,
  database: Database,
  runtime: Pick<Runtime, 'of'>,
  business: string,
) => {
  const work = createBulkWork({
    ...{ database, log: silentLog, leaseMs: 30_000 },
    act: (job, runId) => actInBulk(runtime.of(job.tenant), job, runId),
  })
  const call = async (method: string, path: string, json?: unknown) =>
    server.call(method, `/v1/runs/bulk${path}?business_id=${business}`, {
      token: adminToken,
      ...(json !== undefined && { json }),
    })
  const read = async (id: string): Promise<BulkJob> => (await call('GET', `/${id}`)).body
  return {
    call,
    read,
    finish: async (id: string): Promise<BulkJob> => {
      await work.run()
      return read(id)
    },
  }
}

describe('an action on many runs', () => {
  test('makes a fixed list that does nothing, and cancels those of the list once it is confirmed', async ({
    server,
    database,
    runtime,
  }) => {
    const business = unique('b')
    const { call, read, finish } = createClient(server, database, runtime, business)
    const ids = await submitMany(database, business, 12)
    await fail(database, business, ids[0] as string)
    const made = await call('POST', '', { action: 'cancel', filter: {}, reason: 'a wrong import' })
    expect(made).toMatchObject({
      status: 201,
      body: { status: 'unconfirmed', count: 11, done: 0, refusals: [] },
    })
    expect(made.headers.get('location')).toBe(`/v1/runs/bulk/${made.body.id}`)
    const late = await submitMany(database, business, 1)
    // it ends by itself before the list is confirmed
    await fail(database, business, ids[1] as string)
    expect(await read(made.body.id)).toEqual(made.body)
    const confirm = { confirm: made.body.id }
    expect(await call('POST', '', confirm)).toMatchObject({
      status: 202,
      body: { count: 11, confirmed_at: expect.any(String) },
    })
    const job = await finish(made.body.id)
    expect(job).toMatchObject({
      ...{ action: 'cancel', reason: 'a wrong import', count: 11, done: 10, refused: 1 },
      ...{ refusals: [{ run_id: ids[1], code: 'run_ended' }], ended_at: expect.any(String) },
    })
    expect(await call('POST', '', confirm)).toMatchObject({ status: 202, body: job })
    const { data } = await runtime.of(business).runs({ limit: 50 })
    expect(Object.fromEntries(data.map(({ id, status }) => [id, status]))).toEqual({
      ...Object.fromEntries(ids.map((id, nth) => [id, nth < 2 ? 'failed' : 'cancelled'])),
      ...Object.fromEntries(late.map((id) => [id, 'queued'])),
    })
  })

  test('retries the failed runs that a filter finds, each once', async ({ server, database, runtime }) => {
    const business = unique('b')
    const { call, finish } = createClient(server, database, runtime, business)
    const ids = await submitMany(database, business, 6)
    for (const id of ids.slice(0, 4)) await fail(database, business, id)
    const of = async (filter: object): Promise<number> =>
      (await call('POST', '', { action: 'retry', filter })).body.count
    expect(await of({ status: 'queued' })).toBe(0)
    expect(await of({ metadata: { nth: '1' } })).toBe(1)
    expect(await of({ error: 'poison', from: '2020-01-01' })).toBe(4)
    expect(await of({ to: '2020-01-01' })).toBe(0)
    const { body } = await call('POST', '', { action: 'retry', filter: { error: 'poison' } })
    await call('POST', '', { confirm: body.id })
    expect(await finish(body.id)).toMatchObject({ done: 4, refused: 0 })
    const { data } = await runtime.of(business).runs({ limit: 50 })
    expect(data.flatMap(({ retry_of }) => retry_of ?? []).sort()).toEqual(ids.slice(0, 4).sort())
  })

  test('names what is wrong with a request, and is not found by other businesses', async ({
    server,
    database,
    runtime,
  }) => {
    const business = unique('b')
    const { call } = createClient(server, database, runtime, business)
    await submitMany(database, business, 1)
    const { body } = await call('POST', '', { action: 'cancel', filter: {} })
    for (const [json, pointer] of [
      [{}, '/action'],
      [{ action: 'cancel' }, '/filter'],
      [{ action: 'delete', filter: {} }, '/action'],
      [{ action: 'cancel', filter: { colour: 'x' } }, '/filter'],
      [{ action: 'cancel', confirm: body.id }, '/action'],
      [{ confirm: 'x' }, '/confirm'],
    ] as const) {
      const refused = await call('POST', '', json)
      expect([json, refused.status, refused.body.errors[0].pointer]).toEqual([
        json,
        422,
        expect.stringContaining(pointer),
      ])
    }
    const other = createClient(server, database, runtime, unique('b'))
    expect(await other.call('POST', '', { confirm: body.id })).toMatchObject({ status: 404 })
    expect(await other.call('GET', `/${body.id}`)).toMatchObject({ status: 404, body: { code: 'not_found' } })
    expect(await other.call('POST', `/${body.id}/cancel`)).toMatchObject({ status: 404 })
  })

  test('of more than 10,000 runs is refused, and leaves no list', async ({ database, runtime }) => {
    const business = unique('b')
    const [id] = await submitMany(database, business, 1)
    await database.query(
      `INSERT INTO runs (tenant, run_id, session_id, turn, status, created_at, expires_at, run_at)
       SELECT tenant, 'many-' || n, session_id, n + 1, 'queued', created_at, expires_at, run_at FROM runs, generate_series(1, 10000) n
       WHERE run_id = $1`,
      [id],
    )
    await database.query(
      `INSERT INTO run_requests (tenant, run_id, user_id, request, metadata)
       SELECT tenant, 'many-' || n, user_id, request, metadata FROM run_requests, generate_series(1, 10000) n WHERE run_id = $1`,
      [id],
    )
    const bulk = runtime.features.get(bulkRef).of(business)
    expect(await codeOf(bulk.list({ action: 'cancel', filter: {} }))).toBe('invalid_request')
    expect(await count(database, 'bulk_jobs WHERE tenant = $1', [business])).toBe(0)
    await database.query(`DELETE FROM runs WHERE run_id = 'many-1'`)
    expect((await bulk.list({ action: 'cancel', filter: {} })).count).toBe(10_000)
  })
})

describe('the work on a list', () => {
  const openList = async (database: Database, runtime: Pick<Runtime, 'features'>, runs: number) => {
    const business = unique('b')
    const ids = await submitMany(database, business, runs)
    const bulk = runtime.features.get(bulkRef).of(business)
    const { id } = await bulk.list({ action: 'cancel', filter: {} })
    await bulk.confirm(id)
    return { business, ids, bulk, id }
  }
  /** A worker that notes what it acts on, after `act`. */
  const createWork = (database: Database, act: (runId: string, nth: number) => Promise<unknown>) => {
    const acted: string[] = []
    const work = createBulkWork({
      ...{ database, log: silentLog, leaseMs: 30_000 },
      act: async (_, runId) => act(runId, acted.push(runId)),
    })
    return { ...work, acted }
  }
  const lapse = (database: Database, id: string) =>
    database.query('UPDATE bulk_jobs SET due_at = clock_timestamp() WHERE job_id = $1', [id])

  test('stops when the job is cancelled, and what is done stays so', async ({ database, runtime }) => {
    const { ids, bulk, id } = await openList(database, runtime, 20)
    const { run, acted } = createWork(database, async (_, nth) => nth === 8 && bulk.cancel(id))
    await run()
    expect(acted).toEqual(ids.slice(0, 8))
    const job = await bulk.get(id)
    expect(job).toMatchObject({ status: 'cancelled', count: 20, done: 8, ended_at: expect.any(String) })
    expect(await bulk.cancel(id)).toEqual(job)
    expect(await bulk.confirm(id)).toEqual(job)
  })

  test('goes on in another worker where one hands it over, or lost its lease', async ({
    database,
    runtime,
  }) => {
    const { ids, bulk, id } = await openList(database, runtime, 30)
    const first = createWork(database, async (_, nth) => nth === 8 && first.stop())
    await first.run()
    const [gate, holds] = [deferred(), deferred()]
    const second = createWork(database, (_, nth) => {
      if (nth === 8) holds.resolve()
      return gate.promise
    })
    const frozen = second.run()
    await holds.promise
    const third = createWork(database, async () => {})
    // the lease holds
    await third.run()
    expect(third.acted).toEqual([])
    await lapse(database, id)
    await third.run()
    gate.resolve()
    await frozen
    expect([first.acted, second.acted]).toEqual([ids.slice(0, 8), ids.slice(8, 16)])
    expect(third.acted).toEqual(ids.slice(8))
    expect(await bulk.get(id)).toMatchObject({ status: 'completed', done: 30 })
  })

  test('waits where a quota is used up, and refuses what is not possible', async ({ database, runtime }) => {
    const { ids, bulk, id } = await openList(database, runtime, 3)
    const refusing = createWork(database, async (runId, nth) => {
      if (nth <= 3 && runId === ids[1]) throw new MasonError('too_many_requests', 'x')
      if (runId === ids[2]) throw new MasonError('run_ended', 'x')
    })
    await refusing.run()
    expect(await bulk.get(id)).toMatchObject({ status: 'running', done: 1, refused: 1 })
    await refusing.run()
    expect(refusing.acted).toHaveLength(3)
    await lapse(database, id)
    await refusing.run()
    expect(refusing.acted.slice(3)).toEqual([ids[1]])
    expect(await bulk.get(id)).toMatchObject({
      ...{ status: 'completed', done: 2, refusals: [{ run_id: ids[2], code: 'run_ended' }] },
    })
  })
})
