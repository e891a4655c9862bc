import { partShares } from '../../context/budget.ts'
import { type Rank, rankAction } from '../../context/relevance-rank.ts'
import { renderResultText, renderStub } from '../../context/result-text.ts'
import type { PlanRound } from '../../context/rounds.ts'
import { promptText, titles } from '../../context/sections.ts'
import type { ModelMessage, Reasoning } from '../../state/ports/model-messages.ts'
import { type DataFence, readActionLabel } from '../../state/provenance.ts'
import { estimateTokens } from '../../state/text/tokens.ts'
import type { ReadonlyAction } from '../../state/turn.ts'

/** One result as a message, and the line that may replace it. */
export type ResultMessage = {
  message: ModelMessage
  tokens: number
  stub: ModelMessage
  stubTokens: number
  rank: Rank
}

/** One step of a turn as the chat format has it. */
export type RoundMessages = {
  plan: ModelMessage
  results: readonly ResultMessage[]
  notes: readonly ModelMessage[]
  /** Of all but the results. */
  tokens: number
}

type Options = { budget: number; canOpen: boolean; fence: DataFence }

/** Messages of completed rounds never change, so that a step renders only its own. */
const renderedRounds = new WeakMap<PlanRound, { key: string; round: RoundMessages }>()

/** Renders rounds; how much of a result is whole depends on the budget and its own round only, and so never changes. */
export const createRoundRenderer = (options: Options): ((round: PlanRound) => RoundMessages) => {
  const key = `${options.budget} ${options.canOpen} ${options.fence('', { origin: 'tool', trusted: false })}`
  return (round) => {
    const known = renderedRounds.get(round)
    if (known?.key === key) return known.round
    const made = renderRound(round, options)
    renderedRounds.set(round, { key, round: made })
    return made
  }
}

/** What the chat format puts around each message. */
const aroundTokens = 6

const renderRound = (
  { plan, calls, reflections }: PlanRound,
  { budget, canOpen, fence }: Options,
): RoundMessages => {
  const maxTokens = Math.floor(budget * Math.min(partShares.result, partShares.step / calls.length))
  const decision: ModelMessage = {
    role: 'assistant',
    content: plan.preparation,
    tool_calls: calls.map(({ call: { id, tool, args } }) => ({
      id,
      name: tool,
      arguments: JSON.stringify(args),
    })),
    ...readReasoning(plan),
  }
  const results = calls.map(({ call, answer }) =>
    answer
      ? renderResult(
          call.id,
          fence(renderResultText(answer, { maxTokens, canOpen }), readActionLabel(answer)),
          fence(renderStub(answer, canOpen), readActionLabel(answer)),
          rankAction(answer),
        )
      : renderResult(call.id, '[no result]', '[no result]', {
          important: true,
          relevance: 1,
          recency: plan.id,
        }),
  )
  const notes = reflections.flatMap(renderGap)
  const texts = [
    plan.preparation,
    decision.reasoning?.text ?? '',
    ...(decision.tool_calls ?? []).map((call) => call.name + call.arguments),
  ]
  const tokens = [...texts, ...notes.map(({ content }) => content)].reduce(
    (sum, text) => sum + estimateTokens(text) + aroundTokens,
    0,
  )
  return { plan: decision, results, notes, tokens }
}

/** What was thought before these calls; a vendor that thinks between calls wants it back for as long as the turn lasts. */
const readReasoning = ({ result: { reasoning, reasoned_by } }: ReadonlyAction): { reasoning?: Reasoning } =>
  typeof reasoning === 'string' && typeof reasoned_by === 'string'
    ? { reasoning: { text: reasoning, by: reasoned_by } }
    : {}

const renderResult = (tool_call_id: string, text: string, short: string, rank: Rank): ResultMessage => ({
  message: { role: 'tool', tool_call_id, content: text },
  tokens: estimateTokens(text) + aroundTokens,
  stub: { role: 'tool', tool_call_id, content: short },
  stubTokens: estimateTokens(short) + aroundTokens,
  rank,
})

/** Only what a plan can use: a gap that was found. Silence means that the results will do. */
const renderGap = ({ result }: ReadonlyAction): ModelMessage[] => {
  if (result.is_sufficient !== false || typeof result.knowledge_gap !== 'string' || !result.knowledge_gap)
    return []
  const queries = Array.isArray(result.follow_up_queries)
    ? result.follow_up_queries.map((query) => `- ${String(query)}`)
    : []
  const text = [`Still missing: ${result.knowledge_gap}`, ...queries].join('\n')
  return [
    {
      role: 'user',
      content: promptText([{ title: titles.reflection, text, origin: 'agent' }]),
    },
  ]
}
