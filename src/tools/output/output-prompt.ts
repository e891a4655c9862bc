import { buildBackground } from '../../context/background.ts'
import { computePromptBudget } from '../../context/budget.ts'
import type { ContextState } from '../../context/context.ts'
import { findLatestCompaction, isCompacted } from '../../context/latest-compaction.ts'
import { renderResults } from '../../context/result-text.ts'
import { part, promptText, titles } from '../../context/sections.ts'
import { listAnsweredCalls } from '../../state/calls.ts'
import type { Models } from '../../state/ports/models.ts'
import type { PromptPart } from '../../state/prompt-part.ts'
import { createDataFence, derivedLabel } from '../../state/provenance.ts'
import { estimateTokens } from '../../state/text/tokens.ts'
import { turnActions } from '../../state/turn.ts'

/** The fields that output tools read. */
export type OutputState = ContextState

/** Tokens that the prompt of an output tool may take. */
export const computeOutputBudget = (models: Models, model: string | undefined): number =>
  computePromptBudget('output', models.window?.('output', model))

/** A draft that is longer than this share of the prompt is cut. */
const draftShare = 0.5
/** Nearly all drafts are shorter than this. */
const briefDraft = 0.1

/** The prompt of an output tool: the draft before all, then the background, then results in what is left. */
export const outputParts = (state: OutputState, draft: string | null, budget: number): PromptPart[] => {
  const fence = createDataFence(state)
  const text = fence(draft?.trim() ?? '', derivedLabel, Math.floor(budget * draftShare))
  const drafted = part(titles.draft, text, 'agent')
  const room = budget - estimateTokens(promptText([drafted]))
  // in steps, so that a longer draft does not change how much of earlier turns is in it
  const background = buildBackground(
    state,
    budget * (room >= budget * (1 - briefDraft) ? 1 - briefDraft : 1 - draftShare),
  )
  const compacted = findLatestCompaction(state)
  const calls = listAnsweredCalls(turnActions(state)).filter(({ action }) => !isCompacted(action, compacted))
  return [...background, drafted, renderResults(calls, room - estimateTokens(promptText(background)), fence)]
}
