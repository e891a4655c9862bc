import { z } from 'zod'
import { MasonError } from '../../state/errors.ts'
import {
  distilContent,
  distilInstructions,
  distilReply,
  type Lesson,
  lessonByRules,
  lessonOf,
  type Turn,
} from '../../state/memory/distil.ts'
import { sharesWord } from '../../state/memory/retold.ts'
import { wordsOf } from '../../state/memory/words.ts'
import type { Models, Sql } from '../../state/ports.ts'
import type { AdmittedRequest } from '../../state/run-request.ts'
import type { Json } from '../../state/runtime-state.ts'
import { one } from '../database/database.ts'
import type { Caller } from '../models/ports.ts'
import { type DistilClaim, endDistillation, maxTries } from './distil-queue.ts'
import { learnProfile } from './learn-profile.ts'
import { holdSession, lockUser, memoryId, readyNotes, writeNote } from './remember.ts'
import { asUser, type Who } from './scope.ts'
import { type Parts, searchMemories } from './search.ts'
import { goneOf, readLost } from './shown.ts'

export type DistilParts = Parts & { modelsFor(caller: Caller): Models }

type RunRow = {
  session_id: string
  user_id: string
  turn: number
  first_seq: number | null
  request: AdmittedRequest
  result: { answer: string | null } | null
  summary: string
  profile: Record<string, Json> | null
  learning: boolean
}

const readRun = (sql: Sql, { tenant, run_id }: DistilClaim): Promise<RunRow | null> =>
  one<RunRow>(
    sql,
    `SELECT r.session_id, s.user_id, r.turn, r.first_seq, q.request, o.result, s.summary, u.profile, b.learning
     FROM runs r JOIN businesses b USING (tenant) JOIN run_requests q USING (tenant, run_id) JOIN sessions s USING (tenant, session_id)
       LEFT JOIN run_results o USING (tenant, run_id) LEFT JOIN users u ON u.tenant = r.tenant AND u.user_id = s.user_id
     WHERE r.tenant = $1 AND r.run_id = $2`,
    [tenant, run_id],
  )

/** Prompts of fewer words teach a model nothing that the rules do not see. */
const leastWords = 4
const knownShown = 10

/** A lesson, and the memories that its model was shown. */
type Learned = { lesson: Lesson; shown: readonly string[] }

/** One structured call, on the business's account and outside of the run's usage; by rules where no model is, or none can be read. */
const learn = async (
  parts: DistilParts,
  claim: DistilClaim,
  who: Who,
  turn: Omit<Turn, 'known'>,
  signal: AbortSignal,
): Promise<Learned> => {
  const caller = { business_id: who.tenant, user_id: who.user_id, run_id: null }
  const models = parts.modelsFor(caller)
  const isPlain = wordsOf(turn.prompt, leastWords).length < leastWords
  if (isPlain || models.describe().offline)
    return { lesson: lessonByRules({ ...turn, known: [] }), shown: [] }
  const found = await searchMemories(parts, who, caller, { text: turn.prompt, limit: knownShown }, signal)
  const whole = { ...turn, known: found.map(({ content }) => content) }
  const { $schema: _, ...schema } = z.toJSONSchema(distilReply) as Record<string, unknown>
  try {
    const { text } = await models.call(
      {
        role: 'distill',
        messages: [
          { role: 'system', content: distilInstructions },
          { role: 'user', content: distilContent(whole) },
        ],
        schema,
      },
      signal,
    )
    const reply = distilReply.safeParse(JSON.parse(text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1)))
    if (reply.success) return { lesson: lessonOf(reply.data, whole), shown: found.map(({ id }) => id) }
    parts.log.warn({ run_id: claim.run_id }, 'a reply to distilling could not be read: rules decide')
  } catch (error) {
    if (signal.aborted) throw signal.reason
    if (!(error instanceof SyntaxError) && claim.tries < maxTries) throw error
    // what cannot be read is quoted in its error, and may be the user's own words
    const why = error instanceof SyntaxError ? 'not JSON' : String(error)
    parts.log.warn({ run_id: claim.run_id, error: why }, 'no model distils this run: rules decide')
  }
  return { lesson: lessonByRules(whole), shown: [] }
}

/**
 * Learns from a run that has ended: facts and preferences to the memory through the gate, fields to the profile, a summary
 * to the session. All that is written is one transaction with the end of the claim, so it happens once.
 */
export const distilRun = async (
  parts: DistilParts,
  claim: DistilClaim,
  signal: AbortSignal,
): Promise<void> => {
  const { database } = parts
  const run = await readRun(database, claim)
  if (!run) return
  // it ended in the moment in which learning was switched off
  if (!run.learning) return void (await endDistillation(database, claim))
  const who: Who = { tenant: claim.tenant, user_id: run.user_id }
  const source = { session_id: run.session_id, run_id: claim.run_id }
  const { lesson, shown } = await learn(
    parts,
    claim,
    who,
    {
      prompt: run.request.prompt,
      answer: run.result?.answer ?? null,
      turn: run.turn,
      summary: run.summary,
      profile: run.profile ?? {},
    },
    signal,
  )
  const notes = lesson.notes.map((note, at) => ({
    ...note,
    id: memoryId(claim.run_id, `distilled ${at}`),
    source_action_ids: run.first_seq === null ? [] : [run.first_seq],
  }))
  const caller = { business_id: who.tenant, user_id: who.user_id, run_id: null }
  const ready = await readyNotes(parts, who, notes, caller, signal)
  signal.throwIfAborted()
  await asUser(database, who, async (sql) => {
    await lockUser(sql, who)
    await holdSession(sql, who, source)
    if (!(await endDistillation(sql, claim)))
      throw new MasonError('lease_lost', `another worker learns from run ${claim.run_id}`)
    // taken back, and learned anew without it
    if ((await goneOf(sql, who.tenant, shown)).size > 0)
      throw new Error('what the model was shown has been forgotten')
    for (const note of ready) await writeNote(sql, who, source, note)
    await learnProfile(sql, who, source, lesson.profile)
    // not where it tells what is forgotten by now, or goes on from it
    if (sharesWord(lesson.summary, await readLost(sql, who, source))) return
    await sql.query(
      `UPDATE sessions SET summary = $3, summary_turn = $4
       WHERE tenant = $1 AND session_id = $2 AND summary_turn < $4 AND summary = $5`,
      [who.tenant, run.session_id, lesson.summary, run.turn, run.summary],
    )
  })
}
