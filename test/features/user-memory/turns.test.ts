// backends: either
// asserts: invariants

import { describe, expect } from 'vitest'
import { businessSchemas } from '../../../src/accounts/account-schemas.ts'
import { createBusinesses, ensureBusiness } from '../../../src/accounts/businesses.ts'
import { hashSpace } from '../../../src/features/user-memory/policy/hash-embedding.ts'
import { embedTurnBatch } from '../../../src/features/user-memory/store/embed-turns.ts'
import type { MemoryEmbedder } from '../../../src/features/user-memory/store/embedder.ts'
import { forgetOfBusiness } from '../../../src/features/user-memory/store/forget.ts'
import { createRunMemories } from '../../../src/features/user-memory/store/run-memories.ts'
import { calibrateByTurns } from '../../../src/features/user-memory/store/space-calibration.ts'
import { readTurnBacklog } from '../../../src/features/user-memory/store/turn-backlog.ts'
import { writeTurns } from '../../../src/features/user-memory/store/turns.ts'
import { asUser } from '../../../src/features/user-memory/store/user-scope.ts'
import type { Database } from '../../../src/infra/database/database.ts'
import { silentLog } from '../../../src/infra/lib/silent-log.ts'
import { unique } from '../../support/backend.ts'
import { runtimeTest } from '../../support/integration-test.ts'
import { hashOnly, readBacklog } from '../../support/memory.ts'
import { planners } from '../../support/memory-run.ts'
import { never } from '../../support/models.ts'
import { count, until } from '../../support/runs.ts'
import type { TestRuntime } from '../../support/test-runtime.ts'

let database: Database
let runtime: TestRuntime
const test = runtimeTest.extend('runtimeOptions', { scope: 'file' }, () => ({
  models: planners({ text: 'Done.' }),
  memory: { everyMs: 20 },
}))
test.beforeAll(async ({ database: d, runtime: r }) => {
  ;[database, runtime] = [d, r]
  await ensureBusiness(database, 'other')
})

const learned = () =>
  until(
    'every run is learned from',
    async () => (await count(database, 'distillations WHERE failed_at IS NULL')) === 0,
  )
const tell = async (user_id: string, ...prompts: string[]): Promise<string> => {
  const session_id = unique('ses')
  for (const prompt of prompts) await runtime.complete({ user_id, session_id, prompt })
  await learned()
  return session_id
}
/** What a new session of the user recalls of others: the prompts that are in it. */
const recalled = async (user_id: string, prompt: string, business?: string): Promise<string[]> => {
  const run = await runtime.complete({ user_id, prompt }, business ? { business } : undefined)
  const state = await runtime.stateOf(run.id, business)
  return state.memory.filter(({ kind }) => kind === 'episode').map(({ content }) => content)
}
const zebras = 'The zoo in Leeds has seventeen zebras and four giraffes, count their legs.'

describe('an ended turn', () => {
  test('is recalled in a new session of a user who never stated a fact, with its date and session, fenced', async () => {
    const user_id = unique('zoe')
    const session_id = await tell(user_id, zebras, 'Draft a letter to my landlord about the broken heating.')
    const found = await recalled(user_id, 'How many zebras?')
    const today = (await database.query<{ day: string }>('SELECT current_date::text AS day')).rows[0]?.day
    expect(found).toHaveLength(1)
    expect(found[0]).toMatch(
      /^Earlier talk of \d{4}-\d\d-\d\d \(session \S+\): The zoo in Leeds.* \/ Done\.$/,
    )
    expect(found[0]).toContain(session_id)
    expect([
      today,
      new Date(Date.parse(`${today}T00:00:00Z`) - 86_400_000).toISOString().slice(0, 10),
    ]).toContain(found[0]?.slice(16, 26))
    expect(await recalled(user_id, 'Which violin did I buy?')).toEqual([])
    expect(await recalled(unique('eve'), 'How many zebras?')).toEqual([])
    expect(await recalled(user_id, 'How many zebras?', 'other')).toEqual([])
  })

  test('is not recalled in its own session, and two of a session and five in all at most', async () => {
    const user_id = unique('u')
    const own = await tell(
      user_id,
      ...[1, 2, 3].map((n) => `Zebra number ${n} of the zoo sleeps in stable ${n}0, write that down.`),
    )
    // a user without turns in other sessions recalls none at all
    await tell(user_id, 'Draft a letter to my landlord about the broken heating.')
    const again = await runtime.complete({
      user_id,
      session_id: own,
      prompt: 'Where do the zebras sleep in the zoo?',
    })
    expect((await runtime.stateOf(again.id)).memory.filter(({ kind }) => kind === 'episode')).toEqual([])
    expect(await recalled(user_id, 'Where do the zebras sleep in the zoo?')).toHaveLength(2)
    for (const n of [4, 5, 6, 7])
      await tell(user_id, `Zebra number ${n} of the zoo sleeps in stable ${n}0, write that down.`)
    expect(await recalled(user_id, 'Where does the zebra of the zoo sleep, which stable?')).toHaveLength(5)
  })

  test('of fewer than five content words is in the row of the turn before it', async () => {
    const user_id = unique('u')
    const session_id = await tell(user_id, zebras, 'And the lions?')
    const { rows } = await database.query(
      'SELECT turn, last_turn, content FROM turns WHERE session_id = $1 ORDER BY turn',
      [session_id],
    )
    expect(rows).toEqual([{ turn: 1, last_turn: 2, content: `${zebras}\nDone.\nAnd the lions?\nDone.` }])
    expect(await recalled(user_id, 'What about lions?')).toHaveLength(1)
  })

  test('with a word that is cut in the middle of a letter is stored and found by its other words', async () => {
    const user_id = unique('u')
    await tell(user_id, `a${'\u{10330}'.repeat(40)} ${zebras}`)
    expect(await recalled(user_id, 'How many zebras?')).toHaveLength(1)
  })

  test('with a secret is stored without the part that has it', async () => {
    const user_id = unique('u')
    const session_id = await tell(user_id, 'My password is hunter2-Blue, and the zoo has zebras.')
    const { rows } = await database.query('SELECT content FROM turns WHERE session_id = $1', [session_id])
    expect(JSON.stringify(rows)).not.toContain('hunter2')
  })

  test('with NUL or half a surrogate pair keeps no other from being read later', async () => {
    const user_id = unique('u')
    const session_id = await tell(user_id, `${zebras}\u0000\ud800`)
    await database.query('DELETE FROM turns WHERE session_id = $1', [session_id])
    await database.query("UPDATE businesses SET turns_read_to = '' WHERE tenant = 'default'")
    await readTurnBacklog(database, hashSpace, Number.MAX_SAFE_INTEGER, never())
    expect(await recalled(user_id, 'How many zebras?')).toHaveLength(1)
  })

  test('of a fork is not recalled twice', async () => {
    const user_id = unique('u')
    const session_id = await tell(user_id, zebras)
    const { rows } = await database.query<{ seq: number }>(
      'SELECT max(seq) AS seq FROM actions WHERE session_id = $1',
      [session_id],
    )
    await runtime.of('default').fork(session_id, Number(rows[0]?.seq))
    await database.query("UPDATE businesses SET turns_read_to = '' WHERE tenant = 'default'")
    await readTurnBacklog(database, hashSpace, 1, never())
    expect(await recalled(user_id, 'How many zebras in the zoo?')).toHaveLength(1)
  })
})

describe('a date in the question', () => {
  test('filters what is recalled, and alone it asks for the latest turns', async () => {
    const user_id = unique('u')
    const owner = { business: 'default', user_id }
    const at = async (daysAgo: number, prompt: string) => {
      const session_id = unique('ses')
      await database.query('INSERT INTO sessions (tenant, session_id, user_id) VALUES ($1, $2, $3)', [
        'default',
        session_id,
        user_id,
      ])
      const said_at = new Date(Date.now() - daysAgo * 86_400_000)
      await asUser(database, owner, (sql) =>
        writeTurns(sql, owner, [{ session_id, turn: 1, prompt, answer: null, said_at }]),
      )
    }
    await at(1, 'Count the zebras of the zoo in Leeds again please')
    await at(400, 'Count the zebras of the zoo in Bristol again please')
    const ask = async (text: string) =>
      (
        await createRunMemories({ database, embedder: hashOnly, log: silentLog }, owner, {
          session_id: 'new',
          run_id: 'r',
        }).recall(text, 8, never())
      ).map(({ content }) => /Leeds|Bristol/.exec(content)?.[0])
    expect((await ask('Which zoo has the zebras?')).toSorted()).toEqual(['Bristol', 'Leeds'])
    expect(await ask('Which zoo had the zebras yesterday?')).toEqual(['Leeds'])
    expect(await ask('Where were we yesterday?')).toEqual(['Leeds'])
    expect(await ask('Where were we 3 days ago?')).toEqual([])
    expect(await ask('Where did we leave it last time?')).toEqual(['Leeds', 'Bristol'])
  })
})

describe('forgetting', () => {
  const rowsOf = async (user_id: string) => {
    const tables = ['turns', 'turn_vectors', 'turn_words']
    return Promise.all(tables.map((table) => count(database, `${table} WHERE user_id = '${user_id}'`)))
  }

  test('a user, a session and a memory takes their turns, and no later reading brings them back', async () => {
    const user_id = unique('u')
    await tell(user_id, zebras)
    const [turns = 0, vectors = 0, words = 0] = await rowsOf(user_id)
    expect([turns, vectors, words > 5]).toEqual([1, 0, true])
    await runtime.of('default').memories.forgetAll(user_id)
    await readBacklog(database)
    expect(await rowsOf(user_id)).toEqual([0, 0, 0])
    expect(await recalled(user_id, 'How many zebras?')).toEqual([])
    await learned()

    const deleted = await tell(
      user_id,
      'The aquarium of Plymouth has nine sharks and two octopuses, list them.',
    )
    expect(await recalled(user_id, 'How many sharks has the aquarium?')).toHaveLength(1)
    await learned()
    await runtime.of('default').deleteSession(deleted)
    await readBacklog(database)
    expect(await recalled(user_id, 'How many sharks?')).toEqual([])
    expect(await count(database, `turns WHERE session_id = '${deleted}'`)).toBe(0)
  })

  test('a memory takes the turns that repeat it, and leaves others', async () => {
    const user_id = unique('u')
    await tell(user_id, 'I am allergic to peanuts. What is 2 + 2?')
    await tell(user_id, 'Write a menu without peanuts, as I am allergic, for Saturday evening.')
    await tell(user_id, zebras)
    const [memory] = (await runtime.of('default').memories.list({ user_id, limit: 5 })).data
    expect(memory?.content).toBe('I am allergic to peanuts.')
    await runtime.of('default').memories.forget(String(memory?.id))
    await readBacklog(database)
    expect(await recalled(user_id, 'Which menu without peanuts, as I am allergic?')).toEqual([])
    expect(await recalled(user_id, 'How many zebras?')).toHaveLength(1)
  })
})

describe('a business without recall', () => {
  test('has no turns, and has those of its sessions once recall is on again', async () => {
    const tenant = unique('quiet')
    const businesses = createBusinesses(database, {} as never, forgetOfBusiness, () => {})
    await businesses.create({}, businessSchemas.input.parse({ id: tenant, recall: false }))
    await runtime.complete({ user_id: 'u', prompt: zebras }, { business: tenant })
    await learned()
    expect(await count(database, `turns WHERE tenant = '${tenant}'`)).toBe(0)
    await businesses.change({}, tenant, { recall: true })
    await readTurnBacklog(database, hashSpace, 1, never())
    expect(await count(database, `turns WHERE tenant = '${tenant}'`)).toBe(1)
    await businesses.change({}, tenant, { recall: false })
    expect(await count(database, `turns WHERE tenant = '${tenant}'`)).toBe(0)
  })
})

describe('an embedding model', () => {
  /** Texts of the same topic are equal in it, all others unrelated. */
  // no other test of this file speaks of ostriches: turns about the same topic would count as pairs that have nothing in common
  const topics = [/ostrich|flightless/i, /peanut|snack/i]
  const ostriches = 'The wildlife park in Leeds has eleven ostriches and two keepers, count their legs.'
  // texts without a topic have nothing in common
  const others: string[] = []
  const dimensionOf = (text: string): number => {
    const topic = topics.findIndex((pattern) => pattern.test(text))
    if (topic >= 0) return topic
    if (!others.includes(text)) others.push(text)
    return topics.length + others.indexOf(text)
  }
  const modelSpace = (answer: () => Promise<void> = async () => {}): MemoryEmbedder => ({
    current: () => 'topics v1',
    offers: () => true,
    embed: async (space, texts, caller, signal) => {
      if (space === hashSpace) return hashOnly.embed(space, texts, caller, signal)
      await answer()
      return texts.map((text) => Array.from({ length: 400 }, (_, n) => Number(n === dimensionOf(text))))
    },
  })

  test('finds a turn that shares no word with the question, and words serve while it does not answer', async () => {
    const user_id = unique('u')
    const owner = { business: 'default', user_id }
    const session_id = unique('ses')
    await database.query('INSERT INTO sessions (tenant, session_id, user_id) VALUES ($1, $2, $3)', [
      'default',
      session_id,
      user_id,
    ])
    await asUser(database, owner, (sql) =>
      writeTurns(sql, owner, [{ session_id, turn: 1, prompt: ostriches, answer: null, said_at: new Date() }]),
    )
    const recallWith = async (embedder: MemoryEmbedder, text: string) =>
      (
        await createRunMemories({ database, embedder, log: silentLog }, owner, {
          session_id: 'new',
          run_id: 'r',
        }).recall(text, 8, never())
      ).length
    const flightless = 'What did I ask of flightless birds?'
    expect(await recallWith(modelSpace(), flightless)).toBe(0)
    expect(await recallWith(modelSpace(), 'How many ostriches?')).toBe(1)
    const parts = { database, embedder: modelSpace(), log: silentLog }
    while ((await embedTurnBatch(parts, never(), new Set())) > 0)
      await calibrateByTurns(database, 'topics v1')
    expect(await recallWith(modelSpace(), flightless)).toBe(1)
    expect(await recallWith(modelSpace(), 'Which snack was it?')).toBe(0)
    const silent = modelSpace(() => new Promise(() => {}))
    expect(await recallWith(silent, 'How many ostriches?')).toBe(1)
    expect(await recallWith(silent, flightless)).toBe(0)
  })

  test('recalls nothing unless its best turn is near, then what is less near too; shared words add to similarity', async () => {
    const user_id = unique('u')
    const owner = { business: 'default', user_id }
    const turns = {
      kiln: 'The kiln at the workshop reached twelve hundred degrees overnight',
      glaze: 'The blue glaze dripped on my copper kettle during breakfast',
      quarry: 'Our class walked along the quarry before lunch on Thursday',
    }
    for (const prompt of Object.values(turns)) {
      const session_id = unique('ses')
      await database.query('INSERT INTO sessions (tenant, session_id, user_id) VALUES ($1, $2, $3)', [
        ...['default', session_id, user_id],
      ])
      await asUser(database, owner, (sql) =>
        writeTurns(sql, owner, [{ session_id, turn: 1, prompt, answer: null, said_at: new Date() }]),
      )
    }
    // unrelated texts are as near as 0, and a deviation is 0.01, the least
    const near: [RegExp, Record<number, number>][] = [
      [/pottery/, { 0: 1 }],
      [/stone/, { 1: 1 }],
      [/kiln/, { 0: 0.9, 2: 0.4 }],
      [/glaze/, { 0: 0.005, 1: 0.005, 3: 1 }],
    ]
    const embed = (text: string) => {
      const vector = near.find(([pattern]) => pattern.test(text))?.[1] ?? { [10 + dimensionOf(text)]: 1 }
      return Array.from({ length: 400 }, (_, n) => vector[n] ?? 0)
    }
    const embedder: MemoryEmbedder = {
      current: () => 'graded v1',
      offers: (space) => space !== hashSpace,
      embed: async (_, texts) => texts.map(embed),
    }
    const parts = { database, embedder, log: silentLog }
    while ((await embedTurnBatch(parts, never(), new Set())) > 0);
    const memories = createRunMemories(parts, owner, { session_id: 'new', run_id: 'r' })
    const ask = async (text: string) =>
      (await memories.recall(text, 8, never())).map(({ content }) => /kiln|glaze|quarry/.exec(content)?.[0])
    expect(await ask('What about pottery?')).toEqual(['kiln', 'glaze'])
    expect(await ask('What about stone?')).toEqual([])
    expect(await ask('Was the kettle iron, clay or stone?')).toEqual(['glaze'])
    expect(await ask('Was the kettle iron, clay or wood?')).toEqual([])
    expect(await ask('Is there pottery near the quarry?')).toEqual(['kiln', 'quarry', 'glaze'])
  })
})
