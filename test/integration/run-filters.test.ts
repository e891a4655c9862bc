import { describe, expect } from 'vitest'
import { listRuns, type RunFilter } from '../../src/engine/runs/run-queries.ts'
import { deleteSession } from '../../src/engine/sessions/delete-session.ts'
import type { Database } from '../../src/infra/database/database.ts'
import { unique } from '../support/backend.ts'
import { adminToken, runtimeTest as test } from '../support/integration-test.ts'
import { count, submitTo } from '../support/runs.ts'
import { deadline } from '../support/test-runtime.ts'

describe('the list of runs', () => {
  test('has those of an idempotency key and of members of the metadata, which all must match', async ({
    runtime,
    database,
  }) => {
    const api = runtime.of(unique('b'))
    const submit = async (metadata: Record<string, unknown>, key?: string) =>
      (await api.submit({ prompt: 'x', user_id: 'u', metadata, delay_ms: 60_000 } as never, key)).run.id
    const a = await submit({ shop: 'north', order: 7, paid: true, note: null, lines: [1] }, 'key a')
    const b = await submit({ shop: 'north', order: '7' }, 'key b')
    const c = await submit({
      shop: 'south',
      'a.b&=': 'é ☃',
      'n\u0000': 'half \ud83d',
      long: 'x'.repeat(9_000),
    })
    const find = async (filter: Omit<RunFilter, 'limit'>) =>
      (await api.runs({ ...filter, limit: 10 })).data.map(({ id }) => id)
    expect(await find({ idempotency_key: 'key a' })).toEqual([a])
    expect(await find({ idempotency_key: 'key c' })).toEqual([])
    expect(await find({ metadata: { shop: 'north' } })).toEqual([b, a])
    expect(await find({ metadata: { order: '7' } })).toEqual([b, a])
    expect(await find({ metadata: { order: '7', paid: 'true', note: 'null' } })).toEqual([a])
    expect(await find({ metadata: { order: '7', shop: 'south' } })).toEqual([])
    expect(await find({ metadata: { shop: 'north' }, idempotency_key: 'key b', status: 'queued' })).toEqual([
      b,
    ])
    expect(await find({ metadata: { shop: 'north' }, user_id: 'stranger' })).toEqual([])
    expect(await find({ metadata: { lines: '1' } })).toEqual([])
    expect(await find({ metadata: { 'a.b&=': 'é ☃', long: 'x'.repeat(9_000) } })).toEqual([c])
    expect(await find({ metadata: { 'n\ufffd': 'half \ufffd' } })).toEqual([c])
    const other = runtime.of(unique('b'))
    await other.submit({ prompt: 'x', user_id: 'u', delay_ms: 60_000 })
    expect((await other.runs({ metadata: { shop: 'north' }, limit: 10 })).data).toEqual([])
    expect((await other.runs({ idempotency_key: 'key a', limit: 10 })).data).toEqual([])
    // an expired key still finds its run
    await database.query('DELETE FROM idempotency')
    expect(await find({ idempotency_key: 'key a' })).toEqual([a])
  })

  test('pages through a member of the metadata, which forks have too and deleted sessions do not', async ({
    runtime,
    database,
  }) => {
    const business = unique('b')
    const api = runtime.of(business)
    const { run } = await api.submit({ prompt: 'x', user_id: 'u', metadata: { shop: 'north' } })
    await api.wait(run, deadline())
    const fork = await api.fork(run.session_id, 1)
    const later = await submitTo(database, business, { metadata: { shop: 'north' }, delay_ms: 60_000 })
    const ids: string[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page = await api.runs({ metadata: { shop: 'north' }, limit: 1, ...(cursor && { cursor }) })
      ids.push(...page.data.map(({ id }) => id))
      cursor = page.next_cursor
    }
    expect(ids[0]).toBe(later.id)
    expect(ids.slice(1).sort()).toEqual([run.id, fork?.turns[0]?.run_id].sort())
    for (const id of [run.session_id, fork?.id ?? '', later.session_id])
      expect(await deleteSession(database, business, id)).toBe(true)
    expect(await count(database, 'run_metadata WHERE tenant = $1', [business])).toBe(0)
  })

  test('takes metadata.<key> over HTTP, and refuses other unknown names', async ({ server, runtime }) => {
    const { run } = await runtime
      .of('default')
      .submit({ prompt: 'x', user_id: 'u', metadata: { 'a b': 'c&d' }, delay_ms: 60_000 }, 'over http')
    const get = (query: string) => server.call('GET', `/v1/runs?${query}`, { token: adminToken })
    for (const query of ['metadata.a%20b=c%26d', 'idempotency_key=over%20http'])
      expect(await get(query)).toMatchObject({ status: 200, body: { data: [{ id: run.id }] } })
    expect((await get('metadata.a%20b=c')).body.data).toEqual([])
    for (const [query, pointer] of [
      ['metadat.x=1', '/metadat.x'],
      ['metadata.x=1&metadata.x=2', '/metadata.x'],
      ['idempotency_key=', '/idempotency_key'],
    ] as const)
      expect(await get(query)).toMatchObject({ status: 422, body: { errors: [{ pointer }] } })
  })
})

/** The full count: MASON_TEST_ROWS=1000000. */
const rows = Number(process.env.MASON_TEST_ROWS ?? 20_000)

const fill = async (database: Database, business: string): Promise<void> => {
  await submitTo(database, business, { metadata: { env: 'prod', order: 'rare' } })
  const insert = (text: string) => database.query(text, [business, rows])
  await insert(`INSERT INTO sessions (tenant, session_id, user_id, turns)
    SELECT $1, 'ses_' || n, 'u', 1 FROM generate_series(1, $2::int) n`)
  await insert(`INSERT INTO runs (tenant, run_id, session_id, turn, status, expires_at, created_at)
    SELECT $1, 'run_' || n, 'ses_' || n, 1, 'completed', now(), now() - n * interval '1 second' FROM generate_series(1, $2::int) n`)
  await insert(`INSERT INTO run_requests (tenant, run_id, user_id, request, metadata, idempotency_key)
    SELECT $1, 'run_' || n, 'u', '{"prompt":"x","files":[]}', '{}', 'key ' || n FROM generate_series(1, $2::int) n`)
  // each has what the first has, and one of its own
  await insert(`INSERT INTO run_metadata (tenant, run_id, entry, created_at)
    SELECT $1, 'run_' || n, e, now() - n * interval '1 second' FROM generate_series(1, $2::int) n,
      unnest(ARRAY[(SELECT entry FROM run_metadata WHERE tenant = $1 ORDER BY entry LIMIT 1), md5($1 || n)::uuid]) AS e`)
}

describe('a filter', () => {
  // in PGlite no one analyzes
  test.runIf(process.env.MASON_TEST_BACKEND === 'served')(
    `reads few blocks of ${rows} runs`,
    async ({ elsewhere, database }) => {
      const business = unique('b')
      await fill(database, business)
      type Plan = { 'Node Type': string; 'Relation Name'?: string; Plans?: Plan[] }
      const blocks = async (filter: Omit<RunFilter, 'limit'>) => {
        let report = { read: 0, scans: [] as string[] }
        await database.asBusiness(business, async (sql) => {
          const explaining = {
            query: async (text: string, values?: readonly unknown[]) => {
              const explained = await sql.query<{ 'QUERY PLAN': [{ Plan: Plan & Record<string, number> }] }>(
                `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`,
                values,
              )
              const plan = explained.rows[0]?.['QUERY PLAN'][0].Plan
              const list = (part: Plan): string[] => [
                ...(part['Node Type'] === 'Seq Scan' ? [String(part['Relation Name'])] : []),
                ...(part.Plans ?? []).flatMap(list),
              ]
              if (plan)
                report = {
                  read: (plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0),
                  scans: list(plan),
                }
              return { rows: [] }
            },
          }
          await listRuns(explaining as never, business, { ...filter, limit: 50 })
        })
        return report
      }
      await elsewhere.query('ANALYZE runs, run_requests, run_metadata, sessions')
      const figures: unknown[] = []
      for (const filter of [
        { idempotency_key: 'key 7' },
        { metadata: { env: 'prod' } },
        { metadata: { order: 'rare' } },
        { metadata: { order: 'rare', env: 'prod' } },
        { metadata: { env: 'prod', order: 'rare' } },
      ]) {
        const { read, scans } = await blocks(filter)
        figures.push({ filter, read, ok: read < 2_500 && scans.length === 0 })
      }
      if (rows > 20_000) console.log(JSON.stringify(figures))
      expect(figures.filter((one) => !(one as { ok: boolean }).ok)).toEqual([])
    },
  )
})
