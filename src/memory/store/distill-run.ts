import { promptText } from '../../context/sections.ts'
import { queryOne } from '../../infra/database/database.ts'
import { isJsonObject } from '../../infra/lib/json-text.ts'
import type { ModelCaller } from '../../models/ports/model-ports.ts'
import { MasonError } from '../../state/errors.ts'
import { toModelSchema } from '../../state/model-schema.ts'
import { type Models, rulesOnly } from '../../state/ports/models.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { PromptPart } from '../../state/prompt-part.ts'
import type { PromptText } from '../../state/provenance.ts'
import type { AdmittedRequest } from '../../state/run-request.ts'
import { findJson } from '../../state/text/json-in-text.ts'
import {
  deriveLessonByRules,
  distillInstructions,
  distillReplySchema,
  distilParts,
  mayTeach,
  type TurnLesson,
  toLesson,
} from '../policy/lessons.ts'
import { repeatsMemory, sharesDistinctiveWord } from '../policy/summary-leaks.ts'
import { completeDistillation, type DistillationClaim, maxDistillationTries } from './distillation-queue.ts'
import { learnProfile } from './learn-profile.ts'
import { findForgottenIds, readForgottenTexts } from './recalled-memories.ts'
import { holdSession, lockUser, prepareNotes, toMemoryId, writeNote } from './remember.ts'
import { type MemoryServices, searchMemories } from './search.ts'
import { isRepetitionSql } from './turn-backlog.ts'
import { type TurnRecord, writeTurn } from './turns.ts'
import { asUser, type MemoryOwner } from './user-scope.ts'

/** What learning from a run needs. */
export type DistillationServices = MemoryServices & { modelsFor(caller: ModelCaller): Models }

type RunRow = {
  session_id: string
  user_id: string
  turn: number
  first_seq: number | null
  request: AdmittedRequest
  result: { answer: string | null } | null
  summary: string
  learning: boolean
  recall: boolean
  ended_at: Date
  is_repetition: boolean
  finish_reason: string | null
}

const readRun = (sql: Sql, { tenant, run_id }: DistillationClaim): Promise<RunRow | null> =>
  queryOne<RunRow>(
    sql,
    `SELECT r.session_id, s.user_id, r.turn, r.first_seq, q.request, o.result, s.summary, b.learning, b.recall, r.ended_at,
       ${isRepetitionSql} AS is_repetition, r.finish_reason
     FROM runs r JOIN businesses b USING (tenant) JOIN run_requests q USING (tenant, run_id) JOIN sessions s USING (tenant, session_id)
       LEFT JOIN run_results o USING (tenant, run_id)
     WHERE r.tenant = $1 AND r.run_id = $2`,
    [tenant, run_id],
  )

const maxKnownMemories = 10

/** A lesson, and the ids of the memories in its model's prompt. */
type LearnedLesson = { lesson: TurnLesson; promptedIds: readonly string[] }

/** Makes one structured call. Null: its reply has no JSON that fits. */
export const askForLesson = async (
  models: Pick<Models, 'call'>,
  instructions: PromptText,
  parts: PromptPart[],
  signal: AbortSignal,
) => {
  const { text } = await models.call(
    {
      role: 'distill',
      messages: [
        { role: 'system', content: instructions },
        { role: 'user', content: promptText(parts) },
      ],
      parts,
      schema: toModelSchema(distillReplySchema, 'output'),
    },
    signal,
  )
  // any object would fit the schema
  return findJson(text, (value) =>
    isJsonObject(value) && Object.keys(distillReplySchema.shape).some((name) => name in value)
      ? (distillReplySchema.safeParse(value).data ?? null)
      : null,
  )
}

/** Makes one structured call, on the business's account and outside the run's usage. By rules where no model is available or its reply is invalid. */
const learnLesson = async (
  parts: DistillationServices,
  claim: DistillationClaim,
  owner: MemoryOwner,
  caller: ModelCaller,
  run: RunRow,
  signal: AbortSignal,
): Promise<LearnedLesson> => {
  const models = parts.modelsFor(caller)
  const answer = run.result?.answer ?? null
  const turn = { prompt: run.request.prompt, answer, turn: run.turn, summary: run.summary }
  if (!mayTeach(turn.prompt) || models.describe().capabilities.includes(rulesOnly))
    return { lesson: deriveLessonByRules({ ...turn, memories: [] }), promptedIds: [] }
  const search = { text: turn.prompt, limit: maxKnownMemories }
  const related = await searchMemories(parts, owner, caller, search, signal)
  const known = { ...turn, memories: related }
  const prompt = distilParts(known)
  try {
    const reply = await askForLesson(models, distillInstructions, prompt, signal)
    if (reply) return { lesson: toLesson(reply, known), promptedIds: related.map(({ id }) => id) }
    parts.log.warn({ run_id: claim.run_id }, 'a reply to a distillation is invalid: rules decide')
  } catch (error) {
    if (signal.aborted) throw signal.reason
    if (claim.tries < maxDistillationTries) throw error
    parts.log.warn({ run_id: claim.run_id, error: String(error) }, 'no model distills this run: rules decide')
  }
  return { lesson: deriveLessonByRules(known), promptedIds: [] }
}

/** The turn of a run. The log still has what was forgotten since: an answer that repeats it is left out. */
const toTurnRecord = (
  { session_id, turn, request, result, ended_at }: RunRow,
  forgotten: readonly string[],
): TurnRecord => {
  const answer = result?.answer ?? null
  const isWhole = answer !== null && !repeatsMemory(answer, forgotten)
  return { session_id, turn, prompt: request.prompt, answer: isWhole ? answer : null, said_at: ended_at }
}

/**
 * Learns from a run that has ended: statements go through the gate to the memory, fields to the profile, a summary to the
 * session. One transaction writes all of it and completes the claim, so it happens once. Throws `lease_lost`.
 */
export const distillRun = async (
  parts: DistillationServices,
  claim: DistillationClaim,
  signal: AbortSignal,
): Promise<void> => {
  const { database } = parts
  const run = await readRun(database, claim)
  if (!run) return
  const recalls = run.recall && parts.recall !== false && !run.is_repetition
  // it ended at the moment when learning was switched off, or its answer is not whole
  if (!run.learning || run.finish_reason === 'length')
    return void (await completeDistillation(database, claim))
  const owner: MemoryOwner = { business: claim.tenant, user_id: run.user_id }
  const source = { session_id: run.session_id, run_id: claim.run_id }
  const caller = { business_id: owner.business, user_id: owner.user_id, run_id: null }
  const { lesson, promptedIds } = await learnLesson(parts, claim, owner, caller, run, signal)
  const notes = lesson.notes.map((note, at) => ({
    ...note,
    id: toMemoryId(claim.run_id, `distilled ${at}`),
    source_action_ids: run.first_seq === null ? [] : [run.first_seq],
  }))
  const ready = await prepareNotes(parts, owner, notes, caller, signal)
  signal.throwIfAborted()
  await asUser(database, owner, async (sql) => {
    await lockUser(sql, owner)
    await holdSession(sql, owner, source)
    if (!(await completeDistillation(sql, claim)))
      throw new MasonError('lease_lost', `another worker learns from run ${claim.run_id}`)
    // rolls back; the next attempt learns without that memory
    if ((await findForgottenIds(sql, owner.business, promptedIds)).size > 0)
      throw new Error('a memory in the prompt has been forgotten')
    const forgotten = await readForgottenTexts(sql, owner, source)
    if (recalls) await writeTurn(sql, owner, toTurnRecord(run, forgotten))
    for (const note of ready) await writeNote(sql, owner, source, note)
    await learnProfile(sql, owner, source, lesson.profile)
    // a summary that repeats forgotten content is not written
    if (sharesDistinctiveWord(lesson.summary, forgotten)) return
    await sql.query(
      `UPDATE sessions SET summary = $3, summary_turn = $4
       WHERE tenant = $1 AND session_id = $2 AND summary_turn < $4 AND summary = $5`,
      [owner.business, run.session_id, lesson.summary, run.turn, run.summary],
    )
  })
}
