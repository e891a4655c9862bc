import { type EarlierSession, findEpisode } from '../../context/earlier-sessions.ts'
import type { ModelCaller } from '../../models/ports/model-ports.ts'
import type { RecalledMemory } from '../../state/memory-kinds.ts'
import type { Memories, OwnStatement } from '../../state/ports/memories.ts'
import { type Models, rulesOnly } from '../../state/ports/models.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { createEvidenceSearch, type Evidence, findOwnStatement } from '../policy/evidence.ts'
import { detectSubject, proposalInstructions, proposalParts, toLesson } from '../policy/lessons.ts'
import type { Note } from '../policy/memory-gate.ts'
import { askForLesson } from './distill-run.ts'
import { readAnswersSinceDiscard } from './distillation-queue.ts'
import {
  holdSession,
  lockUser,
  type NoteSource,
  prepareNotes,
  recordUse,
  toMemoryId,
  writeNote,
} from './remember.ts'
import {
  type MemoryHit,
  type MemoryRow,
  type MemoryServices,
  memoryColumns,
  readSpaces,
  searchMemories,
} from './search.ts'
import { asUser, type MemoryOwner } from './user-scope.ts'

/** Trusted preferences that hold for every request. */
const maxStandingPreferences = 3
const standingStatement = `
  SELECT ${memoryColumns}
  FROM memories WHERE tenant = $1 AND user_id = $2 AND superseded_by IS NULL AND kind = 'preference' AND evidence IS NOT NULL
  ORDER BY strength DESC, created_at DESC LIMIT ${maxStandingPreferences}`
/** Their relevance as a share of their strength: below memories related to the request. */
const standingRelevance = 0.4

const toRecalledMemory = ({ strength: _, last_used_at: __, ...hit }: MemoryHit): RecalledMemory => ({
  ...hit,
  relevance: Math.round(hit.relevance * 1000) / 1000,
  created_at: hit.created_at.toISOString(),
})

/** What a check of a statement needs; without models it is by rules. */
type CheckServices = Pick<MemoryServices, 'log'> & { models?: Pick<Models, 'call' | 'describe'> }

/**
 * The note of a statement that a run is asked to remember, judged as in learning: by a model that looks for evidence in what
 * the user said, and by rules where there is none or its reply is invalid. Null: the user does not assert it.
 */
const checkStatement = async (
  { models, log }: CheckServices,
  { said, content, kind, source_action_ids }: OwnStatement,
  signal: AbortSignal,
): Promise<Note | null> => {
  const rest = { ...(kind && { kind }), source_action_ids }
  if (models && !models.describe().capabilities.includes(rulesOnly))
    try {
      const reply = await askForLesson(models, proposalInstructions, proposalParts(said, content), signal)
      if (reply) {
        const turn = {
          prompt: said.toReversed().join('\n'),
          answer: null,
          turn: 0,
          summary: '',
          memories: [],
        }
        const [note] = toLesson({ ...reply, profile: [] }, turn).notes
        return note ? { ...note, ...rest } : null
      }
    } catch (error) {
      if (signal.aborted) throw signal.reason
      log.warn({ error: String(error) }, 'no model checks what is to be remembered: rules decide')
    }
  const evidence = findOwnStatement(said, content)
  return evidence && { ...rest, content, evidence, subject: detectSubject(content) }
}

/** Whether its user had something forgotten since the run began, and has not said this since. */
const isForgotten = async (
  sql: Sql,
  owner: MemoryOwner,
  source: NoteSource,
  evidence: Evidence,
): Promise<boolean> => {
  const answers = await readAnswersSinceDiscard(sql, owner.business, source.run_id)
  return answers !== null && createEvidenceSearch(answers)(evidence) === null
}

/** As many as a search compares, for a model to choose from. */
const maxRanked = 40

/**
 * The memories of one run's user, for its nodes and tools. A model of the category `rerank` orders them, if there is one;
 * `models` judge what the run is asked to remember.
 */
export const createRunMemories = (
  parts: MemoryServices & CheckServices & Pick<Models, 'rerank'>,
  owner: MemoryOwner,
  source: NoteSource,
): Memories => {
  const { database } = parts
  const caller: ModelCaller = { business_id: owner.business, user_id: owner.user_id, run_id: source.run_id }
  const searchRanked = async (text: string, limit: number, signal: AbortSignal): Promise<MemoryHit[]> => {
    const wide = { text, limit: parts.rerank ? Math.max(limit, maxRanked) : limit }
    const hits = await searchMemories(parts, owner, caller, wide, signal)
    const texts = hits.map(({ content }) => content)
    const { order } = (await parts.rerank?.(text, texts, signal)) ?? { order: hits.map((_, at) => at) }
    // scores of models cannot be compared: the best gets the relevance of the first
    return order.slice(0, limit).flatMap((at, rank) => {
      const hit = hits[at]
      return hit ? [{ ...hit, relevance: hits[rank]?.relevance ?? hit.relevance }] : []
    })
  }
  return {
    any: async () =>
      (await asUser(database, owner, (sql) => readSpaces(sql, owner), { pipelined: true })).length > 0,
    async search(text, limit, signal) {
      return (await searchRanked(text, limit, signal)).map(toRecalledMemory)
    },
    async recall(text, limit, signal) {
      const related = await searchRanked(text, limit, signal)
      return asUser(database, owner, async (sql) => {
        const [{ rows }, sessions] = await Promise.all([
          sql.query<MemoryRow>(standingStatement, [owner.business, owner.user_id]),
          readEarlierSessions(sql, owner, source),
        ])
        const episode = findEpisode(text, sessions)
        const preferences = rows
          .filter(({ id }) => !related.some((hit) => hit.id === id))
          .map((row) => ({ ...row, relevance: standingRelevance * row.strength }))
        const relatedIds = related.map(({ id }) => id)
        await recordUse(sql, owner, relatedIds)
        return [...[...related, ...preferences].map(toRecalledMemory), ...(episode ? [episode] : [])]
      })
    },
    async remember(statement, noteKey, signal) {
      const note = await checkStatement(parts, statement, signal)
      if (note === null) return { keep: false, reason: 'unstated', id: null }
      const id = toMemoryId(source.run_id, noteKey)
      const [ready] = await prepareNotes(parts, owner, [{ ...note, id }], caller, signal)
      if (!ready) throw new Error('there is no note')
      return asUser(database, owner, async (sql) => {
        await lockUser(sql, owner)
        await holdSession(sql, owner, source)
        return writeNote(sql, owner, source, ready, () => isForgotten(sql, owner, source, note.evidence))
      })
    },
  }
}

/** Sessions that are searched for an episode, newest first. */
const maxSessions = 10

/**
 * The summaries of the user's other sessions of the last 30 days, newest first. A fork that has no turn of its own has the
 * summary of its origin: neither is an earlier session of the other.
 */
const readEarlierSessions = async (
  sql: Sql,
  { business, user_id }: MemoryOwner,
  { session_id }: NoteSource,
): Promise<EarlierSession[]> => {
  const { rows } = await sql.query<EarlierSession>(
    `SELECT session_id, summary, summary_turn, updated_at FROM (
       SELECT session_id, summary, summary_turn, updated_at FROM sessions WHERE tenant = $1 AND user_id = $2 AND session_id <> $3
       ORDER BY created_at DESC, session_id DESC LIMIT ${maxSessions}
     ) latest WHERE summary <> '' AND updated_at > clock_timestamp() - interval '30 days'
       AND summary IS DISTINCT FROM (SELECT summary FROM sessions WHERE tenant = $1 AND session_id = $3)
     ORDER BY updated_at DESC`,
    [business, user_id, session_id],
  )
  return rows
}
