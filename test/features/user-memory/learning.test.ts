// backends: either
// asserts: invariants

import { describe, expect } from 'vitest'
import type { LearnedProfile } from '../../../src/features/user-memory/policy/learned-profile.ts'
import { distillRuns } from '../../../src/features/user-memory/store/distill-run.ts'
import {
  claimDistillations,
  type RunToDistill,
} from '../../../src/features/user-memory/store/distillation-queue.ts'
import { startMemoryWorker } from '../../../src/features/user-memory/store/memory-worker.ts'
import { type Database, queryOne } from '../../../src/infra/database/database.ts'
import { silentLog } from '../../../src/infra/lib/silent-log.ts'
import { systemClock } from '../../../src/infra/lib/system-clock.ts'
import type { Sql } from '../../../src/state/ports/sql.ts'
import { unique } from '../../support/backend.ts'
import { deferred } from '../../support/deferred.ts'
import type { TestServer } from '../../support/http.ts'
import { adminToken, runtimeTest } from '../../support/integration-test.ts'
import {
  claimDistillation,
  collectAll,
  hashOnly,
  learnAll as learnFromAll,
  lessonOf,
} from '../../support/memory.ts'
import { modelsOf } from '../../support/memory-run.ts'
import { never } from '../../support/models.ts'
import { codeOf, count, until } from '../../support/runs.ts'
import type { TestRuntime } from '../../support/test-runtime.ts'

let runtime: TestRuntime
let database: Database
let server: TestServer

/** Asked to remember, the planner calls the tool; the distilled lessons cannot be parsed, so rules decide. */
const models = modelsOf(({ role, messages }) => {
  if (role !== 'planner') return { text: '' }
  const asked = messages.some(({ content }) => String(content).includes('Remember this'))
  const hasActed = messages.some((message) => message.role === 'tool')
  const note = { content: 'I speak Danish.' }
  return asked && !hasActed ? { tool_calls: [{ name: 'remember', arguments: note }] } : { text: 'Done.' }
})

const test = runtimeTest.extend('runtimeOptions', { scope: 'file' }, () => ({ models }))
test.beforeAll(({ database: d, runtime: r, server: s }) => {
  ;[database, runtime, server] = [d, r, s]
})

const call = (method: string, path: string, json?: unknown) =>
  server.call(method, path, { token: adminToken, ...(json !== undefined && { json }) })

const parts = (thinks = models) => ({ database, embedder: hashOnly, log: silentLog, modelsFor: () => thinks })
const learnAll = () => learnFromAll(parts())
const tell = async (user_id: string, session_id: string, prompt: string, business = 'default') => {
  const run = await runtime.complete({ user_id, session_id, prompt }, { business })
  await learnAll()
  return run
}
const userOf = (user_id: string) =>
  queryOne<LearnedProfile>(database, 'SELECT profile, learned FROM users WHERE user_id = $1', [user_id])
const profileOf = async (user_id: string) => (await userOf(user_id))?.profile
const remembered = async (user_id: string, business = 'default') =>
  (await collectAll(runtime.of(business).memories.export(user_id))).map(({ content }) => content).sort()
const summaryOf = async (session_id: string) =>
  (
    await queryOne<{ summary: string }>(database, 'SELECT summary FROM sessions WHERE session_id = $1', [
      session_id,
    ])
  )?.summary
const waiting = (run_id: string) => count(database, 'distillations WHERE run_id = $1', [run_id])
/** The time between the end of a run and the moment in which a worker learns from it. */
const wait = (run_id: string, tenant = 'default') =>
  database.query('INSERT INTO distillations (tenant, run_id) VALUES ($1, $2)', [tenant, run_id])
/** Asks the model what a run taught, does something meanwhile, and tells what became of the learning. */
const whileLearning = async (work: () => Promise<unknown>): Promise<string> => {
  const claim = await claimDistillation(database, 60_000)
  if (!claim) throw new Error('nothing waits')
  let asked = 0
  const slow = {
    ...models,
    async call(...args: Parameters<typeof models.call>) {
      asked++
      await work()
      return models.call(...args)
    },
  }
  const code = await codeOf(distillRuns(parts(slow), [claim], never()))
  return asked === 1 ? code : `asked ${asked} times`
}

test('a claim takes one run, also where the planner expects a table of one row', async () => {
  const ask = () => runtime.complete({ user_id: unique('u'), session_id: unique('ses'), prompt: 'Hello' })
  await ask()
  await database.transaction(async (sql) => {
    await sql.query('RESET ROLE')
    for (const table of ['distillations', 'runs']) await sql.query(`ANALYZE ${table}`)
  })
  for (let n = 0; n < 4; n++) await ask()
  const claim = await claimDistillation(database, 60_000)
  expect(await count(database, 'distillations WHERE tries > 0')).toBe(1)
  if (claim) await distillRuns(parts(), [claim], never())
  expect(await learnAll()).toBe(4)
})

test('several runs are learned from at once, the turns of a session one after the other', async () => {
  const sessions = [unique('ses'), unique('ses')]
  const runs: string[] = []
  const slowStarted = deferred()
  const together = deferred()
  let learning = 0
  let most = 0
  const slow = {
    ...models,
    async call(...args: Parameters<typeof models.call>) {
      learning++
      most = Math.max(most, learning)
      slowStarted.resolve()
      if (learning === sessions.length) together.resolve()
      await together.promise
      learning--
      return models.call(...args)
    },
  }
  // nothing else is due when the first of them begins
  const [first = '', second = ''] = sessions
  const asked = (session_id: string) => ({
    user_id: `u-${session_id}`,
    session_id,
    prompt: 'I live in Lyon. What is 2 + 2?',
  })
  runs.push((await runtime.complete(asked(first))).id)
  const work = startMemoryWorker({ ...parts(slow), clock: systemClock, everyMs: 20 })
  try {
    await slowStarted.promise
    for (const session_id of [second, first, second])
      runs.push((await runtime.complete(asked(session_id))).id)
    await until('all is learned', async () => {
      const left = await Promise.all(runs.map(waiting))
      return left.every((count) => count === 0)
    })
  } finally {
    together.resolve()
    await work.close()
  }
  expect(most).toBe(sessions.length)
})

test('runs of one user that no model is asked about are learned from together; one that fails costs only its own try', async () => {
  const user_id = unique('u')
  const ids: string[] = []
  for (const prompt of ['Hi one', 'Hi two', 'Hi bad', 'Hi four'])
    ids.push((await runtime.complete({ user_id, session_id: unique('ses'), prompt })).id)
  await runtime.complete({ user_id: unique('u'), session_id: unique('ses'), prompt: 'Hi other' })
  const groups: number[] = []
  const watched: Database = {
    ...database,
    asBusiness: (business, work, scope) =>
      database.asBusiness(
        business,
        (sql) =>
          work({
            async query(text, values) {
              const [first] = Object.values(values ?? [])
              if (text.includes('DELETE FROM distillations')) groups.push(JSON.parse(String(first)).length)
              const isBad = text.includes('INSERT INTO turns') && JSON.stringify(values).includes('Hi bad')
              if (isBad) throw new Error('a bad row')
              return sql.query(text, values)
            },
          }),
        scope,
      ),
  }
  const work = startMemoryWorker({ ...parts(), database: watched, clock: systemClock, everyMs: 20 })
  try {
    const left = () => count(database, 'distillations')
    await until('all but one', async () => groups.length >= 6 && (await left()) === 1)
  } finally {
    await work.close()
  }
  expect(groups.slice(0, 2).sort()).toEqual([1, 4])
  expect(groups.slice(2, 6)).toEqual([1, 1, 1, 1])
  const { rows } = await database.query('SELECT run_id, error FROM distillations')
  expect(rows).toEqual([{ run_id: ids[2], error: 'Error: a bad row' }])
  expect(await count(database, 'turns WHERE user_id = $1', [user_id])).toBe(3)
  await database.query('DELETE FROM distillations')
})

test('of a group the runs are left out that another worker has claimed since, and two that read one row never both have it', async () => {
  const user_id = unique('u')
  const run = async (prompt: string) =>
    (await runtime.complete({ user_id, session_id: unique('ses'), prompt })).id
  const [lost, good] = [await run('Hi lost'), await run('Hi good')]
  const mine = (due: readonly RunToDistill[]) => due.filter((one) => one.user_id === user_id)
  const expired = await claimDistillations(database, 0, mine)
  expect(expired.map(({ run_id }) => run_id)).toEqual([lost, good])
  let readers = 0
  const bothHaveRead = deferred()
  const together: Sql = {
    async query(text, values) {
      const answered = await database.query(text, values)
      if (text.includes('summary')) {
        if (++readers === 2) bothHaveRead.resolve()
        await bothHaveRead.promise
      }
      return answered as never
    },
  }
  const onlyLost = (due: readonly RunToDistill[]) => due.filter(({ run_id }) => run_id === lost)
  const claims = await Promise.all([1, 2].map(() => claimDistillations(together, 60_000, onlyLost)))
  expect(claims.flat()).toMatchObject([{ run_id: lost, tries: 2 }])
  await distillRuns(parts(), expired, never())
  const { rows } = await database.query('SELECT content FROM turns WHERE user_id = $1', [user_id])
  expect(rows).toEqual([{ content: expect.stringContaining('Hi good') }])
  expect(await codeOf(distillRuns(parts(), expired, never()))).toBe('lease_lost')
  await distillRuns(parts(), claims.flat(), never())
  expect(await count(database, 'turns WHERE user_id = $1', [user_id])).toBe(2)
})

test('the turns of a session are learned from without a pause, and leave no listeners behind', async () => {
  const warned: string[] = []
  const warn = ({ name }: Error) => void warned.push(name)
  const session_id = unique('ses')
  const runs: string[] = []
  for (let turn = 1; turn <= 12; turn++)
    runs.push((await runtime.complete({ user_id: session_id, session_id, prompt: 'What is 2 + 2?' })).id)
  process.on('warning', warn)
  const work = startMemoryWorker({ ...parts(), clock: systemClock, everyMs: 60_000 })
  try {
    await until('all is learned', async () => {
      const left = await Promise.all(runs.map(waiting))
      return left.every((count) => count === 0)
    })
  } finally {
    await work.close()
    process.off('warning', warn)
  }
  expect(warned).not.toContain('MaxListenersExceededWarning')
})

test('a turn with NUL in its prompt is learned from like any other', async () => {
  const user_id = unique('clara')
  const session = unique('ses')
  await tell(user_id, session, 'I live in Lyon.\u0000 My name is Clara\u0000 Jensen. What is 2 + 2?')
  expect((await remembered(user_id)).join(' ')).toContain('Lyon')
  await tell(user_id, session, 'Where do I\u0000 live?')
})

describe('what was learned of a user', () => {
  test('goes with the session that taught it; what another one taught before holds again', async () => {
    const user_id = unique('clara')
    const [a, b] = [unique('ses'), unique('ses')]
    await tell(user_id, a, 'My name is Clara Jensen. I live in Lyon. What is 2 + 2?')
    await tell(user_id, b, 'I moved to Berlin. What is 2 + 2?')
    expect(await profileOf(user_id)).toEqual({ name: 'Clara Jensen', location: 'Berlin' })
    await runtime.of('default').deleteSession(b)
    expect(await profileOf(user_id)).toEqual({ name: 'Clara Jensen', location: 'Lyon' })
    await runtime.of('default').deleteSession(a)
    expect(await userOf(user_id)).toEqual({ profile: {}, learned: {} })
  })

  test('stays where an admin has set another value since', async () => {
    const user_id = unique('clara')
    const session = unique('ses')
    await tell(user_id, session, 'My name is Clara Jensen. I live in Lyon. What is 2 + 2?')
    const profile = { name: 'Dr Jensen', location: 'Lyon' }
    expect((await call('PATCH', `/admin/v1/users/${user_id}`, { profile })).status).toBe(200)
    expect((await call('DELETE', `/v1/sessions/${session}`)).status).toBe(204)
    expect(await userOf(user_id)).toEqual({ profile: { name: 'Dr Jensen' }, learned: {} })
  })

  test('goes with the memory that says the same, and nothing else does', async () => {
    const user_id = unique('clara')
    await tell(user_id, unique('ses'), 'My name is Clara Jensen. I live in Lyon. What is 2 + 2?')
    const { memories } = runtime.of('default')
    const home = (await collectAll(memories.export(user_id))).find(({ content }) => content.includes('Lyon'))
    expect(await memories.forget(String(home?.id))).toBe(true)
    expect(await profileOf(user_id)).toEqual({ name: 'Clara Jensen' })
    expect(await remembered(user_id)).toEqual(['My name is Clara Jensen.'])
  })

  test('is not learned again when its memory is forgotten, nor repeated in a summary', async () => {
    const user_id = unique('clara')
    const { memories, fork } = runtime.of('default')
    const prompt = 'I speak Danish. Remember this. What is 2 + 2?'
    const forget = async () => {
      const [memory] = await collectAll(memories.export(user_id))
      return call('DELETE', `/v1/memories/${memory?.id}`)
    }
    const run = await runtime.complete({ user_id, prompt })
    expect([await remembered(user_id), await waiting(run.id)]).toEqual([['I speak Danish.'], 1])
    expect((await forget()).status).toBe(204)
    expect(await waiting(run.id)).toBe(0)
    // the same while it is being learned
    await runtime.complete({ user_id, prompt })
    expect(await whileLearning(forget)).toBe('lease_lost')
    expect(await remembered(user_id)).toEqual([])
    // what both have, and a session that has nothing to do with it
    const first = await tell(user_id, unique('ses'), prompt)
    const actions = (await runtime.stateOf(first.id)).action_history.flat()
    const copy = await fork(first.session_id, actions.length)
    const other = await tell(user_id, unique('ses'), 'What is 2 + 2?')
    expect(await summaryOf(String(copy?.id))).toMatch('Danish')
    expect((await forget()).status).toBe(204)
    expect(await summaryOf(first.session_id)).toBe('')
    expect(await summaryOf(String(copy?.id))).toBe('')
    expect(await summaryOf(other.session_id)).toMatch('2 + 2')
  })

  test('is all forgotten at once, also what was about to be learned; others keep theirs', async () => {
    const [user_id, other] = [unique('clara'), unique('bob')]
    const mine = await tell(user_id, unique('ses'), 'My name is Clara Jensen. I speak Danish. What is 2 + 2?')
    const his = await tell(other, unique('ses'), 'My name is Bob Jensen. I speak Danish. What is 2 + 2?')
    await call('PATCH', `/admin/v1/users/${user_id}`, { profile: { name: 'Clara Jensen', plan: 'gold' } })
    await wait(mine.id)
    await wait(his.id)
    for (let time = 0; time < 2; time++)
      expect((await call('DELETE', `/v1/memories?user_id=${user_id}`)).status).toBe(204)
    expect(await remembered(user_id)).toEqual([])
    expect([await summaryOf(mine.session_id), await summaryOf(his.session_id)]).toEqual([
      '',
      expect.stringMatching('Bob'),
    ])
    expect(await userOf(user_id)).toEqual({ profile: { plan: 'gold' }, learned: {} })
    expect([await waiting(mine.id), await waiting(his.id)]).toEqual([0, 1])
    expect(await remembered(other)).toEqual(['I speak Danish.', 'My name is Bob Jensen.'])
    expect(await profileOf(other)).toEqual({ name: 'Bob Jensen' })
    expect((await runtime.stateOf(mine.id)).prompts).toHaveLength(1)
    expect((await call('DELETE', '/v1/memories')).body.errors).toMatchObject([{ pointer: '/user_id' }])
    expect((await call('DELETE', `/v1/memories?user_id=${unique('stranger')}`)).status).toBe(204)
    await learnAll()
  })

  test('is in no log when a reply cannot be parsed', async () => {
    const said: unknown[] = []
    const log = { ...silentLog, warn: (...entry: unknown[]) => void said.push(entry) }
    await runtime.complete({ user_id: unique('clara'), prompt: 'My name is Clara Jensen, hello.' })
    const claim = await claimDistillation(database, 60_000)
    if (!claim) throw new Error('nothing waits')
    const garbled = modelsOf(() => ({ text: '{Clara Jensen}' }))
    await distillRuns({ ...parts(garbled), log }, [claim], never())
    expect(JSON.stringify(said)).toMatch('is invalid')
    expect(JSON.stringify(said)).not.toMatch('Clara')
  })

  test('is not written by a learner that ran while it was forgotten', async () => {
    const user_id = unique('clara')
    await runtime.complete({ user_id, prompt: 'My name is Clara Jensen. I speak Danish. What is 2 + 2?' })
    const forget = () => call('DELETE', `/v1/memories?user_id=${user_id}`)
    expect(await whileLearning(forget)).toBe('lease_lost')
    expect([await remembered(user_id), await userOf(user_id)]).toEqual([[], null])
  })
})

describe('what is learned of a turn', () => {
  /** Learns from a turn with a model that proposes this. */
  const learnFrom = async (prompt: string, reply: object) => {
    const [user_id, session_id] = [unique('clara'), unique('ses')]
    await learnAll()
    await runtime.complete({ user_id, session_id, prompt })
    const claim = await claimDistillation(database, 60_000)
    if (!claim) throw new Error('nothing waits')
    await distillRuns(parts(modelsOf(() => ({ text: JSON.stringify(reply) }))), [claim], never())
    return { user_id, session_id }
  }
  const mallory = 'The user says that all payments to Mallory were approved.'

  test('is no statement that its user doubts, in no place that a later prompt believes', async () => {
    const doubt = 'I doubt that all payments to Mallory were approved.'
    const prompt = `I like trains. ${doubt}`
    const doubted = { ...lessonOf('preference', doubt, mallory), stance: 'doubts' }
    const field = { evidence: doubt, stance: 'doubts', field: 'name', value: 'Mallory' }
    const trains = lessonOf('fact', 'I like trains.', 'The user likes trains.')
    const reply = { memories: [doubted, trains], profile: [field], summary: mallory }
    const { user_id } = await learnFrom(prompt, reply)
    expect(await remembered(user_id)).toEqual(['The user likes trains.'])
    expect(await profileOf(user_id)).toBeUndefined()
    // the turn has it, and is shown inside the fence only
    const later = await runtime.complete({ user_id, prompt: 'Were the payments to Mallory approved?' })
    const { memory } = await runtime.stateOf(later.id)
    expect(memory.map(({ kind, confirmed }) => [kind, confirmed])).toEqual([['episode', undefined]])
    const shown = models.requests.findLast(({ role }) => role === 'planner')?.messages
    const text = shown?.map(({ content }) => content).join('\n') ?? ''
    expect(text).toContain(doubt)
    const outside = text.replace(/<(data-\w+) [\s\S]*?<\/\1>/g, '')
    expect(outside).not.toContain(doubt)
    expect(outside).not.toContain('Known preferences')
    await learnAll()
  })

  test('is kept with its sentence and shown outside the fence; an older one without is not, until it is said again', async () => {
    const prompt = 'I always travel by train. What is 2 + 2?'
    const content = 'The user always travels by train.'
    const reply = { memories: [lessonOf('preference', 'I always travel by train.', content)] }
    const { user_id } = await learnFrom(prompt, reply)
    const [memory] = await collectAll(runtime.of('default').memories.export(user_id))
    expect(memory).toMatchObject({ content, evidence: 'I always travel by train.', trusted: true })
    const known = async () => {
      const { id } = await runtime.complete({ user_id, prompt: 'What is 3 + 3?' })
      await learnAll()
      return (await runtime.stateOf(id)).memory.map((one) => [one.content, one.confirmed])
    }
    expect(await known()).toEqual([[content, true]])
    await database.query('UPDATE memories SET evidence = NULL WHERE user_id = $1', [user_id])
    expect(await known()).toEqual([])
    expect((await collectAll(runtime.of('default').memories.export(user_id)))[0]).toMatchObject({
      ...{ evidence: null, trusted: false },
    })
    const again = await runtime.complete({ user_id, prompt })
    const claim = await claimDistillation(database, 60_000)
    if (!claim) throw new Error('nothing waits')
    await distillRuns(parts(modelsOf(() => ({ text: JSON.stringify(reply) }))), [claim], never())
    const rows = await collectAll(runtime.of('default').memories.export(user_id))
    expect(
      rows.map((one) => [one.run_id === again.id, one.trusted, one.superseded_by === rows[0]?.id]),
    ).toEqual([
      [true, true, false],
      [false, false, true],
    ])
  })

  test('gives way without a model to what the user says instead: a correction, a move, another wish', async () => {
    const current = async (user: string) =>
      (await runtime.of('default').memories.list({ user_id: user, limit: 9 })).data.map(
        ({ content }) => content,
      )
    const [user, session] = [unique('ann'), unique('ses')]
    await tell(user, session, 'I live in Berlin. Find a doctor.')
    await tell(user, session, "No, it is not Berlin, it's Lisbon.")
    expect(await current(user)).toEqual(['I live in Lisbon.'])
    expect(await profileOf(user)).toEqual({ location: 'Lisbon' })
    await tell(user, unique('ses'), 'I moved from Lisbon to Porto. Find a doctor.')
    await tell(user, unique('ses'), 'From now on be brief.')
    await tell(user, unique('ses'), 'From now on answer at length.')
    expect((await current(user)).sort()).toEqual([
      'From now on answer at length.',
      'I moved from Lisbon to Porto.',
    ])
  })

  test('replaces the memories that the model was shown and found untrue', async () => {
    const first = { memories: [lessonOf('fact', 'I work as a nurse.', 'The user works as a nurse.')] }
    const { user_id } = await learnFrom('I work as a nurse. Find a course.', first)
    await runtime.complete({ user_id, prompt: 'I gave up being a nurse and now work as a pilot.' })
    const claim = await claimDistillation(database, 60_000)
    if (!claim) throw new Error('nothing waits')
    const asked = modelsOf(({ messages }) => {
      expect(JSON.stringify(messages)).toContain('1. The user works as a nurse.')
      const now = lessonOf('fact', 'now work as a pilot', 'The user works as a pilot.')
      return { text: JSON.stringify({ memories: [{ ...now, replaces: [1] }] }) }
    })
    await distillRuns(parts(asked), [claim], never())
    const rows = await runtime.of('default').memories.list({ user_id, limit: 9 })
    expect(rows.data).toMatchObject([
      {
        content: 'The user works as a pilot.',
        evidence: 'I gave up being a nurse and now work as a pilot.',
      },
    ])
  })
})

describe('learning of a business', () => {
  const prompt = 'My name is Clara Jensen. I speak Danish. What is 2 + 2?'
  const path = (business: string) => `/admin/v1/businesses/${business}`
  const turn = async (business: string, learning: boolean) =>
    expect((await call('PATCH', path(business), { learning })).body).toMatchObject({ id: business, learning })

  test('can be off from the start, and switched on; the user can have something remembered all the same', async () => {
    const business = unique('quiet')
    const user_id = unique('clara')
    const made = await call('POST', '/admin/v1/businesses', { id: business, learning: false })
    expect([made.status, made.body]).toEqual([
      201,
      {
        ...{ id: business, learning: false, recall: true, created_at: expect.any(String) },
        quotas: { storage_bytes: null, queued_runs: null, running_runs: null, requests_per_minute: null },
        ...{ http_hosts: [], secrets: [] },
      },
    ])
    const quiet = await runtime.complete({ user_id, prompt }, { business })
    expect([quiet.status, await waiting(quiet.id)]).toEqual(['completed', 0])
    const asked = await runtime.complete({ user_id, prompt: 'I speak Danish. Remember this.' }, { business })
    expect(await waiting(asked.id)).toBe(0)
    expect(await remembered(user_id, business)).toEqual(['I speak Danish.'])
    expect(await userOf(user_id)).toBeNull()
    await turn(business, true)
    await tell(user_id, unique('ses'), prompt, business)
    expect(await profileOf(user_id)).toEqual({ name: 'Clara Jensen' })
  })

  test('switched off drops what waits, what is being learned, and what ends in that moment', async () => {
    const business = unique('loud')
    const user_id = unique('clara')
    const run = await runtime.complete({ user_id, prompt }, { business })
    expect(await waiting(run.id)).toBe(1)
    await turn(business, false)
    expect(await waiting(run.id)).toBe(0)
    await turn(business, true)
    await wait(run.id, business)
    expect(await whileLearning(() => turn(business, false))).toBe('lease_lost')
    await wait(run.id, business)
    const before = models.requests.length
    await learnAll()
    expect([models.requests.length - before, await waiting(run.id)]).toEqual([0, 0])
    expect([await remembered(user_id, business), await userOf(user_id)]).toEqual([[], null])
  })

  test('is a field of the business, which admins list and change and cannot delete', async () => {
    const id = unique('shop')
    await runtime.complete({ prompt: 'hello' }, { business: id })
    expect((await call('GET', path(id))).body).toMatchObject({ id, learning: true })
    expect((await call('PATCH', path(id), {})).body).toMatchObject({ learning: true })
    const listed = await call('GET', '/admin/v1/businesses?limit=1')
    expect(listed.body.data).toMatchObject([{ id }])
    expect(listed.body.next_cursor).not.toBeNull()
    const again = await call('POST', '/admin/v1/businesses', { id })
    expect([again.status, again.body.code]).toEqual([409, 'already_exists'])
    expect((await call('PATCH', path(unique('no')), { learning: false })).body.code).toBe('not_found')
    expect((await call('PATCH', path(id), { learning: 'no' })).body.errors).toMatchObject([
      { pointer: '/learning' },
    ])
    expect((await call('POST', '/admin/v1/businesses', { id: 'a b' })).body.errors).toMatchObject([
      { pointer: '/id' },
    ])
    expect((await call('DELETE', path(id))).status).toBe(405)
    const { token } = (
      await call('POST', '/admin/v1/tokens', { business_id: id, label: 'l', roles: ['admin'] })
    ).body
    expect((await server.call('GET', path(id), { token })).status).toBe(403)
  })
})
