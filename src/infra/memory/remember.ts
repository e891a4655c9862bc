import { isMasonError, MasonError } from '../../state/errors.ts'
import { passGate, type Verdict } from '../../state/memory/gate.ts'
import type { Note } from '../../state/memory/kinds.ts'
import { subjectOf } from '../../state/memory/subject.ts'
import { wordsOf } from '../../state/memory/words.ts'
import type { Sql } from '../../state/ports.ts'
import { one } from '../database/database.ts'
import { sha256 } from '../ids.ts'
import type { Caller } from '../models/ports.ts'
import { asUser, type Who } from './scope.ts'
import {
  findMemories,
  type MemoryRow,
  memoryColumns,
  type Parts,
  prepareQuery,
  type Query,
  spacesOf,
  vectorText,
} from './search.ts'
import { signatureOf } from './signature.ts'

/** The run that a note is from. */
export type Source = { session_id: string; run_id: string }

export type Remembered = Verdict & { id: string | null }

/** The same for the same note of the same place: written twice, it is there once. */
export const memoryId = (run_id: string, place: string): string =>
  `mem_${sha256(`${run_id} ${place}`).slice(0, 32)}`

/** A note with its vector and what is needed to look for others like it. */
export type ReadyNote = {
  note: Note
  id: string
  query: Query
  space: string
  vector: readonly number[] | null
}

/** Asks the embedding model, so outside of any transaction. Without it a note gets its vector later. */
export const readyNotes = async (
  parts: Parts,
  who: Who,
  notes: readonly (Note & { id: string })[],
  caller: Caller,
  signal: AbortSignal,
): Promise<ReadyNote[]> => {
  if (notes.length === 0) return []
  const { database, embedder, log } = parts
  const spaces = await asUser(database, who, (sql) => spacesOf(sql, who), { atOnce: true })
  const space = embedder.current()
  const texts = notes.map(({ content }) => content)
  const vectors = await embedder.embed(space, texts, caller, signal).catch((error: unknown) => {
    if (signal.aborted || !isMasonError(error)) throw error
    log.warn({ space, error: error.message }, 'memories are kept without a vector for now')
    return null
  })
  const others = spaces.filter((other) => other !== space)
  return Promise.all(
    notes.map(async ({ id, ...note }, at) => {
      const vector = vectors?.[at] ?? null
      const query = await prepareQuery(parts, others, note.content, caller, signal)
      const own = vector ? [{ space, vector }] : []
      return { note, id, space, vector, query: { ...query, vectors: [...own, ...query.vectors] } }
    }),
  )
}

/** As many as a new statement is held against. */
const comparedWith = 12

/** Two who write for one user at a time would not see each other's statements. Before all other locks, which are then waited for in no circle. */
export const lockUser = (sql: Sql, { tenant, user_id }: Who): Promise<unknown> =>
  sql.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`mason.memory ${tenant} ${user_id}`])

/**
 * Keeps a session from being deleted until the transaction ends, so that nothing of it is remembered after it has been
 * forgotten. `lease_lost`: it is gone, and whoever works for it has nothing to work for.
 */
export const holdSession = async (sql: Sql, { tenant }: Who, { session_id }: Source): Promise<void> => {
  const held = await one(
    sql,
    'SELECT 1 AS there FROM sessions WHERE tenant = $1 AND session_id = $2 FOR KEY SHARE',
    [tenant, session_id],
  )
  if (held === null) throw new MasonError('lease_lost', `session ${session_id} has been deleted`)
}

/**
 * Writes a note through the gate. Inside a transaction of the user that holds his lock; safe to repeat. `isHeldBack`:
 * whether it may not be kept now, which is asked only for one that is not there yet.
 */
export const writeNote = async (
  sql: Sql,
  who: Who,
  source: Source,
  ready: ReadyNote,
  isHeldBack: () => Promise<boolean> = async () => false,
): Promise<Remembered> => {
  const { note, id } = ready
  const written = await one<{ kind: Note['kind'] }>(
    sql,
    'SELECT kind FROM memories WHERE tenant = $1 AND memory_id = $2',
    [who.tenant, id],
  )
  if (written)
    return { keep: true, id, content: note.content, kind: note.kind ?? 'fact', subject: null, supersedes: [] }
  if (await isHeldBack()) return { keep: false, why: 'forgotten', id: null }
  const subject = note.subject ?? subjectOf(note.content)
  const [alike, same] = await Promise.all([
    findMemories(sql, who, ready.query, comparedWith),
    subject === null ? [] : ofSubject(sql, who, subject),
  ])
  const verdict = passGate({ ...note, subject }, [
    ...alike,
    ...same.filter(({ id }) => !alike.some((one) => one.id === id)),
  ])
  if (verdict.keep) {
    await insertMemory(sql, who, source, ready, verdict)
    await supersede(sql, who, verdict.supersedes, id)
    return { ...verdict, id }
  }
  if (verdict.why !== 'duplicate') return { ...verdict, id: null }
  await confirm(sql, who, verdict.of, source)
  return { ...verdict, id: verdict.of }
}

/** What is newer may share no word with what it takes the place of. */
const ofSubject = async (sql: Sql, { tenant, user_id }: Who, subject: string): Promise<MemoryRow[]> => {
  const { rows } = await sql.query<MemoryRow>(
    `SELECT ${memoryColumns} FROM memories
     WHERE tenant = $1 AND user_id = $2 AND superseded_by IS NULL AND subject = $3 ORDER BY created_at DESC LIMIT ${comparedWith}`,
    [tenant, user_id, subject],
  )
  return rows
}

const insertMemory = async (
  sql: Sql,
  who: Who,
  source: Source,
  { note, id, space, vector }: ReadyNote,
  { content, kind, subject }: Extract<Verdict, { keep: true }>,
): Promise<void> => {
  const { tenant, user_id } = who
  await sql.query(
    `INSERT INTO memories (tenant, user_id, memory_id, kind, content, subject, origin, trusted, session_id, run_id,
       source_action_ids, words, space, signature)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, ARRAY(SELECT json_array_elements_text($11::json)::int),
       array_to_tsvector(ARRAY(SELECT DISTINCT json_array_elements_text($12::json))), $13, $14::bit varying)`,
    [
      tenant,
      user_id,
      id,
      kind,
      content,
      subject,
      note.origin,
      note.trusted,
      source.session_id,
      source.run_id,
      JSON.stringify(note.source_action_ids),
      JSON.stringify(wordsOf(content)),
      vector ? space : '',
      vector ? signatureOf(vector) : null,
    ],
  )
  if (vector)
    await sql.query(
      'INSERT INTO memory_vectors (tenant, user_id, memory_id, space, embedding) VALUES ($1, $2, $3, $4, $5::halfvec)',
      [tenant, user_id, id, space, vectorText(vector)],
    )
  await addSource(sql, who, id, source)
}

const addSource = (sql: Sql, { tenant, user_id }: Who, id: string, { session_id, run_id }: Source) =>
  sql.query(
    `INSERT INTO memory_sources (tenant, user_id, memory_id, session_id, run_id) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT DO NOTHING`,
    [tenant, user_id, id, session_id, run_id],
  )

/** What took their place is looked for instead; they stay to tell what was true before. */
const supersede = async (sql: Sql, { tenant }: Who, ids: readonly string[], by: string): Promise<void> => {
  if (ids.length === 0) return
  const values = [tenant, JSON.stringify(ids)]
  await sql.query(
    `UPDATE memories SET superseded_by = $3, space = '', signature = NULL
     WHERE tenant = $1 AND memory_id IN (SELECT json_array_elements_text($2::json)) AND superseded_by IS NULL`,
    [...values, by],
  )
  await sql.query(
    'DELETE FROM memory_vectors WHERE tenant = $1 AND memory_id IN (SELECT json_array_elements_text($2::json))',
    values,
  )
}

/** Said again: it is stronger for it, and has one more source. */
const confirm = async (sql: Sql, who: Who, id: string, source: Source): Promise<void> => {
  const { rows } = await addSource(sql, who, id, source).then(() =>
    sql.query(
      `UPDATE memories SET strength = least(1, strength + 0.15), last_used_at = clock_timestamp()
       WHERE tenant = $1 AND memory_id = $2 RETURNING memory_id`,
      [who.tenant, id],
    ),
  )
  if (rows.length === 0) throw new Error(`memory ${id} went while it was being confirmed`)
}

/** Found memories were of use: they fade anew from now on. */
export const noteUse = (sql: Sql, { tenant }: Who, ids: readonly string[]): Promise<unknown> =>
  sql.query(
    `UPDATE memories SET uses = uses + 1, strength = least(1, strength + 0.02), last_used_at = clock_timestamp()
     WHERE tenant = $1 AND memory_id IN (SELECT json_array_elements_text($2::json))`,
    [tenant, JSON.stringify(ids)],
  )
