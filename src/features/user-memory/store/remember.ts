import { hasRow, queryOne } from '../../../infra/database/database.ts'
import { sha256 } from '../../../infra/lib/ids.ts'
import type { ModelCaller } from '../../../models/ports/model-ports.ts'
import { isMasonError, MasonError } from '../../../state/errors.ts'
import type { GateVerdict } from '../../../state/ports/memories.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import { extractWords } from '../../../state/text/words.ts'
import { judgeNote, type Note } from '../policy/memory-gate.ts'
import {
  findMemories,
  type MemoryQuery,
  type MemoryRow,
  type MemoryServices,
  memoryColumns,
  prepareMemoryQuery,
  readSpaces,
  toVectorText,
} from './search.ts'
import { type MemoryOwner, sendAsUser } from './user-scope.ts'
import { computeSignature } from './vector-signature.ts'

/** The run that a note comes from. */
export type NoteSource = { session_id: string; run_id: string }

/** The gate's verdict, and the id of the stored or confirmed memory; null: none. */
export type RememberResult = GateVerdict & { id: string | null }

/** The id of a note within a run: the same note written twice is stored once. */
export const toMemoryId = (run_id: string, noteKey: string): string =>
  `mem_${sha256(`${run_id} ${noteKey}`).slice(0, 32)}`

/** A note with its vector and the query for similar memories. */
export type PreparedNote = {
  note: Note
  id: string
  query: MemoryQuery
  space: string
  vector: readonly number[] | null
}

/** Embeds notes. It may call a model, so outside any transaction. When the model fails, the vectors are added later. */
export const prepareNotes = async (
  parts: MemoryServices,
  owner: MemoryOwner,
  notes: readonly (Note & { id: string })[],
  caller: ModelCaller,
  signal: AbortSignal,
): Promise<PreparedNote[]> => {
  if (notes.length === 0) return []
  const { database, embedder, log } = parts
  const spaces = await sendAsUser(database, owner, (sql) => readSpaces(sql, owner))
  const space = embedder.current()
  const texts = notes.map(({ content }) => content)
  const vectors = await embedder.embed(space, texts, caller, signal).catch((error: unknown) => {
    if (signal.aborted || !isMasonError(error)) throw error
    log.warn({ space, error: error.message }, 'memories are stored without a vector for now')
    return null
  })
  const otherSpaces = spaces.filter((other) => other !== space)
  return Promise.all(
    notes.map(async ({ id, ...note }, at) => {
      const vector = vectors?.[at] ?? null
      const query = await prepareMemoryQuery(parts, otherSpaces, note.content, caller, signal)
      const own = vector ? [{ space, vector }] : []
      return { note, id, space, vector, query: { ...query, vectors: [...own, ...query.vectors] } }
    }),
  )
}

/** Memories that a new statement is compared with. */
const maxCompared = 12

/**
 * Locks a user's memories until the transaction ends: two writers at a time would not see each other's statements. Taken
 * before all other locks, so that there is no deadlock.
 */
export const lockUser = (sql: Sql, { business, user_id }: MemoryOwner): Promise<unknown> =>
  sql.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`mason.memory ${business} ${user_id}`])

/**
 * Prevents the deletion of a session until the transaction ends, so that nothing of it is remembered after it was
 * forgotten. Throws `lease_lost` when it is deleted already: then its worker has no work left.
 */
export const holdSession = async (
  sql: Sql,
  owner: MemoryOwner,
  source: Pick<NoteSource, 'session_id'>,
): Promise<void> => {
  const { size } = await holdSessions(sql, owner, [source])
  if (size === 0) throw new MasonError('lease_lost', `session ${source.session_id} has been deleted`)
}

/** The same for several; returns those that are there. `% 1 = 0`: as in `append-statements.ts`, or all sessions are read for each. */
export const holdSessions = async (
  sql: Sql,
  { business }: MemoryOwner,
  sources: readonly Pick<NoteSource, 'session_id'>[],
): Promise<Set<string>> => {
  const { rows } = await sql.query<{ session_id: string }>(
    `SELECT s.session_id FROM json_array_elements_text($2::json) WITH ORDINALITY AS l(session_id, at)
       JOIN sessions s ON s.tenant = $1 AND s.session_id = l.session_id WHERE l.at % 1 = 0
     ORDER BY s.session_id FOR KEY SHARE OF s`,
    [business, JSON.stringify(sources.map(({ session_id }) => session_id))],
  )
  return new Set(rows.map(({ session_id }) => session_id))
}

/**
 * Writes a note through the gate. Inside a transaction of the user that holds their lock; safe to repeat. `isForgotten`:
 * whether it repeats forgotten content, called only for a note that is not stored yet.
 */
export const writeNote = async (
  sql: Sql,
  owner: MemoryOwner,
  source: NoteSource,
  ready: PreparedNote,
  isForgotten: () => Promise<boolean> = async () => false,
): Promise<RememberResult> => {
  const { note, id } = ready
  const statement = 'SELECT kind FROM memories WHERE tenant = $1 AND memory_id = $2'
  const written = await queryOne<{ kind: Note['kind'] }>(sql, statement, [owner.business, id])
  if (written)
    return { keep: true, id, content: note.content, kind: note.kind ?? 'fact', subject: null, supersedes: [] }
  if (await isForgotten()) return { keep: false, reason: 'forgotten', id: null }
  const [similar, sameSubject] = await Promise.all([
    findMemories(sql, owner, ready.query, maxCompared),
    note.subject ? findBySubject(sql, owner, note.subject) : [],
  ])
  const verdict = judgeNote(note, similar, sameSubject)
  if (verdict.keep) {
    await insertMemory(sql, owner, source, ready, verdict)
    await supersede(sql, owner, verdict.supersedes, id)
    return { ...verdict, id }
  }
  if (verdict.reason !== 'duplicate') return { ...verdict, id: null }
  await confirmMemory(sql, owner, verdict.duplicateOf, source)
  return { ...verdict, id: verdict.duplicateOf }
}

/** A statement may share no word with the one that it supersedes. */
const findBySubject = async (
  sql: Sql,
  { business, user_id }: MemoryOwner,
  subject: string,
): Promise<MemoryRow[]> => {
  const { rows } = await sql.query<MemoryRow>(
    `SELECT ${memoryColumns} FROM memories
     WHERE tenant = $1 AND user_id = $2 AND superseded_by IS NULL AND subject = $3 ORDER BY created_at DESC LIMIT ${maxCompared}`,
    [business, user_id, subject],
  )
  return rows
}

const insertMemory = async (
  sql: Sql,
  owner: MemoryOwner,
  source: NoteSource,
  { note: { evidence, source_action_ids }, id, space, vector }: PreparedNote,
  { content, kind, subject }: Extract<GateVerdict, { keep: true }>,
): Promise<void> => {
  const { business, user_id } = owner
  const { session_id, run_id } = source
  await sql.query(
    `INSERT INTO memories (tenant, user_id, memory_id, kind, content, subject, evidence, session_id, run_id, origin, trusted,
       source_action_ids, words, space, signature)
     VALUES ($business, $user_id, $id, $kind, $content, $subject, $evidence, $session_id, $run_id, 'user', true,
       ARRAY(SELECT json_array_elements_text($source_action_ids::json)::int),
       array_to_tsvector(ARRAY(SELECT DISTINCT json_array_elements_text($words::json))), $space, $signature::bit varying)`,
    {
      business,
      user_id,
      id,
      kind,
      content,
      subject,
      evidence,
      session_id,
      run_id,
      source_action_ids: JSON.stringify(source_action_ids),
      words: JSON.stringify(extractWords(content)),
      space: vector ? space : '',
      signature: vector ? computeSignature(vector) : null,
    },
  )
  if (vector)
    await sql.query(
      'INSERT INTO memory_vectors (tenant, user_id, memory_id, space, embedding) VALUES ($1, $2, $3, $4, $5::halfvec)',
      [business, user_id, id, space, toVectorText(vector)],
    )
  await addSource(sql, owner, id, source)
}

const addSource = (
  sql: Sql,
  { business, user_id }: MemoryOwner,
  id: string,
  { session_id, run_id }: NoteSource,
) =>
  sql.query(
    `INSERT INTO memory_sources (tenant, user_id, memory_id, session_id, run_id) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT DO NOTHING`,
    [business, user_id, id, session_id, run_id],
  )

/** Searches no longer return superseded memories; exports do. */
const supersede = async (
  sql: Sql,
  { business }: MemoryOwner,
  ids: readonly string[],
  by: string,
): Promise<void> => {
  if (ids.length === 0) return
  const values = [business, JSON.stringify(ids)]
  await sql.query(
    `UPDATE memories SET superseded_by = $3, space = '', signature = NULL
     WHERE tenant = $1 AND memory_id = ANY(ARRAY(SELECT json_array_elements_text($2::json))) AND superseded_by IS NULL`,
    [...values, by],
  )
  await sql.query(
    'DELETE FROM memory_vectors WHERE tenant = $1 AND memory_id = ANY(ARRAY(SELECT json_array_elements_text($2::json)))',
    values,
  )
}

/** Makes a repeated memory stronger and adds a source to it. */
const confirmMemory = async (sql: Sql, owner: MemoryOwner, id: string, source: NoteSource): Promise<void> => {
  await addSource(sql, owner, id, source)
  const isPresent = await hasRow(
    sql,
    `UPDATE memories SET strength = least(1, strength + 0.15), last_used_at = clock_timestamp()
     WHERE tenant = $1 AND memory_id = $2 RETURNING memory_id`,
    [owner.business, id],
  )
  if (!isPresent) throw new Error(`memory ${id} was deleted while it was being confirmed`)
}

/** Makes used memories stronger; their strength fades from now on. */
export const recordUse = (sql: Sql, { business }: MemoryOwner, ids: readonly string[]): Promise<unknown> =>
  sql.query(
    `UPDATE memories SET uses = uses + 1, strength = least(1, strength + 0.02), last_used_at = clock_timestamp()
     WHERE tenant = $1 AND memory_id = ANY(ARRAY(SELECT json_array_elements_text($2::json)))`,
    [business, JSON.stringify(ids)],
  )
