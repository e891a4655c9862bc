// backends: either

import { describe, expect } from 'vitest'
import { ensureBusiness } from '../../../src/accounts/businesses.ts'
import { createApp } from '../../../src/app/http/app.ts'
import { computeHashEmbedding, hashSpace } from '../../../src/features/user-memory/policy/hash-embedding.ts'
import {
  dropFailedDistillations,
  maxDistillationTries,
} from '../../../src/features/user-memory/store/distillation-queue.ts'
import { createMemoryEmbedder } from '../../../src/features/user-memory/store/embedder.ts'
import { forgetSessionMemories, listMemories } from '../../../src/features/user-memory/store/memory-rows.ts'
import { startMemoryWorker } from '../../../src/features/user-memory/store/memory-worker.ts'
import { reembedBatch } from '../../../src/features/user-memory/store/reembed.ts'
import { createRunMemories } from '../../../src/features/user-memory/store/run-memories.ts'
import { findMemories, searchMemories } from '../../../src/features/user-memory/store/search.ts'
import { readUnreadMemories } from '../../../src/features/user-memory/store/unread-words.ts'
import { asUser } from '../../../src/features/user-memory/store/user-scope.ts'
import { computeSignature } from '../../../src/features/user-memory/store/vector-signature.ts'
import { type Database, queryOne } from '../../../src/infra/database/database.ts'
import { systemClock } from '../../../src/infra/lib/system-clock.ts'
import type { ModelGateway } from '../../../src/models/ports/call-ports.ts'
import type { RegistryView } from '../../../src/models/ports/model-ports.ts'
import type { Sql } from '../../../src/state/ports/sql.ts'
import { openBackend, unique } from '../../support/backend.ts'
import { runtimeTest } from '../../support/integration-test.ts'
import { claimDistillation, collectAll, hashOnly, lessonOf } from '../../support/memory.ts'
import { modelsOf, planners } from '../../support/memory-run.ts'
import { never } from '../../support/models.ts'
import { codeOf, count, openWithDatabase, until } from '../../support/runs.ts'
import { nodesOf, type TestRuntime } from '../../support/test-runtime.ts'

const log = { debug() {}, info() {}, warn() {}, error() {} }

let runtime: TestRuntime
let database: Database

const test = runtimeTest.extend('runtimeOptions', { scope: 'file' }, () => ({
  models: planners({ text: 'Done.' }),
  memory: { everyMs: 20 },
  // half a minute never passes, or what the tests embed anew the worker would embed back
  clock: {
    ...systemClock,
    sleep: (ms, signal) => systemClock.sleep(ms < 30_000 ? ms : 3_600_000, signal),
  },
}))
test.beforeAll(async ({ database: d, runtime: r }) => {
  ;[database, runtime] = [d, r]
  await ensureBusiness(database, 'other')
  await sessionOf('s')
})

const sessionOf = (session_id: string, tenant = 'default') =>
  database.query('INSERT INTO sessions (tenant, session_id, user_id) VALUES ($1, $2, $3)', [
    tenant,
    session_id,
    'u',
  ])
const parts = () => ({ database, embedder: hashOnly, log })
const userOf = (user_id: string, source = { session_id: 's', run_id: unique('run') }, tenant = 'default') =>
  createRunMemories(parts(), { business: tenant, user_id }, source)
/** A sentence that its user said. */
const own = (content: string) => ({ content, said: [content], source_action_ids: [1] })
const contents = (found: readonly { content: string }[]) => found.map(({ content }) => content)
const learned = (what = 'every run is learned from') =>
  until(what, async () => (await count(database, 'distillations WHERE failed_at IS NULL')) === 0)

describe('a fact of the first turn', () => {
  test('is recalled in turn 30 and in a new session of the same user, and by no other user', async () => {
    const user_id = unique('clara')
    const session_id = unique('ses')
    await runtime.complete({ user_id, session_id, prompt: 'I am allergic to peanuts. What is 2 + 2?' })
    await learned()
    for (let turn = 2; turn < 30; turn++)
      await runtime.complete({ user_id, session_id, prompt: `What is ${turn} + ${turn}?` })
    const prompt = 'Which snacks with peanuts am I not allowed, being allergic?'
    const last = await runtime.complete({ user_id, session_id, prompt })
    const state = await runtime.stateOf(last.id)
    expect(state.prompts).toHaveLength(30)
    expect(nodesOf(state)).toContain('recall-memory')
    expect(contents(state.memory)).toContain('I am allergic to peanuts.')

    const anew = await runtime.stateOf((await runtime.complete({ user_id, prompt })).id)
    const facts = anew.memory.filter(({ kind }) => kind !== 'episode')
    expect(contents(facts)).toEqual(['I am allergic to peanuts.'])
    expect(anew.memory[0]).toMatchObject({ kind: 'fact', source_action_ids: [1] })

    const stranger = await runtime.stateOf((await runtime.complete({ user_id: unique('eve'), prompt })).id)
    expect(stranger.memory).toEqual([])
    expect(nodesOf(stranger)).not.toContain('recall-memory')
    const elsewhere = await runtime.complete({ user_id, prompt }, { business: 'other' })
    expect((await runtime.stateOf(elsewhere.id, 'other')).memory).toEqual([])
  })

  test('cannot be read under the role of the API by another user, another business or without a user', async () => {
    const user_id = unique('u')
    await userOf(user_id).remember(own('I work as a nurse in Leeds.'), '1', never())
    const seen = (tenant: string, user: string) =>
      asUser(database, { business: tenant, user_id: user }, (sql) =>
        count(sql, `memories WHERE user_id = '${user_id}'`),
      )
    expect(await seen('default', user_id)).toBe(1)
    expect(await seen('default', 'eve')).toBe(0)
    expect(await seen('other', user_id)).toBe(0)
    for (const table of ['memories', 'memory_words', 'memory_vectors', 'memory_sources'])
      expect(await database.asBusiness('default', (sql) => count(sql, table)), table).toBe(0)
    const stolen = asUser(database, { business: 'default', user_id: 'eve' }, (sql) =>
      sql.query(`UPDATE memories SET user_id = 'eve' WHERE user_id = $1 RETURNING memory_id`, [user_id]),
    )
    expect((await stolen).rows).toEqual([])
    const planted = asUser(database, { business: 'default', user_id: 'eve' }, (sql) =>
      sql.query(
        `INSERT INTO memories (tenant, user_id, memory_id, kind, content, origin, trusted, words)
         VALUES ('default', $1, 'planted', 'fact', 'c', 'user', true, 'c')`,
        [user_id],
      ),
    )
    expect(await codeOf(planted)).toBe('42501')
  })
})

describe('what is remembered', () => {
  test('passes the gate, is there once, and gives way to what is newer', async () => {
    const user_id = unique('u')
    const mine = userOf(user_id)
    const note = (content: string, place: string) => mine.remember(own(content), place, never())
    expect(await note('My password is hunter2-Blue!', '1')).toMatchObject({ keep: false, reason: 'secret' })
    const lyon = await note('I live in Lyon.', '2')
    expect(await note('I live in Lyon.', '2')).toMatchObject({ keep: true, id: lyon.id })
    expect(await note('I live in Lyon!', '3')).toMatchObject({ reason: 'duplicate', id: lyon.id })
    const berlin = await note('I moved to Berlin last month.', '4')
    expect(berlin).toMatchObject({ keep: true, supersedes: [lyon.id] })
    expect(contents(await mine.search('Where do I live?', 10, never()))).not.toContain('I live in Lyon.')
    const api = runtime.of('default').memories
    expect(contents((await api.list({ user_id, limit: 10 })).data)).toEqual(['I moved to Berlin last month.'])
    expect((await collectAll(api.export(user_id))).map(({ superseded_by }) => superseded_by)).toEqual([
      null,
      berlin.id,
    ])
    expect(await runtime.of('other').memories.forget(String(berlin.id))).toBe(false)
    expect(await api.forget(String(berlin.id))).toBe(true)
    expect(await collectAll(api.export(user_id))).toEqual([])
  })

  test('fades: of two alike the one that was used lately comes first', async () => {
    const user_id = unique('u')
    const mine = userOf(user_id)
    const old = await mine.remember(own('I like hiking in the Alps.'), '1', never())
    await mine.remember(own('I like hiking in the Dolomites.'), '2', never())
    const first = async () => (await mine.search('hiking', 2, never()))[0]?.id
    await database.query(
      `UPDATE memories SET strength = 0.9, last_used_at = clock_timestamp() - interval '20 years' WHERE memory_id = $1`,
      [old.id],
    )
    expect(await first()).not.toBe(old.id)
    await database.query('UPDATE memories SET last_used_at = clock_timestamp() WHERE memory_id = $1', [
      old.id,
    ])
    expect(await first()).toBe(old.id)
  })

  test('is forgotten with its only session, and what it had replaced holds again', async () => {
    const user_id = unique('u')
    const [a, b] = [unique('ses'), unique('ses')]
    await sessionOf(a)
    await sessionOf(b)
    const from = (session_id: string) => userOf(user_id, { session_id, run_id: unique('run') })
    await from(a).remember(own('I live in Lyon.'), '1', never())
    await from(a).remember(own('I speak Danish.'), '2', never())
    await from(b).remember(own('I speak Danish!'), '3', never())
    await from(b).remember(own('I moved to Berlin.'), '4', never())
    const left = async () =>
      contents(
        (await listMemories(database, { business: 'default', user_id }, { limit: 9, superseded: false }))
          .data,
      )
    await database.asBusiness('default', (sql) => forgetSessionMemories(sql, 'default', b))
    expect((await left()).sort()).toEqual(['I live in Lyon.', 'I speak Danish.'])
    await database.asBusiness('default', (sql) => forgetSessionMemories(sql, 'default', a))
    expect(await left()).toEqual([])
  })

  test('does not come back when what had replaced it is forgotten, and something newer holds', async () => {
    const user_id = unique('u')
    const [a, b] = [unique('ses'), unique('ses')]
    await sessionOf(a)
    await sessionOf(b)
    const from = (session_id: string) => userOf(user_id, { session_id, run_id: unique('run') })
    const lyon = await from(a).remember(own('I live in Lyon.'), '1', never())
    await from(b).remember(own('I moved to Berlin.'), '2', never())
    await from(b).remember(own('I moved to Rome.'), '3', never())
    const oslo = await from(a).remember(own('I moved to Oslo.'), '4', never())
    await database.asBusiness('default', (sql) => forgetSessionMemories(sql, 'default', b))
    const left = await collectAll(runtime.of('default').memories.export(user_id))
    expect(left.map(({ id, superseded_by }) => [id, superseded_by])).toEqual([
      [oslo.id, null],
      [lyon.id, oslo.id],
    ])
  })

  test('is never of a session that has been deleted meanwhile', async () => {
    const user_id = unique('u')
    const late = userOf(user_id, { session_id: unique('deleted'), run_id: unique('run') })
    expect(await codeOf(late.remember(own('I speak Danish.'), '1', never()))).toBe('lease_lost')
    expect(await collectAll(runtime.of('default').memories.export(user_id))).toEqual([])
  })
})

describe('the embedding model', () => {
  const entry = (name: string) => ({ name, upstream_name: name, active: true, category: 'embedding' })
  /** A registry in which one model embeds, by the built-in hashes turned round. */
  const switchable = (size: () => number) => {
    let models: string[] = []
    const view = () =>
      ({
        models: new Map(models.map((name) => [name, entry(name)])),
        routesByRole: new Map(
          models
            .slice(0, 1)
            .map((model) => ['embedding', { models: [{ model, weight: 1 }], strategy: 'priority' }]),
        ),
        routesByCategory: new Map(),
      }) as unknown as RegistryView
    const ask = (async (_wanted: unknown, { input }: { input: readonly string[] }) => ({
      result: { embeddings: input.map((text) => computeHashEmbedding(text).toReversed().slice(0, size())) },
    })) as unknown as ModelGateway['ask']
    const embedder = createMemoryEmbedder({ sql: database, ask, view })
    const serve = (...names: string[]): void => {
      models = names
    }
    return { embedder, serve }
  }

  test('can be changed: memories are found before, while and after they are embedded anew', async () => {
    const who = { business: 'default', user_id: unique('u') }
    const caller = { business_id: 'default', user_id: who.user_id, run_id: null }
    const { embedder, serve } = switchable(() => 768)
    const own2 = { database, embedder, log }
    const notes = [
      'I work as a nurse in Leeds.',
      'I prefer metric units.',
      'My favourite author is Ursula K. Le Guin.',
    ]
    const mine = createRunMemories(own2, who, { session_id: 's', run_id: unique('run') })
    for (const [at, content] of notes.entries()) await mine.remember(own(content), String(at), never())
    const found = async () =>
      contents(await searchMemories(own2, who, caller, { text: 'metric units', limit: 1 }, never()))
    const spaces = async () =>
      (
        await database.query<{ space: string }>('SELECT DISTINCT space FROM memories WHERE user_id = $1', [
          who.user_id,
        ])
      ).rows
    const model = unique('embed')
    expect(await spaces()).toEqual([{ space: hashSpace }])
    serve(model)
    expect(await found()).toEqual(['I prefer metric units.'])
    await until('all are embedded anew', async () => (await reembedBatch(own2, never())) === 0)
    expect(await spaces()).toEqual([{ space: `${model} ${model}` }])
    expect(await found()).toEqual(['I prefer metric units.'])
    // the model is gone before the next one has embedded anything: words find it
    serve()
    expect(await found()).toEqual(['I prefer metric units.'])
  })

  test('that one business cannot ask keeps no other waiting', async () => {
    await sessionOf('s', 'other')
    const space = unique('space')
    const embedder = {
      ...hashOnly,
      current: () => space,
      embed: async (_space: string, texts: readonly string[], caller: { business_id: string }) => {
        if (caller.business_id === 'default') throw new Error('its budget is spent')
        return texts.map(computeHashEmbedding)
      },
    }
    const note = own('I prefer metric units.')
    const [mine, other] = [unique('u'), unique('u')]
    await userOf(mine).remember(note, '1', never())
    await userOf(other, { session_id: 's', run_id: unique('run') }, 'other').remember(note, '1', never())
    const passedOver = new Set<string>()
    const before = await count(database, `memories WHERE tenant = 'other' AND space <> '${space}'`)
    let failures = 0
    for (let done: number | null = null; done !== 0; )
      done = await reembedBatch({ database, embedder, log }, never(), passedOver).catch(() => {
        failures++
        return null
      })
    expect(before).toBeGreaterThan(0)
    expect([failures, ...passedOver]).toEqual([1, 'default'])
    expect(
      await count(
        database,
        `memories WHERE tenant = 'other' AND superseded_by IS NULL AND space <> '${space}'`,
      ),
    ).toBe(0)
  })

  test('that gives vectors of another size is refused, and both sizes are named', async () => {
    let size = 768
    const { embedder, serve } = switchable(() => size)
    const model = unique('embed')
    serve(model)
    const caller = { business_id: 'default', user_id: 'u', run_id: null }
    await embedder.embed(embedder.current(), ['one'], caller, never())
    size = 384
    await expect(embedder.embed(embedder.current(), ['two'], caller, never())).rejects.toMatchObject({
      code: 'model_bad_reply',
      message: expect.stringMatching(/384.*768/),
    })
  })

  test('may have as many numbers as fit into a row beside the longest names', async () => {
    const most = 3600
    const name = `a${'b'.repeat(199)}`
    const caller = { business_id: name, user_id: name, run_id: null }
    const ask = (async (_wanted: unknown, { input: [text] }: { input: readonly string[] }) => ({
      result: { embeddings: [Array.from({ length: Number(text) }, () => 1)] },
    })) as unknown as ModelGateway['ask']
    const models = new Map([[name, entry(name)]])
    const view = () => ({ models }) as unknown as RegistryView
    const embedder = createMemoryEmbedder({ sql: database, ask, view })
    const space = `${name} ${name}`
    const refused = embedder.embed(space, [String(most + 1)], caller, never())
    expect(await codeOf(refused)).toBe('model_bad_reply')
    const [vector] = await embedder.embed(space, [String(most)], caller, never())
    await ensureBusiness(database, name)
    await sessionOf('s', name)
    const fixed = { current: () => space, offers: () => false, embed: async () => [vector ?? []] }
    const mine = createRunMemories(
      { database, embedder: fixed, log },
      { business: name, user_id: name },
      { session_id: 's', run_id: unique('run') },
    )
    expect(await mine.remember(own('I speak Danish.'), '1', never())).toMatchObject({
      keep: true,
    })
    expect(await count(database, `memory_vectors WHERE tenant = '${name}'`)).toBe(1)
  })
})

describe('a search', () => {
  test('is one round trip among built-in vectors, and asks a model only for users who have its vectors', async () => {
    const model = unique('space')
    const asked: string[] = []
    let trips = 0
    const watched: Database = {
      ...database,
      asBusiness: (...given) => {
        trips++
        return database.asBusiness(...given)
      },
    }
    const embedder = {
      ...hashOnly,
      offers: () => true,
      embed: async (space: string, texts: readonly string[]) => {
        asked.push(space)
        return texts.map(computeHashEmbedding)
      },
    }
    const search = async (user_id: string) => {
      asked.length = 0
      trips = 0
      const who = { business: 'default', user_id }
      const caller = { business_id: 'default', user_id, run_id: null }
      const parts = { database: watched, embedder: { ...embedder, current: () => model }, log }
      const found = await searchMemories(parts, who, caller, { text: 'metric units', limit: 3 }, never())
      return { found: contents(found), best: found[0]?.relevance ?? 0, models: asked.includes(model), trips }
    }
    const note = own('I prefer metric units.')
    const [newcomer, builtIn, moved] = [unique('u'), unique('u'), unique('u')]
    expect(await search(newcomer)).toEqual({ found: [], best: 0, models: false, trips: 1 })
    await userOf(builtIn).remember(note, '1', never())
    const first = await search(builtIn)
    expect(first).toMatchObject({ found: [note.content], models: false, trips: 1 })
    const parts = { database, embedder: { ...embedder, current: () => model }, log }
    const source = { session_id: 's', run_id: unique('run') }
    const mine = createRunMemories(parts, { business: 'default', user_id: moved }, source)
    await mine.remember(note, '1', never())
    // a space that he has nothing in takes nothing from how well it fits
    expect(await search(moved)).toMatchObject({ found: [note.content], models: true, trips: 2 })
    expect((await search(moved)).best).toBeCloseTo(first.best, 5)
  })

  test('finds what brute force finds, below and above the number that is compared exactly', async () => {
    for (const [size, atLeast] of [
      [500, 1],
      [4200, 0.98],
    ] as const) {
      const who = { business: 'default', user_id: unique('many') }
      const vectors = Array.from({ length: size }, (_, at) =>
        computeHashEmbedding(`note ${at} about ${at % 40} and ${at % 7} of list ${at % 90}`),
      )
      const rows = vectors.map((vector, at) => ({
        id: `${who.user_id}-${at}`,
        v: `[${vector.join(',')}]`,
        s: computeSignature(vector),
      }))
      await database.query(
        `WITH g AS (SELECT * FROM json_to_recordset($2::json) AS r (id text, v text, s text)), m AS (
           INSERT INTO memories (tenant, user_id, memory_id, kind, content, origin, trusted, words, space, signature)
           SELECT 'default', $1, id, 'fact', id, 'user', true, '', '${hashSpace}', s::bit varying FROM g)
         INSERT INTO memory_vectors (tenant, user_id, memory_id, space, embedding) SELECT 'default', $1, id, '${hashSpace}', v::halfvec FROM g`,
        [who.user_id, JSON.stringify(rows)],
      )
      let hits = 0
      const asked = 10
      for (let n = 0; n < asked; n++) {
        const text = `list ${n * 7} and note ${n * 31} about ${n}`
        const q = computeHashEmbedding(text)
        const truth = vectors
          .map((vector, at) => ({ at, dot: vector.reduce((sum, x, i) => sum + x * (q[i] ?? 0), 0) }))
          .toSorted((a, b) => b.dot - a.dot)
          .slice(0, 10)
        const near = [{ space: hashSpace, vector: q }]
        const found = await asUser(database, who, (sql) =>
          findMemories(sql, who, { words: [], vectors: near }, 10),
        )
        const least = (truth.at(-1)?.dot ?? 0) - 1e-3
        hits += found.filter(({ id }) => {
          const vector = vectors[Number(id.split('-').at(-1))] ?? []
          return vector.reduce((sum, x, i) => sum + x * (q[i] ?? 0), 0) >= least
        }).length
      }
      expect(hits / asked / 10, `${size} memories`).toBeGreaterThanOrEqual(atLeast)
    }
  })
})

describe('the index of words', () => {
  const plain = [
    'tea',
    'sea',
    'river',
    'boat',
    'paris',
    'train',
    'garden',
    '杭州',
    "o'neill",
    'c++',
    'naïve',
    'back\\\\slash',
  ]
  /** Memories of some of these words each, every seventh superseded, in the order of their numbers and of time. */
  const fill = async (user_id: string, size: number, sql: Sql = database) => {
    const rows = Array.from({ length: size }, (_, at) => ({
      id: `${user_id}-${String(at).padStart(3, '0')}`,
      w: plain.filter((_word, n) => (at * 7 + n * n + (at >> 3)) % 4 === 0),
      s: at % 7 === 3 ? 'a later one' : null,
    }))
    await sql.query(
      `INSERT INTO memories (tenant, user_id, memory_id, kind, content, origin, trusted, words, superseded_by, created_at)
       SELECT 'default', $1, id, 'fact', id, 'user', true, array_to_tsvector(ARRAY(SELECT json_array_elements_text(w))), s,
         now() + (row_number() OVER ()) * interval '1 second'
       FROM json_to_recordset($2::json) AS r (id text, w json, s text)`,
      [user_id, JSON.stringify(rows)],
    )
  }
  const searches = [
    ['tea'],
    ['sea', 'river'],
    plain,
    ['杭州', 'none of them'],
    ["o'neill", 'naïve', 'boat'],
    ['unknown'],
  ]
  const findAll = (who: { business: string; user_id: string }) =>
    Promise.all(
      searches.map(async (words) =>
        (await asUser(database, who, (sql) => findMemories(sql, who, { words, vectors: [] }, 12))).map(
          ({ id }) => id,
        ),
      ),
    )
  const indexed = (user_id: string) => count(database, 'memory_words WHERE user_id = $1', [user_id])
  /** As a worker of an earlier version left them. */
  const unread = async (user_id: string) => {
    await database.query('DELETE FROM memory_words WHERE user_id = $1', [user_id])
    await database.query('UPDATE memories SET number = NULL WHERE user_id = $1', [user_id])
  }

  test('is read at the words that are asked alone, also by a plan from when there were no memories', async () => {
    const backend = await openBackend()
    const own = await backend.openDatabase()
    const who = { business: 'default', user_id: 'u' }
    type Plan = Record<string, number> & { 'Relation Name'?: string; Plans?: Plan[] }
    const rowsRead = ({ Plans: parts = [], ...plan }: Plan, table: string): number =>
      (plan['Relation Name'] === table ? Number(plan['Actual Rows']) * Number(plan['Actual Loops']) : 0) +
      parts.reduce((sum, part) => sum + rowsRead(part, table), 0)
    try {
      await ensureBusiness(own, who.business)
      await asUser(own, who, async (sql) => {
        let arguments_ = ''
        const query: typeof sql.query = async (text, values = []) => {
          await sql.query(`PREPARE found AS ${text}`)
          arguments_ = (values as unknown[]).map((one) => `'${String(one).replaceAll("'", "''")}'`).join(', ')
          return sql.query(`EXECUTE found(${arguments_})`)
        }
        await sql.query("SELECT set_config('plan_cache_mode', 'force_generic_plan', true)")
        await findMemories({ ...sql, query }, who, { words: ['river'], vectors: [] }, 12)
        await fill(who.user_id, 2000, sql)
        const { rows } = await sql.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>(
          `EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE found(${arguments_})`,
        )
        const [plan] = rows.map((row) => row['QUERY PLAN'][0].Plan)
        const asked = await count(sql, "memory_words WHERE word = hashtextextended('river', 0)")
        expect(plan && rowsRead(plan, 'memory_words')).toBe(asked)
        expect(plan && rowsRead(plan, 'memories')).toBe(40)
      })
    } finally {
      await own.close()
      await backend.drop()
    }
  })

  test('finds and ranks as row by row, also what an earlier version wrote once it is read', async () => {
    const who = { business: 'default', user_id: unique('words') }
    await fill(who.user_id, 120)
    const byIndex = await findAll(who)
    const words = await indexed(who.user_id)
    expect(byIndex.map((ids) => ids.length > 0)).toEqual([true, true, true, true, true, false])
    expect(words).toBeGreaterThan(100)
    await unread(who.user_id)
    expect(await indexed(who.user_id)).toBe(0)
    expect(await findAll(who)).toEqual(byIndex)
    while ((await readUnreadMemories(database)) > 0);
    expect(await indexed(who.user_id)).toBe(words)
    expect(await findAll(who)).toEqual(byIndex)
  })

  test('holds no memory that is superseded or deleted, and one again that is true again', async () => {
    const who = { business: 'default', user_id: unique('words') }
    await fill(who.user_id, 9)
    const before = await indexed(who.user_id)
    const id = `${who.user_id}-000`
    const set = (by: string | null) =>
      database.query('UPDATE memories SET superseded_by = $2 WHERE memory_id = $1', [id, by])
    await set('another')
    const without = await indexed(who.user_id)
    expect(without).toBeLessThan(before)
    expect((await findAll(who)).flat()).not.toContain(id)
    await set(null)
    expect(await indexed(who.user_id)).toBe(before)
    expect((await findAll(who)).flat()).toContain(id)
    await database.query('DELETE FROM memories WHERE memory_id = $1', [id])
    expect(await indexed(who.user_id)).toBe(without)
  })

  test('never takes two words with one hash for the same', async () => {
    const who = { business: 'default', user_id: unique('words') }
    await fill(who.user_id, 9)
    const id = `${who.user_id}-001`
    await database.query(
      `INSERT INTO memory_words (tenant, user_id, word, number)
       SELECT 'default', $1, hashtextextended('unknown', 0), number FROM memories WHERE memory_id = $2`,
      [who.user_id, id],
    )
    expect((await findAll(who)).at(-1)).toEqual([])
  })
})

describe('learning from a run', () => {
  test('counts neither to its time nor its usage, survives the death of a worker, and happens once', async () => {
    const user_id = unique('u')
    let release = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const said = modelsOf(() => ({
      text: JSON.stringify({
        memories: [
          lessonOf('preference', 'I never eat meat', 'The user never eats meat.'),
          lessonOf('fact', 'the page says he is rich', 'The user is rich.'),
        ],
        profile: [
          { evidence: 'My name is Clara Jensen', stance: 'asserts', field: 'name', value: 'Clara Jensen' },
        ],
        summary: 'Clara planned a dinner.',
      }),
    }))
    // on a server it would share the database with the runtime that learns
    const apart = await openBackend()
    const quiet = await openWithDatabase(apart, { models: planners({ text: 'Done.' }) })
    const sql = quiet.database
    try {
      const run = await quiet.runtime.complete({
        user_id,
        prompt: 'My name is Clara Jensen. I never eat meat, so plan a dinner for four people.',
      })
      expect(run.status).toBe('completed')
      // nothing learns here, and the answer is out
      let asking = 0
      let woken = 0
      const work = (gate: Promise<void>, everyMs = 10) =>
        startMemoryWorker({
          ...{ database: sql, embedder: hashOnly, log, clock: systemClock, everyMs },
          modelsFor: (caller) => {
            expect(caller.run_id).toBeNull()
            return {
              ...said,
              async call(request, signal) {
                asking++
                await gate
                woken++
                return said.call(request, signal)
              },
            }
          },
        })
      const of = (table: string) => count(sql, `${table} WHERE run_id = '${run.id}'`)
      // takes it at once, and does not look again while it learns
      const silent = work(held, 60_000)
      await until('one has taken it, and asks the model', () => asking === 1)
      expect(await count(sql, `distillations WHERE run_id = '${run.id}' AND tries = 1`)).toBe(1)
      await sql.query(`UPDATE distillations SET due_at = clock_timestamp() WHERE run_id = $1`, [run.id])
      const second = work(Promise.resolve())
      await until('the other has learned', async () => (await of('distillations')) === 0)
      release()
      await until('the first has woken', () => woken === 2)
      await Promise.all([silent.close(), second.close()])
      expect(await of('memories')).toBe(1)
      expect(said.requests[0]?.role).toBe('distill')
      const memory = await queryOne<{ content: string; trusted: boolean }>(
        sql,
        'SELECT content, trusted FROM memories WHERE run_id = $1',
        [run.id],
      )
      expect(memory).toEqual({ content: 'The user never eats meat.', trusted: true })
      const user = await queryOne(sql, 'SELECT profile, learned FROM users WHERE user_id = $1', [user_id])
      expect(user).toMatchObject({
        profile: { name: 'Clara Jensen' },
        learned: { name: { value: 'Clara Jensen', run_id: run.id } },
      })
      const session = await queryOne(
        sql,
        'SELECT summary, summary_turn FROM sessions WHERE session_id = $1',
        [run.session_id],
      )
      expect(session).toEqual({ summary: 'Clara planned a dinner.', summary_turn: 1 })
      expect((await quiet.runtime.of('default').run(run.id))?.usage).toEqual(run.usage)
      expect(await claimDistillation(sql, 1000)).toBeNull()
      // each worker that takes it dies of it
      await sql.query(
        `INSERT INTO distillations (tenant, run_id, tries) VALUES ('default', $1, ${maxDistillationTries - 1})`,
        [run.id],
      )
      expect(await claimDistillation(sql, 0)).toMatchObject({ run_id: run.id, tries: maxDistillationTries })
      expect(await claimDistillation(sql, 0)).toBeNull()
      await dropFailedDistillations(sql)
      expect(await of('distillations')).toBe(1)
      expect(await count(sql, 'distillations WHERE failed_at IS NULL')).toBe(0)
    } finally {
      release()
      await quiet.runtime.close()
      await apart.drop()
    }
  })
})

describe('over HTTP', () => {
  test('memories are listed in pages, searched, exported and forgotten', async () => {
    const user_id = unique('u')
    const mine = userOf(user_id)
    for (const [at, content] of [
      'I speak Danish.',
      'I prefer metric units.',
      'I am allergic to peanuts.',
    ].entries())
      await mine.remember(own(content), String(at), never())
    const app = await createApp({ runtime, auth: 'off' })
    const get = async (path: string) => {
      const reply = await app.inject({ url: path })
      return { status: reply.statusCode, body: reply.json() }
    }
    try {
      const first = await get(`/v1/memories?user_id=${user_id}&limit=2`)
      expect(contents(first.body.data)).toEqual(['I am allergic to peanuts.', 'I prefer metric units.'])
      const rest = await get(`/v1/memories?user_id=${user_id}&limit=2&cursor=${first.body.next_cursor}`)
      expect(contents(rest.body.data)).toEqual(['I speak Danish.'])
      expect(rest.body.next_cursor).toBeNull()
      const found = await get(`/v1/memories?user_id=${user_id}&query=which%20units&limit=1`)
      expect(found.body.data).toMatchObject([
        { content: 'I prefer metric units.', relevance: expect.any(Number) },
      ])
      expect((await get(`/v1/memories/export?user_id=${user_id}`)).body.data).toHaveLength(3)
      expect((await get('/v1/memories')).status).toBe(422)
      expect((await get(`/v1/memories?user_id=${user_id}&query=a&cursor=b`)).status).toBe(422)
      expect((await get('/v1/memories?user_id=newcomer')).body).toEqual({ data: [], next_cursor: null })
      const url = `/v1/memories/${rest.body.data[0].id}`
      expect((await app.inject({ method: 'DELETE', url })).statusCode).toBe(204)
      expect((await app.inject({ method: 'DELETE', url })).statusCode).toBe(404)
    } finally {
      await app.close()
    }
  })
})
