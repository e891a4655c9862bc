import { promptText } from '../../../context/sections.ts'
import { writeSessionSummaries } from '../../../engine/sessions/summaries.ts'
import { isJsonObject, toStoredText } from '../../../infra/lib/json-text.ts'
import type { ModelCaller } from '../../../models/ports/model-ports.ts'
import { MasonError } from '../../../state/errors.ts'
import { toModelSchema } from '../../../state/model-schema.ts'
import { type Models, rulesOnly } from '../../../state/ports/models.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import type { PromptPart } from '../../../state/prompt-part.ts'
import type { PromptText } from '../../../state/provenance.ts'
import { findJson } from '../../../state/text/json-in-text.ts'
import {
  deriveLessonByRules,
  distillInstructions,
  distillReplySchema,
  distilParts,
  findCorrection,
  mayTeach,
  type TurnLesson,
  toLesson,
} from '../policy/lessons.ts'
import { repeatsMemory, sharesDistinctiveWord } from '../policy/summary-leaks.ts'
import { completeDistillations, maxDistillationTries, type RunToDistill } from './distillation-queue.ts'
import { learnProfile } from './learn-profile.ts'
import { findForgottenIds, readForgottenTexts } from './recalled-memories.ts'
import {
  holdSessions,
  lockUser,
  type NoteSource,
  type PreparedNote,
  prepareNotes,
  toMemoryId,
  writeNote,
} from './remember.ts'
import { type MemoryServices, searchMemories } from './search.ts'
import { type TurnRecord, writeTurns } from './turns.ts'
import { asUser, type MemoryOwner } from './user-scope.ts'

/** What learning from a run needs. */
export type DistillationServices = MemoryServices & { modelsFor(caller: ModelCaller): Models }

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

const toCaller = ({ tenant, user_id }: RunToDistill): ModelCaller => ({
  business_id: tenant,
  user_id,
  run_id: null,
})

/** Whether a model is asked what a run taught; otherwise rules decide at once. */
export const asksModel = (
  { modelsFor }: Pick<DistillationServices, 'modelsFor'>,
  run: RunToDistill,
): boolean =>
  isLearnedFrom(run) &&
  mayTeach(run.request.prompt) &&
  !modelsFor(toCaller(run)).describe().capabilities.includes(rulesOnly)

/** Not from one that ended at the moment when learning was switched off, or whose answer is not whole. */
const isLearnedFrom = ({ learning, finish_reason }: RunToDistill): boolean =>
  learning && finish_reason !== 'length' && finish_reason !== 'content_filter'

/** Makes one structured call, on the business's account and outside the run's usage. By rules where no model is available or its reply is invalid. */
const learnLesson = async (
  parts: DistillationServices,
  owner: MemoryOwner,
  caller: ModelCaller,
  run: RunToDistill,
  signal: AbortSignal,
): Promise<LearnedLesson> => {
  const answer = run.result?.answer ?? null
  const turn = { prompt: run.request.prompt, answer, turn: run.turn, summary: run.summary }
  const isAsked = asksModel(parts, run)
  const text = isAsked ? turn.prompt : (findCorrection(turn.prompt)[1] ?? '')
  const search = { text, limit: maxKnownMemories }
  const memories = text ? await searchMemories(parts, owner, caller, search, signal) : []
  const known = { ...turn, memories }
  const promptedIds = memories.map(({ id }) => id)
  if (!isAsked) return { lesson: deriveLessonByRules(known), promptedIds }
  const prompt = distilParts(known)
  try {
    const reply = await askForLesson(parts.modelsFor(caller), distillInstructions, prompt, signal)
    if (reply) return { lesson: toLesson(reply, known), promptedIds }
    parts.log.warn({ run_id: run.run_id }, 'a reply to a distillation is invalid: rules decide')
  } catch (error) {
    if (signal.aborted) throw signal.reason
    if (run.tries < maxDistillationTries) throw error
    parts.log.warn({ run_id: run.run_id, error: String(error) }, 'no model distills this run: rules decide')
  }
  return { lesson: deriveLessonByRules(known), promptedIds }
}

/** The turn of a run. The log still has what was forgotten since: an answer that repeats it is left out. */
const toTurnRecord = (
  { session_id, turn, request, result, ended_at }: RunToDistill,
  forgotten: readonly string[],
): TurnRecord => {
  const answer = result?.answer ?? null
  const isWhole = answer !== null && !repeatsMemory(answer, forgotten)
  return { session_id, turn, prompt: request.prompt, answer: isWhole ? answer : null, said_at: ended_at }
}

/** What a run taught, ready to be written. */
type PreparedLesson = LearnedLesson & {
  run: RunToDistill
  source: NoteSource
  notes: readonly PreparedNote[]
}

const prepareLesson = async (
  parts: DistillationServices,
  owner: MemoryOwner,
  run: RunToDistill,
  signal: AbortSignal,
): Promise<PreparedLesson> => {
  const caller = toCaller(run)
  const learned = await learnLesson(parts, owner, caller, run, signal)
  const notes = learned.lesson.notes.map((note, at) => ({
    ...note,
    id: toMemoryId(run.run_id, `distilled ${at}`),
    source_action_ids: run.first_seq === null ? [] : [run.first_seq],
  }))
  const source = { session_id: run.session_id, run_id: run.run_id }
  return { ...learned, run, source, notes: await prepareNotes(parts, owner, notes, caller, signal) }
}

/**
 * Learns from runs of one user that have ended, at most one of a session: statements go through the gate to the memory, fields to
 * the profile, a summary to the session. One transaction writes all of it and completes the claims, so it happens once; a run
 * whose claim is lost is left out. Throws `lease_lost` when none is left.
 */
export const distillRuns = async (
  parts: DistillationServices,
  runs: readonly RunToDistill[],
  signal: AbortSignal,
): Promise<void> => {
  const { database } = parts
  const [first] = runs
  if (!first) return
  const owner: MemoryOwner = { business: first.tenant, user_id: first.user_id }
  const lessons = await Promise.all(
    runs.filter(isLearnedFrom).map((run) => prepareLesson(parts, owner, run, signal)),
  )
  signal.throwIfAborted()
  const promptedIds = lessons.flatMap((lesson) => lesson.promptedIds)
  const sources = lessons.map(({ source }) => source)
  await asUser(database, owner, async (sql) => {
    // sent together; the lock comes first, so that the others see what its last holder wrote
    const [, held, completed, forgottenIds, forgottenTexts] = await Promise.all([
      lockUser(sql, owner),
      holdSessions(sql, owner, sources),
      completeDistillations(sql, runs),
      findForgottenIds(sql, owner.business, promptedIds),
      readForgottenTexts(sql, owner, sources),
    ])
    if (completed.size === 0) throw new MasonError('lease_lost', 'other workers learn from these runs')
    // rolls back; the next attempt learns without that memory
    if (forgottenIds.size > 0) throw new Error('a memory in the prompt has been forgotten')
    const ours = lessons
      .filter(({ run }) => completed.has(run.run_id) && held.has(run.session_id))
      .map((lesson) => ({ ...lesson, forgotten: forgottenTexts.get(lesson.run.session_id) ?? [] }))
    const recalled = ours.filter(({ run }) => run.recall && parts.recall !== false && !run.is_repetition)
    const turns = recalled.map(({ run, forgotten }) => toTurnRecord(run, forgotten))
    await Promise.all([writeTurns(sql, owner, turns), writeSummaries(sql, owner, ours)])
    for (const { source, notes, lesson } of ours) {
      for (const note of notes) await writeNote(sql, owner, source, note)
      await learnProfile(sql, owner, source, lesson.profile)
    }
  })
}

/** A summary that repeats forgotten content is not written, nor one that says what the last did. */
const writeSummaries = async (
  sql: Sql,
  { business }: MemoryOwner,
  lessons: readonly (PreparedLesson & { forgotten: readonly string[] })[],
): Promise<void> => {
  const summaries = lessons
    .filter(({ lesson, forgotten }) => !sharesDistinctiveWord(lesson.summary, forgotten))
    .map(({ lesson, run: { session_id, turn, summary } }) => ({
      session_id,
      turn,
      summary,
      learned: toStoredText(lesson.summary),
    }))
    .filter(({ summary, learned }) => summary !== learned)
  await writeSessionSummaries(sql, business, summaries)
}
