import { collectBackground, formParts } from '../../context/background.ts'
import { partShares } from '../../context/budget.ts'
import { type ContextState, listProposed, renderPlan, withoutProposed } from '../../context/context.ts'
import { toHistoryMessages } from '../../context/history.ts'
import { findLatestCompaction, isCompacted } from '../../context/latest-compaction.ts'
import { listRounds } from '../../context/rounds.ts'
import { noText, part, promptText, titles } from '../../context/sections.ts'
import { defaultLimits } from '../../graph/limits.ts'
import { checkProgress } from '../../graph/progress.ts'
import type { ModelMessage } from '../../state/ports/model-messages.ts'
import type { ModelRequest } from '../../state/ports/models.ts'
import type { PromptPart } from '../../state/prompt-part.ts'
import {
  type DataFence,
  derivedLabel,
  joinTexts,
  operatorWords,
  ownText,
  type PromptText,
} from '../../state/provenance.ts'
import type { RunLimits } from '../../state/run-request.ts'
import type { RuntimeState } from '../../state/runtime-state.ts'
import { estimateTokens } from '../../state/text/tokens.ts'
import { turnActions, turnUsage } from '../../state/turn.ts'
import type { Dialect } from './dialects/dialect.ts'
import { createRoundRenderer, fitRounds, type RoundOptions } from './dialects/round-messages.ts'
import { plannerInstructions, toolsDialect } from './dialects/tools.ts'

/** Said when the last steps led nowhere. */
const replanNote = (why: string, fence: DataFence): PromptPart =>
  part(
    titles.reflection,
    ownText`No progress:\n${fence(why, derivedLabel)}\nMake a different plan: another tool, other arguments, or finish with what there is and say what is missing.`,
    'agent',
  )

/** Another step writes the final text: then wording is wasted here. */
const writerNote = (tool: string | null): PromptPart =>
  part(titles.writer, tool === null ? noText : writerText(tool), 'agent')
const writerText = (tool: string): PromptText =>
  ownText`${operatorWords(tool)} writes the final text: finish with the facts alone, where they come from, and what is open.`

/** Shares of a limit, and steps, below which what is left is said. */
const littleShare = 0.2
const fewSteps = 8

/** What is left of the limits that are nearly reached: steps and tokens by the state, time as of the latest decision. */
const limitsNote = (state: PlannerState, limits: RunLimits): PromptPart => {
  const { max_steps = defaultLimits.max_steps, timeout_ms = defaultLimits.timeout_ms } = limits
  const actions = turnActions(state)
  const steps = max_steps - actions.length
  const tokens = (limits.max_tokens ?? Number.POSITIVE_INFINITY) - turnUsage(state).total_tokens
  const worked = actions.findLast(({ result }) => typeof result.worked_ms === 'number')?.result.worked_ms
  const leftMs = timeout_ms - Number(worked ?? 0)
  const lines = [
    ...(steps <= Math.max(fewSteps, max_steps * (littleShare / 2))
      ? [
          ownText`- ${steps} of ${max_steps} steps: calls take one each and two around them, finishing takes three`,
        ]
      : []),
    ...(tokens <= (limits.max_tokens ?? 0) * littleShare
      ? [ownText`- ${tokens} of ${limits.max_tokens ?? 0} tokens`]
      : []),
    ...(leftMs <= timeout_ms * littleShare
      ? [ownText`- about ${Math.max(0, Math.round(leftMs / 1000))} seconds`]
      : []),
  ]
  const text = ownText`Little is left; finish before it is used up, and say what is missing:\n${joinTexts(lines, '\n')}`
  return part(titles.limits, lines.length > 0 ? text : noText, 'agent')
}

/**
 * How the planner and its model talk, natively where it is left out; how rounds are rendered, the limits of the run, and the
 * tool that writes the final text in a state, where the answer is not passed on as it stands.
 */
type PromptOptions = Omit<RoundOptions, 'fence'> & {
  dialect?: Pick<Dialect, 'name' | 'renderRound'>
  instructions?: PromptText
  limits?: RunLimits
  writer?: (state: ContextState) => string | null
}

/** What the planner's prompts are built from. */
type PlannerState = ContextState & Pick<RuntimeState, 'usage'>

/** The messages, and what those that are neither earlier turns nor rounds were made of. */
export type Prompt = {
  messages: ModelMessage[]
  /** The last message, where it says what the steps before do not: the action keeps it, so that the next prompt begins with this one. */
  closing: PromptText
  parts: NonNullable<ModelRequest['parts']>
  fence: DataFence
}

/**
 * The conversation of a planner: its instructions, what stands for all turns, earlier turns as the messages they were, the
 * request and what belongs to it, then this turn as it went: its own calls and what came back. The oldest comes first and
 * never changes, so that the next turn keeps it too. The plan, which does, comes last, where it has changed since it was last
 * said: a prompt begins with the one before it, byte for byte.
 */
export const plannerPrompt = (
  state: PlannerState,
  {
    dialect = toolsDialect,
    instructions = plannerInstructions,
    limits = {},
    writer = () => null,
    ...options
  }: PromptOptions,
): Prompt => {
  const { budget } = options
  const opened = withoutProposed(state)
  const { standing, history, current, request, fence } = collectBackground(opened, budget)
  const before = [...standing, history.summary]
  const [openedWriter, currentWriter] = [writer(opened), writer(state)]
  const beside = [history.recalled, ...current, writerNote(openedWriter)]
  const opening: ModelMessage[] = [
    { role: 'system', content: instructions },
    ...toMessage(before),
    ...toHistoryMessages(history.texts),
    ...toMessage([{ ...request, title: noText }]),
    ...toMessage(beside),
  ]
  const closing = [
    ...buildProposed(state, budget, fence),
    ...(currentWriter === openedWriter ? [] : [writerNote(currentWriter)]),
    ...buildClosing(state, limits, Math.floor(budget * partShares.closing), fence),
  ]
  const compacted = findLatestCompaction(state)
  const tell = createRoundRenderer(dialect, { ...options, fence })
  const rounds = listRounds(turnActions(state))
    .filter(({ plan }) => !isCompacted(plan, compacted))
    .map(tell)
  const taken = opening.reduce((sum, { content }) => sum + estimateTokens(content), 0)
  // the same room at each step, whatever the plan takes of its own
  const room = budget * (1 - partShares.closing) - taken
  const steps = fitRounds(rounds, room)
  const said = rounds.findLast((one) => one.closing && steps.includes(one.closing.message))?.closing
  const last = toMessage(closing).filter(({ content }) => content !== said?.message.content)
  return {
    messages: [...opening, ...steps, ...last],
    closing: last[0]?.content ?? noText,
    parts: [...before, request, ...beside, ...closing],
    fence,
  }
}

const toMessage = (parts: readonly PromptPart[]): ModelMessage[] => {
  const content = promptText(parts)
  return content === '' ? [] : [{ role: 'user', content }]
}

/** What the first reply has set: it comes after what was said before it. */
const buildProposed = (state: PlannerState, budget: number, fence: DataFence): PromptPart[] => {
  const proposed = listProposed(state)
  return (['task_goals', 'output_style', 'output_structure'] as const).flatMap((field) =>
    proposed.includes(field) ? [formParts[field](state, budget, fence)] : [],
  )
}

const buildClosing = (
  state: PlannerState,
  limits: RunLimits,
  maxTokens: number,
  fence: DataFence,
): PromptPart[] => {
  const stalled = checkProgress(state)
  return [
    ...renderPlan(state, maxTokens, fence),
    ...(stalled.verdict === 'replan' ? [replanNote(stalled.reason, fence)] : []),
    limitsNote(state, limits),
  ]
}
