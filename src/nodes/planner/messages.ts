import { collectBackground } from '../../context/background.ts'
import { partShares } from '../../context/budget.ts'
import { type ContextState, renderPlan } from '../../context/context.ts'
import { toHistoryMessages } from '../../context/history.ts'
import { findLatestCompaction, isCompacted } from '../../context/latest-compaction.ts'
import type { LargeTexts } from '../../context/result-text.ts'
import { listRounds } from '../../context/rounds.ts'
import { fitParts, part, promptText, titles } from '../../context/sections.ts'
import { checkProgress } from '../../graph/progress.ts'
import type { ModelMessage } from '../../state/ports/model-messages.ts'
import type { ModelRequest } from '../../state/ports/models.ts'
import type { PromptPart } from '../../state/prompt-part.ts'
import { dataRule } from '../../state/provenance.ts'
import { estimateTokens } from '../../state/text/tokens.ts'
import { turnActions } from '../../state/turn.ts'
import { createRoundRenderer, fitRounds } from './round-messages.ts'

/** The planner's standing instructions: the same for every run, so that prompt caches hold. */
export const plannerInstructions = `You are the planner of an agent. You decide the next step for the request of a user; tools do the work.

Each turn, do exactly one of these:
- Call tools. Independent calls go out together in one reply. Beside the calls, say in one sentence what you are doing and why.
- Finish: reply with the complete answer for the user as plain text and no calls, or call finish. It is passed on as it stands.

Rules:
- For anything that takes more than one step, keep a plan with update_todos: small tasks with dependencies, in the same reply as the first calls.
- A task is done only once you name it: by update_todos beside your next calls, or in finish.
- Rely on what the tools returned, not on memory; say where a figure comes from. Compute with tools rather than in your head.
- ${dataRule}
- Where a goal stands beside the request, it is what another step made of it; where they differ, the request holds.
- A result that is marked as cut or left out can be read in parts with read_result, where that tool is there.
- Do not repeat a call that was answered. If a call fails, change it or choose another way.
- If something essential is missing and only a person can know it, ask with ask_user.
- Answer in the language of the request, and follow the output style where one is given.`

/** Said when the last steps led nowhere. */
const replanNote = (why: string): PromptPart =>
  part(
    titles.reflection,
    `No progress: ${why}. Make a different plan: another tool, other arguments, or finish with what there is and say what is missing.`,
    'agent',
  )

/** Tokens the prompt may take, whether `read_result` is offered beside it, and the turn's results that are in blobs. */
type PromptOptions = { budget: number; canOpen: boolean; largeTexts?: LargeTexts }

/** The messages, and what those that are neither earlier turns nor rounds were made of. */
export type Prompt = { messages: ModelMessage[]; parts: NonNullable<ModelRequest['parts']> }

/**
 * The conversation of a planner: its instructions, what stands for all turns, earlier turns as the messages they were, the
 * request and what belongs to it, then this turn as it went: its own calls and what came back. The oldest comes first and
 * never changes, so that the next turn keeps it too; the plan, which does, comes last.
 */
export const plannerPrompt = (
  state: ContextState,
  { budget, canOpen, largeTexts }: PromptOptions,
): Prompt => {
  const { standing, history, current, request, fence } = collectBackground(state, budget)
  const before = [...standing, history.summary]
  const beside = [history.recalled, ...current]
  const opening: ModelMessage[] = [
    { role: 'system', content: plannerInstructions },
    ...toMessage(before),
    ...toHistoryMessages(history.texts),
    ...toMessage([{ ...request, title: '' }]),
    ...toMessage(beside),
  ]
  const closing = buildClosing(state, Math.floor(budget * partShares.closing))
  const compacted = findLatestCompaction(state)
  const tell = createRoundRenderer({ budget, canOpen, fence, largeTexts })
  const rounds = listRounds(turnActions(state))
    .filter(({ plan }) => !isCompacted(plan, compacted))
    .map(tell)
  const taken = opening.reduce((sum, { content }) => sum + estimateTokens(content), 0)
  // the same room at each step, whatever the plan takes of its own
  const room = budget * (1 - partShares.closing) - taken
  return {
    messages: [...opening, ...fitRounds(rounds, room), ...toMessage(closing)],
    parts: [...before, request, ...beside, ...closing],
  }
}

const toMessage = (parts: readonly PromptPart[]): ModelMessage[] => {
  const content = promptText(parts)
  return content === '' ? [] : [{ role: 'user', content }]
}

const buildClosing = (state: ContextState, maxTokens: number): PromptPart[] => {
  const stalled = checkProgress(state)
  return [
    ...fitParts(renderPlan(state), maxTokens),
    ...(stalled.verdict === 'replan' ? [replanNote(stalled.reason)] : []),
  ]
}
