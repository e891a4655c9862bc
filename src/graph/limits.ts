import { answeredCall } from '../state/calls.ts'
import type { Models, Outcome } from '../state/ports.ts'
import type { Limits } from '../state/run-request.ts'
import type { RuntimeState } from '../state/runtime-state.ts'
import { type ReadonlyAction, turnActions, turnUsage } from '../state/turn.ts'
import { progress } from './progress.ts'

export const defaultLimits = { max_steps: 200, timeout_ms: 15 * 60_000 }

/**
 * Why the run must end now, or null. A step is an action; `planned` more are about to be taken, and `end` needs one.
 * Reaching a limit is no failure: the run completes with what there is.
 */
export const reachedLimit = (
  state: Pick<RuntimeState, 'action_history' | 'usage'>,
  limits: Limits,
  planned: number,
  workedMs = 0,
): Outcome | null => {
  const actions = turnActions(state)
  if (actions.length + planned + 1 > (limits.max_steps ?? defaultLimits.max_steps))
    return { status: 'completed', reason: 'steps' }
  if (limits.max_tokens !== undefined && turnUsage(state).total_tokens >= limits.max_tokens)
    return { status: 'completed', reason: 'tokens' }
  // the clock that runs beside the walk knows the limit it began with; a scenario may have been chosen since
  if (limits.timeout_ms !== undefined && workedMs >= limits.timeout_ms)
    return { status: 'completed', reason: 'time' }
  if (cameBack(actions.at(-1)) && progress(state).verdict === 'stop')
    return { status: 'completed', reason: 'no_progress' }
  return null
}

/** Asked after all other limits, for it costs a look at the ledger. */
export const reachedCost = async (
  { cost }: Pick<Models, 'cost'>,
  { max_cost }: Limits,
): Promise<Outcome | null> =>
  max_cost !== undefined && cost !== undefined && (await cost()) >= max_cost
    ? { status: 'completed', reason: 'cost' }
    : null

/** Only with a result or a judgement can something be there again. */
const cameBack = (last: ReadonlyAction | undefined): boolean =>
  last !== undefined && (last.node === 'reflection' || answeredCall(last) !== null)
