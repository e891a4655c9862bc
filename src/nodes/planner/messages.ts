import { progress } from '../../graph/progress.ts'
import { backgroundWithin } from '../../state/context/background.ts'
import { partShares } from '../../state/context/budget.ts'
import { isCompacted, latestCompaction } from '../../state/context/compacted.ts'
import { fenceOf } from '../../state/context/fence.ts'
import { roundsOf } from '../../state/context/rounds.ts'
import { joinSections } from '../../state/context/section.ts'
import { type ContextState, planOf } from '../../state/context.ts'
import type { ModelMessage } from '../../state/ports.ts'
import { estimateTokens, fitTokens } from '../../state/tokens.ts'
import { turnActions } from '../../state/turn.ts'
import { fitRounds } from './fit-rounds.ts'
import { plannerInstructions, replanNote } from './instructions.ts'
import { createTelling } from './tell-round.ts'

/** Tokens the prompt may take, and whether `read_result` is offered beside it. */
type PromptOptions = { budget: number; canOpen: boolean }

/**
 * The conversation a planner is shown: its instructions, the background, then this turn as it went: its own calls and
 * what came back. The oldest part comes first and never changes; the plan, which does, comes last.
 */
export const plannerMessages = (state: ContextState, { budget, canOpen }: PromptOptions): ModelMessage[] => {
  const background = backgroundWithin(state, budget)
  const closing = closingOf(state, Math.floor(budget * partShares.closing))
  const compacted = latestCompaction(state)
  const tell = createTelling({ budget, canOpen, fence: fenceOf(state) })
  const rounds = roundsOf(turnActions(state))
    .filter(({ plan }) => !isCompacted(plan, compacted))
    .map(tell)
  // the same room at each step, whatever the plan takes of its own
  const room =
    budget * (1 - partShares.closing) - estimateTokens(plannerInstructions) - estimateTokens(background)
  const opening: ModelMessage[] = [
    { role: 'system', content: plannerInstructions },
    { role: 'user', content: background },
  ]
  return opening.concat(fitRounds(rounds, room), closing ? { role: 'user', content: closing } : [])
}

const closingOf = (state: ContextState, maxTokens: number): string => {
  const stalled = progress(state)
  return joinSections([
    fitTokens(planOf(state), maxTokens),
    stalled.verdict === 'replan' ? replanNote(stalled.why) : '',
  ])
}
