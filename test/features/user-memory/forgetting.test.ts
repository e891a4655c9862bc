// backends: either
// asserts: invariants

import { describe, expect } from 'vitest'
import { ensureBusiness } from '../../../src/accounts/businesses.ts'
import { distillRuns } from '../../../src/features/user-memory/store/distill-run.ts'
import {
  discardUserDistillations,
  dropFailedDistillations,
  failDistillation,
} from '../../../src/features/user-memory/store/distillation-queue.ts'
import { asUser } from '../../../src/features/user-memory/store/user-scope.ts'
import { type Database, queryOne } from '../../../src/infra/database/database.ts'
import { silentLog } from '../../../src/infra/lib/silent-log.ts'
import type { Models } from '../../../src/state/ports/models.ts'
import { openBackend, unique } from '../../support/backend.ts'
import type { TestServer } from '../../support/http.ts'
import { adminToken, runtimeTest } from '../../support/integration-test.ts'
import {
  claimDistillation,
  collectAll,
  gatedModels,
  hashOnly,
  learnAll as learnFromAll,
  lessonOf,
} from '../../support/memory.ts'
import { modelsOf } from '../../support/memory-run.ts'
import { never } from '../../support/models.ts'
import { readByOldPlans } from '../../support/old-plans.ts'
import { codeOf, count, until } from '../../support/runs.ts'
import type { TestRuntime } from '../../support/test-runtime.ts'

let runtime: TestRuntime
let database: Database
let server: TestServer

const note = (content: string) => ({ name: 'remember', arguments: { content } })
/** Asks, remembers and answers as the request says; what is distilled cannot be read, so rules decide. */
const models = modelsOf(({ role, messages }) => {
  if (role !== 'planner') return { text: '' }
  const says = (text: string) => messages.some(({ content }) => String(content).includes(text))
  const results = messages.filter((message) => message.role === 'tool').length
  if (says('Ask me') && results === 0)
    return { tool_calls: [{ name: 'ask_user', arguments: { question: 'What else?' } }] }
  if (says('Remember it') && results < 2)
    return { tool_calls: [note('I speak Danish.'), note('I am a user who prefers trains.')] }
  return { text: says('Which language') && !says('Count up') ? 'You speak Danish.' : 'Done.' }
})
const gated = gatedModels(models)

const test = runtimeTest.extend('runtimeOptions', { scope: 'file' }, () => ({ models: gated.models }))
test.beforeAll(({ database: d, runtime: r, server: s }) => {
  ;[database, runtime, server] = [d, r, s]
})
test.afterEach(() => gated.release())

const api = () => runtime.of('default')
const call = async (method: string, path: string, json?: unknown) => {
  const reply = await server.call(method, path, { token: adminToken, ...(json !== undefined && { json }) })
  expect(reply.status, `${method} ${path}`).toBeLessThan(300)
  return reply.body
}
const parts = (thinks: Models = models) => ({
  database,
  embedder: hashOnly,
  log: silentLog,
  modelsFor: () => thinks,
})
const learnAll = () => learnFromAll(parts())
const tell = async (user_id: string, session_id: string, prompt: string) => {
  const run = await runtime.complete({ user_id, session_id, prompt })
  await learnAll()
  return run
}
/** A run that is open until the function that this gives is called. */
const open = (user_id: string, prompt: string, session_id = unique('ses')) =>
  gated.open(api(), { user_id, session_id, prompt })
const remembered = async (user_id: string) =>
  (await collectAll(api().memories.export(user_id))).map(({ content }) => content).sort()
const forget = async (user_id: string, words: string) => {
  const memory = (await collectAll(api().memories.export(user_id))).find(({ content }) =>
    content.includes(words),
  )
  await call('DELETE', `/v1/memories/${memory?.id}`)
}
const forgetAll = (user_id: string) => call('DELETE', `/v1/memories?user_id=${user_id}`)
const summaryOf = async (session_id: string) =>
  (
    await queryOne<{ summary: string }>(database, 'SELECT summary FROM sessions WHERE session_id = $1', [
      session_id,
    ])
  )?.summary
const resultsOf = async (run_id: string, node: string) =>
  (await runtime.stateOf(run_id)).action_history.flat().filter((action) => action.node === node)

describe('what was said before it was forgotten does not come back', () => {
  test('from a run that was open when all was forgotten; what is said later is learned', async () => {
    const user_id = unique('clara')
    const session = unique('ses')
    await tell(user_id, unique('ses'), 'I speak Danish. What is 2 + 2?')
    const end = await open(user_id, 'My name is Clara Jensen. I speak Danish. What is 3 + 3?', session)
    await forgetAll(user_id)
    expect((await end()).status).toBe('completed')
    expect(await learnAll()).toBe(0)
    expect([await remembered(user_id), await summaryOf(session)]).toEqual([[], ''])
    expect(await api().memories.profile(user_id)).toEqual([])
    await tell(user_id, session, 'I prefer metric units. What is 4 + 4?')
    expect(await remembered(user_id)).toEqual(['I prefer metric units.'])
    expect(await summaryOf(session)).not.toMatch('Danish')
  })

  test('through the answer of a later turn whose session still has it in its log', async () => {
    const user_id = unique('clara')
    const session = unique('ses')
    await tell(user_id, unique('ses'), 'I speak Danish. What is 2 + 2?')
    const first = await tell(user_id, session, 'Which language do I speak?')
    expect((await runtime.stateOf(first.id)).memory.map(({ content }) => content)).toContain(
      'I speak Danish.',
    )
    await forget(user_id, 'Danish')
    const later = await tell(
      user_id,
      session,
      'Which language is it that I speak, and which trains run today?',
    )
    expect(later.answer).toBe('You speak Danish.')
    const { rows } = await database.query<{ content: string }>(
      'SELECT content FROM turns WHERE user_id = $1',
      [user_id],
    )
    expect(rows.map(({ content }) => content)).toEqual([
      'Which language is it that I speak, and which trains run today?',
    ])
  })

  test('in other words, from an open run and from one that waits, when one memory is forgotten', async () => {
    const [user_id, other] = [unique('clara'), unique('bob')]
    await tell(user_id, unique('ses'), 'I speak Danish. What is 2 + 2?')
    await runtime.complete({ user_id, prompt: 'My Danish is fluent, and my mother tongue is Danish.' })
    await runtime.complete({ user_id: other, prompt: 'I speak Danish. What is 2 + 2?' })
    const end = await open(user_id, 'I never speak Swedish but Danish. What is 3 + 3?')
    await forget(user_id, 'Danish')
    await end()
    expect(await learnAll()).toBe(1)
    expect([await remembered(user_id), await remembered(other)]).toEqual([[], ['I speak Danish.']])
  })

  test('while another run that says it is being learned from', async () => {
    const user_id = unique('clara')
    await tell(user_id, unique('ses'), 'I speak Danish. What is 2 + 2?')
    await runtime.complete({ user_id, prompt: 'My Danish is fluent, and my mother tongue is Danish.' })
    const claim = await claimDistillation(database, 60_000)
    if (!claim) throw new Error('nothing waits')
    const slow = {
      ...models,
      async call(...args: Parameters<typeof models.call>) {
        await forget(user_id, 'Danish')
        return models.call(...args)
      },
    }
    expect(await codeOf(distillRuns(parts(slow), [claim], never()))).toBe('lease_lost')
    expect(await remembered(user_id)).toEqual([])
  })

  test('from a run that ends and is taken in the moment of the forgetting', async () => {
    const user_id = unique('clara')
    const run = await runtime.complete({ user_id, prompt: 'I speak Danish. What is 2 + 2?' })
    const claim = await claimDistillation(database, 60_000)
    if (!claim) throw new Error('nothing waits')
    // as the forgetting sees it that began before its end was committed
    const status = (text: string) =>
      database.query('UPDATE runs SET status = $2 WHERE run_id = $1', [run.id, text])
    await status('input_required')
    await discardUserDistillations(database, { business: 'default', user_id })
    await status('completed')
    expect(await codeOf(distillRuns(parts(), [claim], never()))).toBe('lease_lost')
    await failDistillation(database, claim, 'the model was away')
    await database.query('UPDATE distillations SET due_at = clock_timestamp() WHERE run_id = $1', [run.id])
    expect([await learnAll(), await remembered(user_id)]).toEqual([0, []])
  })

  test('reads the runs of that user alone, also by a plan from when there were none', async () => {
    const backend = await openBackend()
    const business = unique('tenant')
    const owner = { business, user_id: 'u' }
    const own = await backend.openDatabase()
    try {
      await ensureBusiness(own, business)
      await asUser(own, owner, async (sql) => {
        const reads = await readByOldPlans(
          sql,
          (kept) => discardUserDistillations(kept, owner),
          () =>
            sql.query(
              `WITH s AS (INSERT INTO sessions (tenant, session_id, user_id)
                 SELECT $1, 's' || n, CASE WHEN n % 10 = 0 THEN 'u' ELSE 'other' END FROM generate_series(1, 1000) n RETURNING session_id),
               r AS (INSERT INTO runs (tenant, run_id, session_id, turn, status, expires_at)
                 SELECT $1, 'r' || session_id, session_id, 1, 'completed', clock_timestamp() FROM s RETURNING run_id)
               INSERT INTO distillations (tenant, run_id) SELECT $1, run_id FROM r`,
              [business],
            ),
        )
        expect(await count(sql, 'distillations WHERE tenant = $1', [business])).toBe(900)
        expect(Object.values(reads).reduce((sum, rows) => sum + rows, 0)).toBeLessThan(1000)
      })
    } finally {
      await own.close()
      await backend.drop()
    }
  })

  test('after a week of waiting, or when learning was off and is on again', async () => {
    const user_id = unique('clara')
    const end = await open(user_id, 'I speak Danish. What is 2 + 2?')
    await forgetAll(user_id)
    await database.query(
      `UPDATE distillations SET failed_at = failed_at - interval '8 days' WHERE failed_at IS NOT NULL`,
    )
    await dropFailedDistillations(database)
    for (const learning of [false, true]) await call('PATCH', '/admin/v1/businesses/default', { learning })
    const { id } = await end()
    expect([await learnAll(), await remembered(user_id)]).toEqual([0, []])
    await dropFailedDistillations(database)
    expect(await count(database, 'distillations WHERE run_id = $1', [id])).toBe(0)
  })

  test('by a run that is asked to remember it; what its user says later may', async () => {
    const user_id = unique('clara')
    const prompt = 'I speak Danish. Ask me what else there is. Remember it.'
    const asked = await runtime.complete({ user_id, prompt })
    expect(asked.status).toBe('input_required')
    await forgetAll(user_id)
    await api().answer(asked.id, asked.input_request?.id ?? '', 'I am a user who prefers trains.')
    await until('it ends', async () => (await api().run(asked.id))?.status === 'completed')
    expect(await remembered(user_id)).toEqual(['I am a user who prefers trains.'])
    const texts = (await resultsOf(asked.id, 'remember')).map(({ result }) => JSON.stringify(result))
    expect(texts.filter((text) => text.includes('had something forgotten since'))).toHaveLength(1)
    expect(await learnAll()).toBe(0)
  })
})

describe('a deleted session', () => {
  test('is not repeated by a run that was shown it; what that run says itself is learned', async () => {
    const user_id = unique('clara')
    const [gone, kept] = [unique('ses'), unique('ses')]
    await tell(user_id, gone, 'I speak Danish. What is 2 + 2?')
    const prompt = 'I live in Lyon. Which language do I speak? Remember it.'
    const end = await open(user_id, prompt, kept)
    await call('DELETE', `/v1/sessions/${gone}`)
    const { id } = await end()
    expect(JSON.stringify(await resultsOf(id, 'recall-memory'))).toMatch('mem_')
    // it was said in the session that is gone, not in this one
    expect(JSON.stringify(await resultsOf(id, 'remember'))).toMatch('no sentence of the user')
    expect(await learnAll()).toBe(1)
    expect(await remembered(user_id)).toEqual(['I live in Lyon.'])
    expect(await summaryOf(kept)).toBe('')
    // the log still has it; what is written down of later turns does not tell it on
    await tell(user_id, kept, 'Which language do I speak again?')
    expect(await summaryOf(kept)).toBe('')
    await tell(user_id, kept, 'Count up to ten, please.')
    expect(await summaryOf(kept)).toMatch(/^3\. Count up to ten/)
  })

  test('is not learned by what a model was shown while it learned', async () => {
    const user_id = unique('clara')
    const gone = unique('ses')
    await tell(user_id, gone, 'I speak Danish. What is 2 + 2?')
    const run = await runtime.complete({ user_id, prompt: 'I live in Lyon, and which language do I speak?' })
    const claim = await claimDistillation(database, 60_000)
    if (!claim) throw new Error('nothing waits')
    const careless = modelsOf(({ messages }) => {
      const knows = messages.some(({ content }) => String(content).includes('I speak Danish.'))
      const content = knows ? 'The user lives in Lyon and speaks Danish.' : 'The user lives in Lyon.'
      return {
        text: JSON.stringify({ memories: [lessonOf('fact', 'I live in Lyon', content)], summary: content }),
      }
    })
    const slow: Models = {
      ...careless,
      async call(request, signal) {
        const said = await careless.call(request, signal)
        await api().deleteSession(gone)
        return said
      },
    }
    expect(await codeOf(distillRuns(parts(slow), [claim], never()))).toMatch('has been forgotten')
    await failDistillation(database, claim, 'forgotten meanwhile')
    await database.query('UPDATE distillations SET due_at = clock_timestamp() WHERE run_id = $1', [run.id])
    const again = await claimDistillation(database, 60_000)
    if (!again) throw new Error('nothing waits')
    await distillRuns(parts(careless), [again], never())
    expect(await remembered(user_id)).toEqual(['The user lives in Lyon.'])
  })
})

describe('what other sessions wrote down', () => {
  const two = async (user_id: string) => {
    const [source, teller, apart] = [unique('ses'), unique('ses'), unique('ses')]
    await tell(user_id, source, 'I speak Danish. What is 2 + 2?')
    await tell(user_id, teller, 'Which language do I speak?')
    await tell(user_id, apart, 'Count up to ten, please.')
    expect(await summaryOf(teller)).toMatch('You speak Danish.')
    return { source, teller, apart }
  }

  test('goes with the memory that it tells, and nothing else does', async () => {
    const user_id = unique('clara')
    const { source, teller, apart } = await two(user_id)
    await forget(user_id, 'Danish')
    expect([await summaryOf(source), await summaryOf(teller)]).toEqual(['', ''])
    expect(await summaryOf(apart)).toMatch('Count up to ten')
  })

  test('goes with the session that it tells of', async () => {
    const user_id = unique('clara')
    const { source, teller, apart } = await two(user_id)
    await Promise.all([call('DELETE', `/v1/sessions/${source}`), call('DELETE', `/v1/sessions/${apart}`)])
    expect([await summaryOf(source), await summaryOf(teller)]).toEqual([undefined, ''])
    expect(await remembered(user_id)).toEqual([])
  })
})

test('the export shows the profile with where each field is from, and the summaries; all of it can go', async () => {
  const user_id = unique('clara')
  const [a, b] = [unique('ses'), unique('ses')]
  const first = await tell(user_id, a, 'My name is Clara Jensen. I live in Lyon. What is 2 + 2?')
  const second = await tell(user_id, b, 'I moved to Berlin. What is 2 + 2?')
  const profile = {
    ...(await call('GET', `/admin/v1/users/${user_id}`)).profile,
    name: 'Dr Jensen',
    plan: 'gold',
  }
  await call('PATCH', `/admin/v1/users/${user_id}`, { profile })
  const path = `/v1/memories/export?user_id=${user_id}`
  const learned_at = expect.stringMatching(/^\d{4}-\d\d-\d\dT/)
  const from = ({ id, session_id }: { id: string; session_id: string }) => ({
    run_id: id,
    session_id,
    learned_at,
  })
  const set = { origin: 'admin', session_id: null, run_id: null, learned_at: null }
  const exported = await call('GET', path)
  expect(exported.data).toHaveLength(3)
  expect(exported.profile).toEqual([
    {
      field: 'location',
      value: 'Berlin',
      origin: 'learned',
      ...from(second),
      earlier: [{ value: 'Lyon', ...from(first) }],
    },
    { field: 'name', value: 'Dr Jensen', ...set, earlier: [{ value: 'Clara Jensen', ...from(first) }] },
    { field: 'plan', value: 'gold', ...set, earlier: [] },
  ])
  expect(exported.summaries).toEqual([
    { session_id: b, turn: 1, summary: expect.stringMatching('Berlin'), updated_at: learned_at },
    { session_id: a, turn: 1, summary: expect.stringMatching('Lyon'), updated_at: learned_at },
  ])
  await forgetAll(user_id)
  expect(await call('GET', path)).toEqual({
    data: [],
    next_cursor: null,
    profile: [
      { field: 'name', value: 'Dr Jensen', ...set, earlier: [] },
      { field: 'plan', value: 'gold', ...set, earlier: [] },
    ],
    summaries: [],
  })
  expect(await call('GET', `/v1/memories/export?user_id=${unique('stranger')}`)).toEqual({
    data: [],
    next_cursor: null,
    profile: [],
    summaries: [],
  })
})
