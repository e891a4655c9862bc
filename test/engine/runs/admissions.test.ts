// backends: both
// asserts: invariants

import { beforeEach, describe, expect } from 'vitest'
import { ensureBusiness } from '../../../src/accounts/businesses.ts'
import { createTokens } from '../../../src/accounts/tokens.ts'
import { createAdmissions } from '../../../src/engine/runs/admission-batches.ts'
import { type Database, queryOne } from '../../../src/infra/database/database.ts'
import { systemClock } from '../../../src/infra/lib/system-clock.ts'
import { MasonError } from '../../../src/state/errors.ts'
import type { Sql } from '../../../src/state/ports/sql.ts'
import type { RunRequest } from '../../../src/state/run-request.ts'
import { unique } from '../../support/backend.ts'
import { test } from '../../support/integration-test.ts'
import { codeOf, count } from '../../support/runs.ts'

let commits = 0
let looks = 0
let lost = false

beforeEach(() => {
  commits = 0
  looks = 0
})

/** Counts statements; loses the response of a commit while `lost`. */
const counting = (opened: Database): Database => ({
  ...opened,
  query(text, values) {
    looks++
    return opened.query(text, values)
  },
  async asBusiness(business, work, options) {
    commits++
    const result = await opened.asBusiness(business, work, options)
    if (lost) throw new MasonError('database_unavailable', 'the answer was lost')
    return result
  },
})

const open = async (opened: Database) => {
  const business = unique('b')
  await ensureBusiness(opened, business)
  const { admit } = createAdmissions(counting(opened), business)
  const submit = (request: Partial<RunRequest> = {}, key?: string) =>
    admit(
      { prompt: 'hello', user_id: 'u1', ...request },
      key === undefined ? undefined : { route: 'runs', key },
      async () => {},
    )
  return { business, submit }
}

describe('a flood of runs', () => {
  test('shares its commits, and each gets a run of its own', async ({ database: opened }) => {
    const { business, submit } = await open(opened)
    const admissions = await Promise.all(Array.from({ length: 128 }, () => submit()))
    expect(new Set(admissions.map(({ run }) => run.id)).size).toBe(128)
    expect(commits).toBeLessThanOrEqual(4)
    for (const table of ['runs', 'run_requests', 'outbox'])
      expect(await count(opened, `${table} WHERE tenant = $1`, [business])).toBe(128)
  })

  test('keeps the order of arrival within a session', async ({ database: opened }) => {
    const { submit } = await open(opened)
    const submits = Array.from({ length: 9 }, (_, at) => submit(at % 2 ? {} : { session_id: 's' }))
    const turns = (await Promise.all(submits)).map(({ run }) => run.turn)
    expect(turns).toEqual([1, 1, 2, 1, 3, 1, 4, 1, 5])
  })

  test("reports each run's own error, and admits the others", async ({ database: opened }) => {
    const { business, submit } = await open(opened)
    await submit({ session_id: 'taken' }, 'used')
    const answers = await Promise.all([
      submit(),
      codeOf(submit({ session_id: 'taken', user_id: 'u2' })),
      codeOf(submit({ prompt: 'other' }, 'used')),
      submit({ session_id: 'taken' }, 'used'),
      submit(),
    ])
    expect(answers).toMatchObject([
      { replayed: false },
      'session_of_another_user',
      'idempotency_conflict',
      { replayed: true },
      { replayed: false },
    ])
    expect(await count(opened, 'runs WHERE tenant = $1', [business])).toBe(3)
  })

  test('admits the others when the database refuses one', async ({ database: opened }) => {
    const { business, submit } = await open(opened)
    const answers = await Promise.allSettled([submit(), submit({ user_id: 'no\u0000text' }), submit()])
    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(await count(opened, 'runs WHERE tenant = $1', [business])).toBe(2)
  })

  test('keeps NUL and lone surrogates of a prompt as they are', async ({ database: opened }) => {
    const { business, submit } = await open(opened)
    const prompt = 'a\u0000b \ud800 "\\u0000" end'
    await Promise.all([submit({ prompt }), submit()])
    const { rows } = await opened.query<{ request: { prompt: string } }>(
      'SELECT request FROM run_requests WHERE tenant = $1',
      [business],
    )
    expect(rows.map(({ request }) => request.prompt)).toContain(prompt)
  })

  test('is not retried when the response of its commit is lost', async ({ database: opened }) => {
    const { business, submit } = await open(opened)
    lost = true
    const codes = await Promise.all([codeOf(submit()), codeOf(submit())])
    lost = false
    expect(codes).toEqual(['database_unavailable', 'database_unavailable'])
    expect(commits).toBe(1)
    expect(await count(opened, 'runs WHERE tenant = $1', [business])).toBe(2)
  })
})

describe('a transaction that sends its statements at once', () => {
  const pipelined = { pipelined: true }

  test('acts for its business only, and leaves nothing when it fails', async ({ database: opened }) => {
    const [a, b] = [await open(opened), await open(opened)]
    await Promise.all([a.submit({ session_id: 's' }), b.submit({ session_id: 's' })])
    const seen = await opened.asBusiness(
      a.business,
      (sql) => queryOne<{ n: number }>(sql, 'SELECT count(*)::int AS n FROM runs', []),
      pipelined,
    )
    expect(seen?.n).toBe(1)
    const failing = opened.asBusiness(
      a.business,
      (sql) => Promise.all([sql.query(`UPDATE sessions SET user_id = 'x'`), sql.query('SELECT 1/0')]),
      pipelined,
    )
    await expect(failing).rejects.toThrow(/division/)
    expect(await count(opened, `sessions WHERE user_id = 'x'`)).toBe(0)
    const stranger = (sql: Sql) =>
      sql.query('INSERT INTO users (tenant, user_id) VALUES ($1, $2)', [b.business, 'u'])
    await expect(opened.asBusiness(a.business, stranger, pipelined)).rejects.toMatchObject({ code: '42501' })
  })

  test('is refused a statement after its first wait', async ({ database: opened }) => {
    const twice = async (sql: Sql): Promise<number> => {
      await sql.query('SELECT 1')
      return (await sql.query('SELECT 2')).rows.length
    }
    const { business } = await open(opened)
    expect(await opened.asBusiness(business, twice)).toBe(1)
    expect(await opened.transaction(twice)).toBe(1)
    const late = 'a pipelined transaction sent a statement after its first wait'
    await expect(opened.asBusiness(business, twice, pipelined)).rejects.toThrow(late)
    await expect(opened.transaction(twice, pipelined)).rejects.toThrow(late)
  })
})

describe('the owner of a token', () => {
  test('is looked up once a second, and a token that was revoked elsewhere is refused after that', async ({
    database: opened,
  }) => {
    let now = 0
    const clock = { ...systemClock, monotonicMs: () => now }
    const [here, elsewhere] = [createTokens(counting(opened), clock), createTokens(opened, clock)]
    const { id, token } = await elsewhere.create(
      {},
      { business_id: unique('b'), label: 'l', roles: ['read'] },
    )
    const known = await Promise.all(Array.from({ length: 50 }, () => here.authenticate(token)))
    expect(new Set(known.map((caller) => caller?.roles.join())).size).toBe(1)
    expect(looks).toBe(1)
    await elsewhere.remove({}, id)
    expect(await elsewhere.authenticate(token)).toBeNull()
    now = 1000
    expect(await here.authenticate(token)).toBeNull()
  })
})
