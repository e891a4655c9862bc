import { partShares } from '../../state/context/budget.ts'
import { type Fence, labelOfAction } from '../../state/context/fence.ts'
import { type Rank, rankOf } from '../../state/context/rank.ts'
import { shownResult, stubOf } from '../../state/context/results.ts'
import type { Round } from '../../state/context/rounds.ts'
import type { ModelMessage, Reasoning } from '../../state/ports.ts'
import { estimateTokens } from '../../state/tokens.ts'
import type { ReadonlyAction } from '../../state/turn.ts'

/** One result as a message, and the line that may stand for it. */
export type ToldResult = {
  message: ModelMessage
  tokens: number
  stub: ModelMessage
  stubTokens: number
  rank: Rank
}

/** One step of a turn as the chat format has it. */
export type ToldRound = {
  decision: ModelMessage
  results: readonly ToldResult[]
  notes: readonly ModelMessage[]
  /** Of all but the results. */
  tokens: number
}

type Options = { budget: number; canOpen: boolean; fence: Fence }

/** Rounds that are over stay as they were told, so that a step tells only its own. */
const told = new WeakMap<Round, { key: string; round: ToldRound }>()

/** Tells rounds; how much of a result is shown depends on the budget and its own round only, and so never changes. */
export const createTelling = (options: Options): ((round: Round) => ToldRound) => {
  const key = `${options.budget} ${options.canOpen} ${options.fence('', { origin: 'tool', trusted: false })}`
  return (round) => {
    const known = told.get(round)
    if (known?.key === key) return known.round
    const made = tellRound(round, options)
    told.set(round, { key, round: made })
    return made
  }
}

/** What the chat format puts around each message. */
const aroundTokens = 6

const tellRound = ({ plan, calls, reflections }: Round, { budget, canOpen, fence }: Options): ToldRound => {
  const maxTokens = Math.floor(budget * Math.min(partShares.result, partShares.step / calls.length))
  const decision: ModelMessage = {
    role: 'assistant',
    content: plan.preparation,
    tool_calls: calls.map(({ call: { id, tool, args } }) => ({
      id,
      name: tool,
      arguments: JSON.stringify(args),
    })),
    ...reasoningOf(plan),
  }
  const results = calls.map(({ call, answer }) =>
    answer
      ? tellResult(
          call.id,
          fence(shownResult(answer, { maxTokens, canOpen }), labelOfAction(answer)),
          fence(stubOf(answer, canOpen), labelOfAction(answer)),
          rankOf(answer),
        )
      : tellResult(call.id, '[no result]', '[no result]', {
          important: true,
          relevance: 1,
          recency: plan.id,
        }),
  )
  const notes = reflections.flatMap(gapOf)
  const texts = [
    plan.preparation,
    decision.reasoning?.text ?? '',
    ...(decision.tool_calls ?? []).map((call) => call.name + call.arguments),
  ]
  const tokens = [...texts, ...notes.map(({ content }) => content)].reduce(
    (sum, text) => sum + estimateTokens(text) + aroundTokens,
    0,
  )
  return { decision, results, notes, tokens }
}

/** What was thought before these calls; a vendor that thinks between calls wants it back for as long as the turn lasts. */
const reasoningOf = ({ result: { reasoning, reasoned_by } }: ReadonlyAction): { reasoning?: Reasoning } =>
  typeof reasoning === 'string' && typeof reasoned_by === 'string'
    ? { reasoning: { text: reasoning, by: reasoned_by } }
    : {}

const tellResult = (tool_call_id: string, text: string, short: string, rank: Rank): ToldResult => ({
  message: { role: 'tool', tool_call_id, content: text },
  tokens: estimateTokens(text) + aroundTokens,
  stub: { role: 'tool', tool_call_id, content: short },
  stubTokens: estimateTokens(short) + aroundTokens,
  rank,
})

/** Only what a plan can use: a gap that was found. Silence means that the results will do. */
const gapOf = ({ result }: ReadonlyAction): ModelMessage[] => {
  if (result.is_sufficient !== false || typeof result.knowledge_gap !== 'string' || !result.knowledge_gap)
    return []
  const queries = Array.isArray(result.follow_up_queries)
    ? result.follow_up_queries.map((query) => `- ${String(query)}`)
    : []
  return [
    {
      role: 'user',
      content: ['# Reflection', `Still missing: ${result.knowledge_gap}`, ...queries].join('\n'),
    },
  ]
}
