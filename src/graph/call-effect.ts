import { isMasonError, MasonError, toErrorMessage } from '../state/errors.ts'
import type { EffectRequest, EffectResult, UnknownEffect } from '../state/ports/effects.ts'
import type { CallRef, RunLog } from '../state/ports/run-log.ts'

/** Parks the run until an operator has settled the effect; false: none did in time. */
type WaitForOperator = (effect: UnknownEffect) => Promise<boolean>

/**
 * Does a call's side effect. A send that threw may have acted: the ledger then does what a take-over would (the same
 * bytes and key again, or a look-up), and what stays unknown waits for an operator. Never sent under a second key.
 */
export const sendCallEffect = async (
  log: RunLog,
  call: CallRef,
  request: EffectRequest,
  waitForOperator: WaitForOperator,
  signal: AbortSignal,
): Promise<EffectResult> => {
  let thrown: unknown
  // the third one can only find it unknown: nothing more is sent
  for (const attempt of [request, request, { ...request, class: 'manual' as const }])
    try {
      const earlier = thrown === undefined ? undefined : { error: toErrorMessage(thrown) }
      return await log.effect(call, attempt, signal, earlier)
    } catch (error) {
      if (signal.aborted || isMasonError(error, 'lease_lost', 'database_unavailable', 'effect_refused'))
        throw error
      if (isEffectUnknown(error)) {
        // settled: it has its response by now, or may be sent
        if (await waitForOperator(error.detail))
          return sendCallEffect(log, call, request, waitForOperator, signal)
        throw error
      }
      thrown = error
    }
  throw new MasonError('internal', 'the effect ledger let an unknown side effect pass')
}

/** An error of the ledger; a tool may throw one of the same code, about what it could not find out. */
const isEffectUnknown = (error: unknown): error is MasonError & { detail: UnknownEffect } =>
  isMasonError(error, 'effect_unknown') &&
  (error.detail as UnknownEffect | undefined)?.effect_id !== undefined
