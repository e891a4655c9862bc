// backends: either

import { describe, expect } from 'vitest'
import { listAllRuns, toReadOnly } from '../../../src/features/overview/all-runs.ts'
import type { Database } from '../../../src/infra/database/database.ts'
import type { RunPage } from '../../../src/state/run-view.ts'
import { unique } from '../../support/backend.ts'
import { adminToken, runtimeTest } from '../../support/integration-test.ts'
import { submitTo } from '../../support/runs.ts'

const test = runtimeTest.extend('runtimeOptions', { scope: 'file' }, { worker: false })
const businesses = ['a', 'b', 'c', 'd'].map(unique)
/** The ids of all runs, the latest first, and whose they are. */
let ids: string[]
const ofBusiness = new Map<string, string>()

/** All pages: one that looked for a second goes on in the next. */
const readAll = async (read: (cursor?: string) => Promise<RunPage>) => {
  const runs: RunPage['data'] = []
  for (let cursor: string | undefined, pages = 1; ; pages++) {
    const page = await read(cursor)
    runs.push(...page.data)
    if (page.next_cursor === null) return { runs, ids: runs.map(({ id }) => id), pages }
    cursor = page.next_cursor
  }
}
const readWithin = (database: Database, limit: number, ms?: number) =>
  readAll((cursor) => listAllRuns(database, { limit, ...(cursor && { cursor }) }, ms))

test.beforeAll(async ({ database }) => {
  ids = []
  // of the last business there are none, and the first ones are of one alone
  for (const nth of [0, 0, 0, 0, 1, 2, 1, 0, 2, 2, 1, 0]) {
    const business = businesses[nth] as string
    const { id } = await submitTo(database, business, {
      delay_ms: 3_600_000,
      user_id: nth === 2 ? 'eve' : 'ann',
    })
    ids.unshift(id)
    ofBusiness.set(id, business)
  }
})

describe('the runs of all businesses', () => {
  test('come in one order, in pages of any size, to the admin token', async ({ server }) => {
    const read = (query: string) =>
      readAll(async (cursor) => {
        const path = `/v1/runs?business_id=*&${query}${cursor ? `&cursor=${cursor}` : ''}`
        const { status, body } = await server.call('GET', path, { token: adminToken })
        expect([status, body.detail]).toEqual([200, undefined])
        return body
      })
    for (const limit of [1, 2, 3, 5, 12]) expect((await read(`limit=${limit}`)).ids).toEqual(ids)
    const { runs } = await read('limit=50')
    expect(runs.map(({ id, business_id }) => [id, business_id])).toEqual(
      ids.map((id) => [id, ofBusiness.get(id)]),
    )
    const ofEve = ids.filter((id) => ofBusiness.get(id) === businesses[2])
    expect((await read('limit=50&user_id=eve')).ids).toEqual(ofEve)
    expect((await read('limit=50&status=failed')).ids).toEqual([])
    expect((await read('limit=50&to=2020-01-01')).ids).toEqual([])
    expect((await read(`limit=50&from=${runs[3]?.created_at}`)).ids.slice(0, 4)).toEqual(ids.slice(0, 4))
  })

  test('say how far they were looked for where that takes long, and go on from there', async ({
    database,
  }) => {
    for (const limit of [1, 4, 50]) expect((await readWithin(database, limit, -1)).ids).toEqual(ids)
    const first = await listAllRuns(database, { limit: 50 }, -1)
    expect(first).toMatchObject({ searched_to: expect.any(String), next_cursor: expect.any(String) })
    expect(first.data.length).toBeLessThan(ids.length)
  })

  test('are for no other token, one order and no count', async ({ server, runtime }) => {
    const own = {
      business_id: businesses[0] as string,
      label: 't',
      roles: ['admin', 'read', 'submit'] as never,
    }
    const { token } = await runtime.admin.tokens.create({}, own)
    const get = async (path: string, by = adminToken) =>
      (await server.call('GET', path, { token: by })).status
    expect(await get('/v1/runs?business_id=*', token)).toBe(403)
    for (const query of ['order=asc', 'count=true', 'limit=0'])
      expect([query, await get(`/v1/runs?business_id=*&${query}`)]).toEqual([query, 422])
    for (const path of ['/v1/sessions', `/v1/runs/${ids[0]}`, '/v1/input-requests'])
      expect([path, await get(`${path}?business_id=*`)]).toEqual([path, 422])
    const post = await server.call('POST', '/v1/runs?business_id=*', {
      ...{ token: adminToken, json: { prompt: 'x', user_id: 'u' } },
    })
    expect(post.status).toBe(422)
  })

  test('are read in transactions that may not write', async ({ database }) => {
    const reader = toReadOnly(database)
    const write = `DELETE FROM runs WHERE run_id = '${ids[0]}'`
    const refuse = async (writing: Promise<unknown>): Promise<unknown[]> => {
      const error = await writing.catch((reason: unknown) => reason)
      const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } }
      return [code, cause?.code]
    }
    const readOnly = '25006'
    expect(await refuse(reader.asBusiness(businesses[0] as string, (sql) => sql.query(write)))).toContain(
      readOnly,
    )
    expect(await refuse(reader.transaction((sql) => sql.query(write)))).toContain(readOnly)
    expect((await readWithin(database, 50)).ids).toEqual(ids)
  })
})
