import { fitTokens } from '../tokens.ts'
import { turnGoal } from '../turn.ts'
import { derivedLabel, type Fence } from './fence.ts'

/**
 * The goal of the turn as a prompt shows it: a model made it of the request, but also of what files, memory and earlier
 * results say, so it stands between marks. The request beside it is the user's own word.
 */
export const goalText = (state: Parameters<typeof turnGoal>[0], maxTokens: number, fence: Fence): string => {
  const goal = fitTokens(turnGoal(state), Math.floor(maxTokens))
  return goal.trim() === '' ? '' : fence(goal, derivedLabel)
}
