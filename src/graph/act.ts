import { isMasonError, MasonError } from '../state/errors.ts'
import type { CallRef, Effect, EffectRequest, PersonAnswer, Question, RunLog } from '../state/ports.ts'

const tookPlace = 'it took place'
const didNot = 'it did not'
type Ask = (question: Question) => Promise<PersonAnswer>

const waitMs = 7 * 24 * 60 * 60 * 1000

/**
 * Does a call's side effect. A send that threw may have acted: the ledger then does what a take-over would (the same
 * bytes and key again, or a look-up), and what stays unknown is asked of a person. Never sent under a second key.
 */
export const act = async (
  log: RunLog,
  call: CallRef,
  request: EffectRequest,
  ask: Ask | null,
  signal: AbortSignal,
): Promise<Effect> => {
  // the last one can only find it unknown: nothing more is sent
  for (const attempt of [request, request, { ...request, class: 'manual' as const }])
    try {
      return await log.effect(call, attempt, signal)
    } catch (error) {
      if (signal.aborted || isMasonError(error, 'lease_lost', 'database_unavailable')) throw error
      if (isMasonError(error, 'effect_unknown')) return afterAsking(log, call, request, error, ask, signal)
    }
  throw new MasonError('internal', 'the effect ledger let an unknown side effect pass')
}

const afterAsking = async (
  log: RunLog,
  call: CallRef,
  request: EffectRequest,
  unknown: MasonError,
  ask: Ask | null,
  signal: AbortSignal,
): Promise<Effect> => {
  // the call has had its one question
  if (!ask) throw unknown
  const options = [tookPlace, didNot]
  const answer = await ask({
    question: `${unknown.message}. ${unknown.remedy ?? ''}. Did it take place?`,
    schema: { type: 'string', enum: options },
    options,
    expires_in_ms: waitMs,
  })
  if (answer.kind === 'expired') throw unknown
  if (answer.answer === didNot) return log.effect(call, request, signal, { resend: true })
  const { effect_id } = unknown.detail as { effect_id: string }
  return { effect_id, response: 'confirmed by a person' }
}
