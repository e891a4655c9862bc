import { answeredCalls } from '../../state/calls.ts'
import { backgroundWithin } from '../../state/context/background.ts'
import { promptBudget } from '../../state/context/budget.ts'
import { isCompacted, latestCompaction } from '../../state/context/compacted.ts'
import { fenceOf } from '../../state/context/fence.ts'
import { resultsOf } from '../../state/context/results.ts'
import { joinSections, section } from '../../state/context/section.ts'
import type { ContextState } from '../../state/context.ts'
import type { Models } from '../../state/ports.ts'
import { estimateTokens, fitTokens } from '../../state/tokens.ts'
import { turnActions } from '../../state/turn.ts'

export type OutputState = ContextState

/** Tokens that the prompt of an output tool may take. */
export const outputBudget = (models: Models, model: string | undefined): number =>
  promptBudget('output', models.window?.('output', model))

/** A draft that is longer than this share of the prompt is cut. */
const draftShare = 0.5
/** Nearly all drafts are shorter than this. */
const briefDraft = 0.1

/** What the model of an output tool is shown: the draft before all, then the background, then results in what is left. */
export const outputContent = (state: OutputState, draft: string | null, budget: number): string => {
  const drafted = section('Draft', fitTokens(draft ?? '', Math.floor(budget * draftShare)))
  const room = budget - estimateTokens(drafted)
  // in steps, so that a longer draft does not change how much of earlier turns is shown
  const background = backgroundWithin(
    state,
    budget * (room >= budget * (1 - briefDraft) ? 1 - briefDraft : 1 - draftShare),
  )
  const compacted = latestCompaction(state)
  const calls = answeredCalls(turnActions(state)).filter(({ action }) => !isCompacted(action, compacted))
  return joinSections([
    background,
    drafted,
    resultsOf(calls, room - estimateTokens(background), fenceOf(state)),
  ])
}
