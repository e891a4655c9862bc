import { isMasonError, MasonError } from '../state/errors.ts'
import {
  didNotOption,
  type EffectRequest,
  type EffectResult,
  tookPlaceOption,
} from '../state/ports/effects.ts'
import type { PersonAnswer, Question } from '../state/ports/questions.ts'
import type { CallRef, RunLog } from '../state/ports/run-log.ts'

type AskPerson = (question: Question) => Promise<PersonAnswer>

const answerTimeoutMs = 7 * 24 * 60 * 60 * 1000

/**
 * Does a call's side effect. A send that threw may have acted: the ledger then does what a take-over would (the same
 * bytes and key again, or a look-up), and what stays unknown is asked of a person. Never sent under a second key.
 */
export const sendCallEffect = async (
  log: RunLog,
  call: CallRef,
  request: EffectRequest,
  ask: AskPerson | null,
  signal: AbortSignal,
): Promise<EffectResult> => {
  // the last one can only find it unknown: nothing more is sent
  for (const attempt of [request, request, { ...request, class: 'manual' as const }])
    try {
      return await log.effect(call, attempt, signal)
    } catch (error) {
      if (signal.aborted || isMasonError(error, 'lease_lost', 'database_unavailable')) throw error
      if (isMasonError(error, 'effect_unknown')) return askThenResolve(log, call, request, error, ask, signal)
    }
  throw new MasonError('internal', 'the effect ledger let an unknown side effect pass')
}

const askThenResolve = async (
  log: RunLog,
  call: CallRef,
  request: EffectRequest,
  unknown: MasonError,
  ask: AskPerson | null,
  signal: AbortSignal,
): Promise<EffectResult> => {
  // the call has had its one question
  if (!ask) throw unknown
  const options = [tookPlaceOption, didNotOption]
  const answer = await ask({
    question: `${unknown.message}. ${unknown.remedy ?? ''}. Did it take place?`,
    schema: { type: 'string', enum: options },
    options,
    expires_in_ms: answerTimeoutMs,
  })
  if (answer.kind === 'expired') throw unknown
  if (answer.answer === didNotOption) return log.effect(call, request, signal, { resend: true })
  const { effect_id } = unknown.detail as { effect_id: string }
  return { effect_id, response: 'confirmed by a person' }
}
