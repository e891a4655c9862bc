// backends: either

import { describe, expect } from 'vitest'
import { listRuns, type RunFilter } from '../../../src/engine/runs/run-queries.ts'
import { hashWords } from '../../../src/engine/runs/run-words.ts'
import { searchRuns, searchSlices } from '../../../src/engine/runs/search-runs.ts'
import { settleRun } from '../../../src/engine/runs/settlement.ts'
import { deleteSession } from '../../../src/features/user-memory/store/delete-session.ts'
import type { Database } from '../../../src/infra/database/database.ts'
import type { RunPage } from '../../../src/state/run-view.ts'
import { asOwner } from '../../support/as-owner.ts'
import { type Backend, unique } from '../../support/backend.ts'
import { adminToken, runtimeTest as test } from '../../support/integration-test.ts'
import { count, submitTo, until } from '../../support/runs.ts'
import { say } from '../../support/script.ts'
import { deadline } from '../../support/test-runtime.ts'

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

describe('failed runs', () => {
  test('are found by the code of their error and by where they failed, also ended without a worker and in forks', async ({
    runtime,
    database,
    model,
    server,
  }) => {
    const business = unique('b')
    const api = runtime.of(business)
    model.reset()
    model.script(() => ({ status: 400, body: { error: { message: 'no' } } }) as never)
    const failed = await runtime.complete({ prompt: 'x', metadata: { shop: 'north' } }, { business })
    model.reset()
    const answered = await runtime.complete({ prompt: 'x' }, { business })
    const { code = '', node = '' } = failed.error ?? {}
    expect([failed.status, answered.status, node]).toEqual(['failed', 'completed', 'planner'])
    const expiring = await submitTo(database, business, { delay_ms: 60_000 })
    const poison = { code: 'poison', message: 'given up' } as const
    await database.asBusiness(business, (sql) =>
      settleRun(sql, business, expiring.id, { status: 'failed', reason: 'poison', error: poison }),
    )

    const find = async (filter: Omit<RunFilter, 'limit'>) =>
      (await api.runs({ ...filter, limit: 10 })).data.map(({ id }) => id)
    expect(await find({ error: code })).toEqual([failed.id])
    expect(await find({ error: 'poison' })).toEqual([expiring.id])
    expect(await find({ node })).toEqual([failed.id])
    expect(await find({ node: 'answer' })).toEqual([])
    expect(await find({ error: code, node, metadata: { shop: 'north' } })).toEqual([failed.id])
    expect(await find({ error: code, metadata: { shop: 'south' } })).toEqual([])
    expect(await find({ finish_reason: 'answered' })).toEqual([answered.id])
    expect(await find({ order: 'asc' })).toEqual([failed.id, answered.id, expiring.id])
    const [first] = (await api.runs({ order: 'asc', limit: 1 })).data
    expect(await find({ from: answered.created_at })).toEqual([expiring.id, answered.id])
    expect(await find({ to: answered.created_at })).toEqual([first?.id])
    expect(await find({ error: code, to: failed.created_at })).toEqual([])
    const fork = await api.fork(
      failed.session_id,
      (await runtime.stateOf(failed.id, business)).action_history.flat().length,
    )
    expect(await find({ error: code })).toHaveLength(2)
    for (const id of [failed.session_id, fork?.id ?? '']) await deleteSession(database, business, id)
    expect(await count(database, 'run_failures WHERE tenant = $1', [business])).toBe(1)
    const get = (query: string) =>
      server.call('GET', `/v1/runs?business_id=${business}&${query}`, { token: adminToken })
    expect((await get('from=2020-01-01&to=2099-01-01&order=asc')).body.data).toHaveLength(2)
    for (const name of ['error', 'finish_reason', 'from', 'order'])
      expect(await get(`${name}=lost`)).toMatchObject({
        status: 422,
        body: { errors: [{ pointer: `/${name}` }] },
      })
  })
})

describe('ended runs', () => {
  test('are found by the models that they called and the words that were said, also in forks, until they are deleted', async ({
    runtime,
    database,
    model,
    server,
  }) => {
    const business = unique('b')
    const api = runtime.of(business)
    say(model, { planner: [{ text: 'The Danish kettle is on its way, 你好世界.' }] })
    const alias = unique('m')
    const run = await runtime.complete({ prompt: 'Where are my kettles?' }, { business })
    for (const n of [1, 2])
      await database.query(
        `INSERT INTO usage_ledger (request_id, tenant, run_id, role, vendor_id, endpoint_id, model_id, model_name, upstream_name, status,
           prompt_tokens, completion_tokens, total_tokens, cost_micro, currency, ms)
         VALUES ($1, $2, $3, 'planner', 'v', 'e', 'm', $4, 'm', 'succeeded', 1, 1, 2, 0, 'XXX', 1)`,
        [`${run.id} ${n}`, business, run.id, alias],
      )
    say(model, { planner: [{ text: 'Nowhere.' }] })
    const other = await runtime.complete({ prompt: 'Where is the lamp?' }, { business })
    const find = async (filter: Omit<RunFilter, 'limit'>) =>
      (await api.runs({ ...filter, limit: 10 })).data.map(({ id }) => id)
    await until('the words are read', async () => (await find({ q: 'lamp' })).length > 0)
    expect(await find({ q: 'lamp' })).toEqual([other.id])
    for (const q of ['KETTLE', 'danish kettles', '世界', 'where kettle'])
      expect([q, await find({ q })]).toEqual([q, [run.id]])
    expect(await find({ q: 'kettle lamp' })).toEqual([])
    expect(await find({ q: 'kettle', status: 'failed' })).toEqual([])
    expect(await runtime.of(unique('b')).runs({ q: 'kettle', limit: 10 })).toMatchObject({ data: [] })
    expect(await find({ model: alias })).toEqual([run.id])
    expect(await find({ model: alias, q: 'kettle', finish_reason: 'answered' })).toEqual([run.id])
    expect(await find({ model: 'none' })).toEqual([])
    expect(await count(database, `unread_runs WHERE tenant = '${business}'`)).toBe(0)
    const actions = (await runtime.stateOf(run.id, business)).action_history.flat().length
    const fork = await api.fork(run.session_id, actions)
    await until('the words of the fork', async () => (await find({ q: 'kettle', model: alias })).length === 2)
    for (const id of [run.session_id, fork?.id ?? '']) await deleteSession(database, business, id)
    expect(await find({ q: 'kettle' })).toEqual([])
    for (const table of ['run_words', 'run_models'])
      expect(await count(database, `${table} WHERE tenant = $1 AND run_id = $2`, [business, run.id])).toBe(0)
    const get = (query: string) =>
      server.call('GET', `/v1/runs?business_id=${business}&${query}`, { token: adminToken })
    expect((await get('q=lamp&count=true')).body).toMatchObject({
      data: [{ id: other.id }],
      count: 1,
      count_capped: false,
    })
    expect((await get('q=lamp')).body).not.toHaveProperty('count')
    expect(await get('q=the')).toMatchObject({ status: 422, body: { errors: [{ pointer: '/q' }] } })
    expect((await get('count=7')).status).toBe(422)
  })

  test('with NUL or half a surrogate pair anywhere in them are read by their other words, and keep none unread', async ({
    runtime,
    database,
    model,
  }) => {
    const business = unique('b')
    say(model, { planner: [{ text: 'A lamp\u0000 \udc00.' }] })
    const run = await runtime.complete(
      { prompt: 'A kettle\u0000 \ud800?', metadata: { a: '\u0000' } },
      { business },
    )
    const find = async (q: string) =>
      (await runtime.of(business).runs({ q, limit: 10 })).data.map(({ id }) => id)
    await until('the words are read', async () => (await count(database, 'unread_runs')) === 0)
    for (const q of ['kettle', 'lamp']) expect([q, await find(q)]).toEqual([q, [run.id]])
  })

  test('are looked for in slices, each run once, and the cursor goes on where the time was over', async ({
    database,
    runtime,
  }) => {
    const business = unique('b')
    await runtime.of(business).submit({ prompt: 'x', user_id: 'u', delay_ms: 60_000 })
    const many = 1_700
    // ten at each moment
    await database.query(
      `WITH made AS (INSERT INTO sessions (tenant, session_id, user_id, turns) SELECT $1, 's' || n, 'u', 1 FROM generate_series(1, $2::int) n),
         run AS (INSERT INTO runs (tenant, run_id, session_id, turn, status, finish_reason, expires_at, created_at)
           SELECT $1, $1 || '_' || n, 's' || n, 1, 'completed', CASE WHEN n % 100 = 0 THEN 'steps' ELSE 'answered' END, now(),
             '2026-01-01'::timestamptz - (n / 10) * interval '1 second' FROM generate_series(1, $2::int) n)
       INSERT INTO run_requests (tenant, run_id, user_id, request, metadata)
       SELECT $1, $1 || '_' || n, 'u', '{"prompt":"x","files":[]}', '{}' FROM generate_series(1, $2::int) n`,
      [business, many],
    )
    const filter = { finish_reason: 'steps', limit: 7 } as const
    for (const order of ['desc', 'asc'] as const) {
      const direct = await listAll((page) => runtime.of(business).runs({ ...filter, order, ...page }))
      expect(direct).toHaveLength(17)
      const sliced = await listAll((page) =>
        searchSlices(database, business, { ...filter, order, ...page }, 60_000),
      )
      expect(sliced).toEqual(direct)
      const late = await searchSlices(database, business, { ...filter, order }, 0)
      expect(late).toMatchObject({ data: [], searched_to: null, next_cursor: expect.any(String) })
      const rest = await listAll((page) =>
        searchSlices(
          database,
          business,
          { ...filter, order, cursor: late.next_cursor ?? '', ...page },
          60_000,
        ),
      )
      expect(rest).toEqual(direct)
    }
    const counted = await runtime.of(business).runs({ limit: 1, count: true })
    expect(counted).toMatchObject({ count: many + 1, count_capped: false })
    if (database.kind !== 'postgres') return
    // no statement is quick enough: all is looked for in slices
    const slow = await searchRuns(
      database,
      business,
      { ...filter, limit: 50, count: true },
      { directMs: 1, slicedMs: 60_000, countMs: 1 },
    )
    expect(slow.data.length).toBe(17)
  })
})

const listAll = async (read: (page: { cursor?: string }) => Promise<RunPage>): Promise<string[]> => {
  const ids: string[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page: RunPage = await read(cursor === '' ? {} : { cursor })
    ids.push(...page.data.map(({ id }) => id))
    cursor = page.next_cursor
  }
  return ids
}

/** The full count: MASON_TEST_ROWS=1000000. */
const rows = Number(process.env.MASON_TEST_ROWS ?? 20_000)

const fill = async (backend: Backend, database: Database, business: string): Promise<void> => {
  await submitTo(database, business, { metadata: { env: 'prod', order: 'rare' } })
  const insert = (text: string) => database.query(text, [business, rows])
  await insert(`INSERT INTO sessions (tenant, session_id, user_id, turns)
    SELECT $1, 'ses_' || n, 'u', 1 FROM generate_series(1, $2::int) n`)
  await insert(`INSERT INTO runs (tenant, run_id, session_id, turn, status, expires_at, created_at)
    SELECT $1, 'run_' || n, 'ses_' || n, 1, 'completed', now(), now() - n * interval '1 second' FROM generate_series(1, $2::int) n`)
  // the checks of foreign keys below keep the plan that an empty table got, which reads it whole for each row
  await asOwner(backend, database, 'ANALYZE')
  // as many actions as runs: of a table of one page the planner reads that page
  await insert(`INSERT INTO actions (tenant, session_id, seq, run_id, turn, epoch, attempt_id, body, patch)
    SELECT $1, 'ses_' || n, 1, 'run_' || n, 1, 1, 'attempt_' || n, '{}', '{}' FROM generate_series(1, $2::int) n`)
  // what they say is written below
  await database.query('DELETE FROM unread_runs WHERE tenant = $1', [business])
  await insert(`INSERT INTO run_requests (tenant, run_id, user_id, request, metadata, idempotency_key)
    SELECT $1, 'run_' || n, 'u', '{"prompt":"x","files":[]}', '{}', 'key ' || n FROM generate_series(1, $2::int) n`)
  await insert(`INSERT INTO run_failures (tenant, run_id, error, node, created_at)
    SELECT $1, 'run_' || n, 'internal', 'planner', now() - n * interval '1 second' FROM generate_series(1, $2::int) n`)
  await insert(`INSERT INTO run_models (tenant, run_id, model, created_at)
    SELECT $1, 'run_' || n, 'm', now() - n * interval '1 second' FROM generate_series(1, $2::int) n`)
  await database.query(
    `INSERT INTO run_words (tenant, run_id, word, created_at)
     SELECT $1, 'run_' || n, w::bigint, now() - n * interval '1 second' FROM generate_series(1, $2::int) n, unnest(ARRAY[$3, (n / 1000)::text]) w`,
    [business, rows, hashWords(business, ['common'])[0]],
  )
  // each has what the first has, and one of its own
  await insert(`INSERT INTO run_metadata (tenant, run_id, entry, created_at)
    SELECT $1, 'run_' || n, e, now() - n * interval '1 second' FROM generate_series(1, $2::int) n,
      unnest(ARRAY[(SELECT entry FROM run_metadata WHERE tenant = $1 ORDER BY entry LIMIT 1), md5($1 || n)::uuid]) AS e`)
}

/** The tables that `fill` fills: of an empty one the planner reads the whole, which is nothing. */
const filled = /^(sessions|runs|actions|run_(requests|failures|models|words|metadata))$/

describe('a filter', () => {
  // in PGlite no one analyzes; in the gate 20,000 runs take half a minute
  test.runIf(process.env.MASON_TEST_BACKEND === 'served')(
    `reads few blocks of ${rows} runs`,
    async ({ backend, database }) => {
      const business = unique('b')
      await fill(backend, database, business)
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
                ...(part['Node Type'] === 'Seq Scan' && filled.test(String(part['Relation Name']))
                  ? [String(part['Relation Name'])]
                  : []),
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
      await asOwner(backend, database, 'ANALYZE')
      const figures: unknown[] = []
      for (const filter of [
        { idempotency_key: 'key 7' },
        { error: 'internal' },
        { node: 'planner', from: new Date(Date.now() - 60_000).toISOString() },
        { model: 'm' },
        { q: 'common' },
        { q: 'absent' },
        { q: 'common absent' },
        { metadata: { env: 'prod' } },
        { metadata: { order: 'rare' } },
        { metadata: { order: 'rare', env: 'prod' } },
        { metadata: { env: 'prod', order: 'rare' } },
      ]) {
        const { read, scans } = await blocks(filter)
        figures.push({ filter, read, scans, ok: read < 1_000 && scans.length === 0 })
      }
      if (rows > 20_000) console.log(JSON.stringify(figures))
      expect(figures.filter((one) => !(one as { ok: boolean }).ok)).toEqual([])
    },
  )
})
