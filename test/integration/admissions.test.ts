import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createTokens } from '../../src/infra/admin/tokens.ts'
import { systemClock } from '../../src/infra/clock.ts'
import { type Database, one } from '../../src/infra/database/database.ts'
import { createAdmissions } from '../../src/infra/runs/admissions.ts'
import { ensureBusiness } from '../../src/infra/runs/admit.ts'
import { MasonError } from '../../src/state/errors.ts'
import type { RunRequest } from '../../src/state/run-request.ts'
import { type Backend, openBackend, unique } from '../support/backend.ts'
import { codeOf, count } from '../support/spine.ts'

let backend: Backend
let opened: Database
let commits = 0
let looks = 0
let lost = false

beforeAll(async () => {
  backend = await openBackend()
  opened = await backend.openDatabase()
})
afterAll(async () => {
  await opened?.close()
  await backend?.drop()
})
beforeEach(() => {
  commits = 0
  looks = 0
})

/** Counts what is asked; does not tell that a commit was done while `lost`. */
const database = (): Database => ({
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

const open = async () => {
  const business = unique('b')
  await ensureBusiness(opened, business)
  const { admit } = createAdmissions(database(), business)
  const submit = (request: Partial<RunRequest> = {}, key?: string) =>
    admit(
      { prompt: 'hello', user_id: 'u1', ...request },
      key === undefined ? undefined : { route: 'runs', key },
      async () => {},
    )
  return { business, submit }
}

describe('a flood of runs', () => {
  test('shares its commits, and each gets a run of its own', async () => {
    const { business, submit } = await open()
    const admissions = await Promise.all(Array.from({ length: 128 }, () => submit()))
    expect(new Set(admissions.map(({ run }) => run.id)).size).toBe(128)
    expect(commits).toBeLessThanOrEqual(4)
    for (const table of ['runs', 'run_requests', 'outbox'])
      expect(await count(opened, `${table} WHERE tenant = $1`, [business])).toBe(128)
  })

  test('keeps the order of arrival within a session', async () => {
    const { submit } = await open()
    const submits = Array.from({ length: 9 }, (_, at) => submit(at % 2 ? {} : { session_id: 's' }))
    const turns = (await Promise.all(submits)).map(({ run }) => run.turn)
    expect(turns).toEqual([1, 1, 2, 1, 3, 1, 4, 1, 5])
  })

  test('tells each of its own fault, and lets the others in', async () => {
    const { business, submit } = await open()
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

  test('loses nobody to one that the database refuses', async () => {
    const { business, submit } = await open()
    const answers = await Promise.allSettled([submit(), submit({ user_id: 'no\u0000text' }), submit()])
    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(await count(opened, 'runs WHERE tenant = $1', [business])).toBe(2)
  })

  test('keeps NUL and lone surrogates of a prompt as they are', async () => {
    const { business, submit } = await open()
    const prompt = 'a\u0000b \ud800 "\\u0000" end'
    await Promise.all([submit({ prompt }), submit()])
    const { rows } = await opened.query<{ request: { prompt: string } }>(
      'SELECT request FROM run_requests WHERE tenant = $1',
      [business],
    )
    expect(rows.map(({ request }) => request.prompt)).toContain(prompt)
  })

  test('is not tried again when the answer of its commit is lost', async () => {
    const { business, submit } = await open()
    lost = true
    const codes = await Promise.all([codeOf(submit()), codeOf(submit())])
    lost = false
    expect(codes).toEqual(['database_unavailable', 'database_unavailable'])
    expect(commits).toBe(1)
    expect(await count(opened, 'runs WHERE tenant = $1', [business])).toBe(2)
  })
})

describe('work that asks everything at once', () => {
  const atOnce = { atOnce: true }

  test('acts for its business only, and leaves nothing when it fails', async () => {
    const [a, b] = [await open(), await open()]
    await Promise.all([a.submit({ session_id: 's' }), b.submit({ session_id: 's' })])
    const seen = await opened.asBusiness(
      a.business,
      (sql) => one<{ n: number }>(sql, 'SELECT count(*)::int AS n FROM runs', []),
      atOnce,
    )
    expect(seen?.n).toBe(1)
    const failing = opened.asBusiness(
      a.business,
      (sql) => Promise.all([sql.query(`UPDATE sessions SET user_id = 'x'`), sql.query('SELECT 1/0')]),
      atOnce,
    )
    await expect(failing).rejects.toThrow(/division/)
    expect(await count(opened, `sessions WHERE user_id = 'x'`)).toBe(0)
    const stranger = (sql: Parameters<Parameters<Database['asBusiness']>[1]>[0]) =>
      sql.query('INSERT INTO users (tenant, user_id) VALUES ($1, $2)', [b.business, 'u'])
    await expect(opened.asBusiness(a.business, stranger, atOnce)).rejects.toMatchObject({ code: '42501' })
  })
})

describe('who a token is', () => {
  test('is looked up once a second, and a token that was revoked elsewhere is refused after that', async () => {
    let now = 0
    const clock = { ...systemClock, monotonicMs: () => now }
    const [here, elsewhere] = [createTokens(database(), clock), createTokens(opened, clock)]
    const { id, token } = await elsewhere.create({ business_id: unique('b'), label: 'l', roles: ['read'] })
    const known = await Promise.all(Array.from({ length: 50 }, () => here.authenticate(token)))
    expect(new Set(known.map((caller) => caller?.roles.join())).size).toBe(1)
    expect(looks).toBe(1)
    await elsewhere.revoke(id)
    expect(await elsewhere.authenticate(token)).toBeNull()
    now = 1000
    expect(await here.authenticate(token)).toBeNull()
  })
})
