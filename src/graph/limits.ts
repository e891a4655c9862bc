import { readAnsweredCall } from '../state/calls.ts'
import type { Outcome } from '../state/outcome.ts'
import type { Models } from '../state/ports/models.ts'
import type { RunLimits } from '../state/run-request.ts'
import type { RuntimeState } from '../state/runtime-state.ts'
import { type ReadonlyAction, turnActions, turnUsage } from '../state/turn.ts'
import { checkProgress } from './progress.ts'

/** The limits of a run that names none: actions, and milliseconds of work. */
export const defaultLimits = { max_steps: 200, timeout_ms: 15 * 60_000 }

/**
 * Why the run must end now, or null. A step is an action; `planned` more are about to be taken, and `end` needs one.
 * Reaching a limit is no failure: the run completes with what there is.
 */
export const findReachedLimit = (
  state: Pick<RuntimeState, 'action_history' | 'usage'>,
  limits: RunLimits,
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
  if (mayRepeat(actions.at(-1)) && checkProgress(state).verdict === 'stop')
    return { status: 'completed', reason: 'no_progress' }
  return null
}

/** Asked after all other limits, for it costs a look at the ledger. */
export const findReachedCost = async (
  { cost, isOverBudget }: Pick<Models, 'cost' | 'isOverBudget'>,
  { max_cost }: RunLimits,
): Promise<Outcome | null> =>
  (max_cost !== undefined && cost !== undefined && (await cost()) >= max_cost) || (await isOverBudget?.())
    ? { status: 'completed', reason: 'cost' }
    : null

/** Only with a result or a judgement can something be there again. */
const mayRepeat = (last: ReadonlyAction | undefined): boolean =>
  last !== undefined && (last.node === 'reflection' || readAnsweredCall(last) !== null)
