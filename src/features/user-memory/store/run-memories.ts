import { type Database, queryOne } from '../../../infra/database/database.ts'
import { systemClock } from '../../../infra/lib/system-clock.ts'
import type { ModelCaller } from '../../../models/ports/model-ports.ts'
import type { RecalledMemory } from '../../../state/memory-kinds.ts'
import type { Clock } from '../../../state/ports/clock.ts'
import type { Memories, OwnStatement } from '../../../state/ports/memories.ts'
import { type Models, rulesOnly } from '../../../state/ports/models.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import { noTracer, type VisitNote } from '../../../state/ports/tracer.ts'
import { derivedLabel } from '../../../state/provenance.ts'
import { joinLines } from '../../../state/text/plain-line.ts'
import { createEvidenceSearch, type Evidence, findOwnStatement } from '../policy/evidence.ts'
import { detectSubject, proposalInstructions, proposalParts, toLesson } from '../policy/lessons.ts'
import type { Note } from '../policy/memory-gate.ts'
import { toSessionMemoryId } from '../policy/turn-ids.ts'
import { askForLesson } from './distill-run.ts'
import { readAnswersSinceDiscard } from './distillation-queue.ts'
import { createQuickEmbedder } from './quick-embedder.ts'
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
  searchMemories,
} from './search.ts'
import { searchTurns, type TurnHit } from './turn-search.ts'
import { asUser, type MemoryOwner, sendAsUser, shareReads } from './user-scope.ts'

/** Trusted preferences that hold for every request. */
const maxStandingPreferences = 3
const standingStatement = `
  SELECT ${memoryColumns}
  FROM memories WHERE tenant = $1 AND user_id = $2 AND superseded_by IS NULL AND kind = 'preference' AND evidence IS NOT NULL
  ORDER BY strength DESC, created_at DESC LIMIT ${maxStandingPreferences}`
/** Memories, and turns of other sessions. */
const anyStatement = `
  SELECT EXISTS (SELECT FROM memories WHERE tenant = $1 AND user_id = $2 AND superseded_by IS NULL) AS memories,
    $4::boolean AND EXISTS (SELECT FROM turns WHERE tenant = $1 AND user_id = $2 AND session_id <> $3) AS turns`
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
  parts: MemoryServices &
    CheckServices &
    Pick<Models, 'rerank'> & {
      clock?: Pick<Clock, 'sleep'>
      /** The runs of which `any` has found no memory: the first recall after it looks for turns alone. */
      withoutMemories?: WeakSet<object>
    },
  owner: MemoryOwner,
  source: NoteSource,
  visit?: VisitNote,
): Memories => {
  const { database, recall = true, tracer = noTracer, clock = systemClock } = parts
  const { business: business_id, user_id } = owner
  const caller: ModelCaller = { business_id, user_id, run_id: source.run_id, visit }
  const searchRanked = async (
    text: string,
    limit: number,
    signal: AbortSignal,
    services: MemoryServices = parts,
  ): Promise<MemoryHit[]> => {
    const wide = { text, limit: parts.rerank ? Math.max(limit, maxRanked) : limit }
    const hits = await searchMemories(services, owner, caller, wide, signal)
    const texts = hits.map(({ content }) => content)
    const { order } = (await parts.rerank?.(text, texts, signal)) ?? { order: hits.map((_, at) => at) }
    // scores of models cannot be compared: the best gets the relevance of the first
    return order.slice(0, limit).flatMap((at, rank) => {
      const hit = hits[at]
      return hit ? [{ ...hit, relevance: hits[rank]?.relevance ?? hit.relevance }] : []
    })
  }
  const readStanding = async (shared: Database): Promise<MemoryRow[]> => {
    const read = (sql: Sql) => sql.query<MemoryRow>(standingStatement, [business_id, user_id])
    return (await sendAsUser(shared, owner, read)).rows
  }
  return {
    async any() {
      const values = [business_id, user_id, source.session_id, recall]
      const read = (sql: Sql) => queryOne<Record<'memories' | 'turns', boolean>>(sql, anyStatement, values)
      const has = await sendAsUser(database, owner, read)
      if (!has?.memories) parts.withoutMemories?.add(source)
      return has?.memories || has?.turns || false
    },
    async search(text, limit, signal) {
      return (await searchRanked(text, limit, signal)).map(toRecalledMemory)
    },
    async recall(text, limit, signal, ownWords = text) {
      const quick = {
        ...parts,
        tracer: noTracer,
        database: shareReads(database, owner),
        embedder: createQuickEmbedder(parts.embedder, clock),
      }
      const hasMemories = !parts.withoutMemories?.delete(source)
      const [related, turns, standing] = await tracer.retrieval(async (record) => {
        const found = await Promise.all([
          hasMemories ? searchRanked(text, limit, signal, quick) : [],
          recall ? searchTurns(quick, owner, caller, source.session_id, { text, ownWords }, signal) : [],
          hasMemories ? readStanding(quick.database) : [],
        ])
        const [related, turns] = found
        record({ found: related.length + turns.length })
        return found
      })
      const relatedIds = related.map(({ id }) => id)
      if (relatedIds.length > 0) await sendAsUser(database, owner, (sql) => recordUse(sql, owner, relatedIds))
      const preferences = standing
        .filter(({ id }) => !relatedIds.includes(id))
        .map((row) => ({ ...row, relevance: standingRelevance * row.strength }))
      return [...[...related, ...preferences].map(toRecalledMemory), ...turns.map(toRecalledTurn)]
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

/** A turn of another session, with its date: words of users, models and what these read, so not trusted. */
const toRecalledTurn = ({ session_id, turn, content, said_at, relevance }: TurnHit): RecalledMemory => ({
  id: toSessionMemoryId(session_id, turn),
  kind: 'episode',
  content: `Earlier talk of ${said_at.toISOString().slice(0, 10)} (session ${session_id}): ${joinLines(content)}`,
  relevance: Math.round(relevance * 1000) / 1000,
  source_action_ids: [],
  created_at: said_at.toISOString(),
  ...derivedLabel,
})
