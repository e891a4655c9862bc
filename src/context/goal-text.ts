import { type DataFence, derivedLabel } from '../state/provenance.ts'
import { fitTokens } from '../state/text/tokens.ts'
import { turnGoal } from '../state/turn.ts'

/**
 * The goal of the turn as a prompt shows it: a model made it of the request, but also of what files, memory and earlier
 * results say, so it is fenced. The request beside it is the user's own word.
 */
export const renderGoal = (
  state: Parameters<typeof turnGoal>[0],
  maxTokens: number,
  fence: DataFence,
): string => {
  const goal = fitTokens(turnGoal(state), Math.floor(maxTokens))
  return goal.trim() === '' ? '' : fence(goal, derivedLabel)
}
