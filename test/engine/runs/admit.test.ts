// backends: both
// asserts: invariants

import { describe, expect } from 'vitest'
import type { BusinessApi } from '../../../src/app/api.ts'
import type { Database } from '../../../src/infra/database/database.ts'
import type { Queues } from '../../../src/infra/queue/queues.ts'
import { isMasonError } from '../../../src/state/errors.ts'
import type { RunRequest } from '../../../src/state/run-request.ts'
import { unique } from '../../support/backend.ts'
import { runtimeTest } from '../../support/integration-test.ts'
import { codeOf, count, mustClaim, readContent } from '../../support/runs.ts'
import type { TestRuntime } from '../../support/test-runtime.ts'

let runtime: TestRuntime
let database: Database

/** No wake-up arrives and there is no worker: admitted runs stay as they are. */
const silent = (queues: Queues): Queues => ({ ...queues, wake: async () => {}, wakeMany: async () => {} })

const test = runtimeTest.extend('runtimeOptions', { scope: 'file' }, () => ({
  models: null,
  worker: false,
  wrap: { queues: silent },
}))
test.beforeAll(({ database: d, runtime: r }) => {
  ;[database, runtime] = [d, r]
})

const request = (more: Partial<RunRequest> = {}): RunRequest => ({ prompt: 'hello', user_id: 'u1', ...more })
const times = <T>(n: number, work: (at: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: n }, (_, at) => work(at)))
const business = (): { api: BusinessApi; name: string } => {
  const name = unique('b')
  return { api: runtime.of(name), name }
}

describe('one key', () => {
  test('and the same body, in whatever order of its fields, gives the same run', async () => {
    const { api, name } = business()
    const first = await api.submit(request({ metadata: { a: 1, b: { c: 2, d: 3 } } }), 'k')
    const again = await api.submit(
      { metadata: { b: { d: 3, c: 2 }, a: 1 }, user_id: 'u1', prompt: 'hello' },
      'k',
    )
    expect(first.replayed).toBe(false)
    expect(again).toEqual({ run: first.run, replayed: true })
    expect(await count(database, 'runs WHERE tenant = $1', [name])).toBe(1)
  })

  test('and another body is a conflict, and leaves nothing', async () => {
    const { api, name } = business()
    await api.submit(request(), 'k')
    expect(await codeOf(api.submit(request({ prompt: 'other' }), 'k'))).toBe('idempotency_conflict')
    expect(await count(database, 'runs WHERE tenant = $1', [name])).toBe(1)
  })

  test('of another business is another key', async () => {
    const [a, b] = [business(), business()]
    const [first, second] = await Promise.all([a.api.submit(request(), 'k'), b.api.submit(request(), 'k')])
    expect(second.replayed).toBe(false)
    expect(second.run.id).not.toBe(first.run.id)
  })

  test('sent 20 times at once makes one run, with one turn, one wake-up and one session', async () => {
    const { api, name } = business()
    const admissions = await times(20, () => api.submit(request({ session_id: 's' }), 'k'))
    expect(new Set(admissions.map(({ run }) => run.id)).size).toBe(1)
    expect(admissions.filter(({ replayed }) => !replayed)).toHaveLength(1)
    for (const table of ['runs', 'outbox', 'sessions', 'idempotency'])
      expect(await count(database, `${table} WHERE tenant = $1`, [name])).toBe(1)
    expect((await api.session('s'))?.turns).toHaveLength(1)
  })
})

describe('sessions', () => {
  test('20 submits at once to one session get the turns 1 to 20', async () => {
    const { api } = business()
    const admissions = await times(20, (at) =>
      api.submit(request({ session_id: 's', prompt: String(at) }), `k${at}`),
    )
    const turns = admissions.map(({ run }) => run.turn).sort((a, b) => a - b)
    expect(turns).toEqual(Array.from({ length: 20 }, (_, at) => at + 1))
  })

  test('of another user are refused, and no turn is used up', async () => {
    const { api } = business()
    await api.submit(request({ session_id: 's' }))
    expect(await codeOf(api.submit(request({ session_id: 's', user_id: 'u2' })))).toBe(
      'session_of_another_user',
    )
    expect((await api.submit(request({ session_id: 's' }))).run.turn).toBe(2)
  })

  test('of one name in two businesses have nothing to do with each other', async () => {
    const [a, b] = [business(), business()]
    await a.api.submit(request({ session_id: 's' }))
    const { run } = await b.api.submit(request({ session_id: 's', user_id: 'u2' }))
    expect(run.turn).toBe(1)
    expect(await b.api.session('s')).toMatchObject({ user_id: 'u2' })
    expect((await a.api.session('s'))?.turns).toHaveLength(1)
  })
})

describe('what is kept of a request', () => {
  test('uploads are kept once by their content, and the run gives their bytes to its own business only', async () => {
    const { api, name } = business()
    const bytes = Buffer.from([0, 1, 2, 255, 254])
    const files = ['a.bin', 'b.bin'].map((file) => ({
      name: file,
      type: 'application/octet-stream',
      content_base64: bytes.toString('base64'),
    }))
    const { run } = await api.submit(request({ files }))
    const { rows } = await database.query<{ sha256: string }>('SELECT sha256 FROM blobs WHERE tenant = $1', [
      name,
    ])
    expect(rows).toHaveLength(1)
    const hash = String(rows[0]?.sha256)
    expect(await readContent(await api.blob(run.id, hash))).toEqual(bytes)
    const claimed = await database.query<{ request: { files: unknown } }>(
      'SELECT request FROM run_requests WHERE run_id = $1',
      [run.id],
    )
    expect(claimed.rows[0]?.request.files).toEqual(
      ['a.bin', 'b.bin'].map((file) => ({
        name: file,
        type: 'application/octet-stream',
        local_path: `blob:${hash}`,
        mapping: null,
      })),
    )
    expect(await business().api.blob(run.id, hash)).toBeNull()
    const other = await api.submit(request())
    expect(await api.blob(other.run.id, hash)).toBeNull()
    expect(await api.blob(run.id, "' OR true --")).toBeNull()
  })

  test('the same files in another order from many at once do not deadlock', async () => {
    const { api } = business()
    const file = (n: number) => ({
      name: `${n}`,
      type: 'text/plain',
      content_base64: Buffer.from(`content ${n}`).toString('base64'),
    })
    const files = Array.from({ length: 12 }, (_, n) => file(n))
    const admissions = await times(10, (at) =>
      api.submit(request({ files: at % 2 ? files : files.toReversed() })),
    )
    expect(admissions).toHaveLength(10)
  })

  test('with metadata over a limit are refused, and rows that are above it are read as ever', async () => {
    const { api, name } = business()
    const refused: [Record<string, string>, string][] = [
      [Object.fromEntries(Array.from({ length: 51 }, (_, at) => [`k${at}`, ''])), '50 keys'],
      [{ k: 'x'.repeat(16 * 1024) }, '16384 bytes'],
    ]
    for (const [metadata, limit] of refused)
      await expect(api.submit(request({ metadata }))).rejects.toMatchObject({
        code: 'invalid_request',
        detail: { errors: [{ pointer: '/metadata', detail: expect.stringContaining(limit) }] },
      })
    const { run } = await api.submit(request({ metadata: { k: 'x'.repeat(16_000) } }))
    await database.query(
      `UPDATE run_requests SET metadata = json_build_object('k', repeat('x', 100000)) WHERE tenant = $1`,
      [name],
    )
    expect((await api.run(run.id))?.metadata).toEqual({ k: 'x'.repeat(100_000) })
    expect((await api.runs({ limit: 10 })).data).toMatchObject([{ metadata: {}, truncated: ['metadata'] }])
  })

  test('may be delayed by 30 days', async () => {
    const { api, name } = business()
    const delay_ms = 30 * 86_400_000
    await api.submit(request({ delay_ms }))
    const { rows } = await database.query<{ days: number }>(
      `SELECT round(extract(epoch FROM run_at - created_at) / 86400)::int AS days FROM runs WHERE tenant = $1`,
      [name],
    )
    expect(rows).toEqual([{ days: 30 }])
  })

  test('NUL and lone surrogates come back in prompt, metadata, run, list and session as they went in', async () => {
    const { api } = business()
    const odd = 'a\u0000b\ud800c\udfff"task_goals":\\u0000'
    const { run } = await api.submit(
      request({ prompt: odd, session_id: 's', metadata: { 'key\u0000': odd } }),
      'k',
    )
    expect((await api.run(run.id))?.metadata).toEqual({ 'key\u0000': odd })
    expect((await api.runs({ limit: 10 })).data[0]?.metadata).toEqual({ 'key\u0000': odd })
    expect((await api.session('s'))?.turns[0]).toMatchObject({ prompt: odd, answer: null, goal: '' })
    expect(
      (await api.submit(request({ prompt: odd, session_id: 's', metadata: { 'key\u0000': odd } }), 'k'))
        .replayed,
    ).toBe(true)
    expect(await api.blob(run.id, '0'.repeat(64))).toBeNull()
    const claimed = await mustClaim(database)
    const canceller = runtime.of(claimed.tenant)
    expect(await canceller.cancel(claimed.run_id, odd)).toMatchObject({ status: 'running' })
  })
})

describe('a queue that is full', () => {
  const faultOf = async (call: Promise<unknown>) => {
    const error = await call.catch((reason: unknown) => reason)
    return isMasonError(error) ? { code: error.code, detail: error.detail } : error
  }
  const full = { code: 'too_many_requests', detail: { retry_after_s: 5 } }

  test('of a business refuses more, names when to come again, and still replays what it has', async () => {
    const { api, name } = business()
    await database.query('INSERT INTO businesses (tenant, max_queued) VALUES ($1, 5)', [name])
    await api.submit(request(), 'first')
    const answers = await times(20, () => faultOf(api.submit(request())))
    expect(answers.filter((answer) => JSON.stringify(answer) === JSON.stringify(full))).toHaveLength(16)
    expect(await count(database, 'runs WHERE tenant = $1', [name])).toBe(5)
    expect(await codeOf(business().api.submit(request()))).toBe('no error')
    expect((await api.submit(request(), 'first')).replayed).toBe(true)
  })

  test('of a session refuses its 101st waiting turn, other sessions go on', async () => {
    const { api, name } = business()
    await api.submit(request({ session_id: 's' }))
    await database.query(
      `INSERT INTO runs (tenant, run_id, session_id, turn, status, expires_at)
       SELECT $1, 'r' || n, 's', n, 'queued', clock_timestamp() + interval '1 hour' FROM generate_series(2, 100) n`,
      [name],
    )
    await database.query(`UPDATE sessions SET turns = 100 WHERE tenant = $1`, [name])
    expect(await faultOf(api.submit(request({ session_id: 's' })))).toEqual(full)
    expect((await api.submit(request({ session_id: 'other' }))).run.turn).toBe(1)
  })
})

describe('a delay', () => {
  test('keeps the run from being due until then, and its wake-up from being sent', async () => {
    const { api, name } = business()
    const { run } = await api.submit(request({ delay_ms: 60_000 }))
    const { rows } = await database.query(
      `SELECT run_at > clock_timestamp() + interval '50 seconds' AS later, expires_at > run_at AS lives,
         (SELECT bool_and(ring_at = run_at) FROM outbox o WHERE o.run_id = runs.run_id) AS rings_then
       FROM runs WHERE tenant = $1`,
      [name],
    )
    expect(rows).toEqual([{ later: true, lives: true, rings_then: true }])
    expect((await api.run(run.id))?.status).toBe('queued')
  })
})
