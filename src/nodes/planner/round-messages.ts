import { partShares } from '../../context/budget.ts'
import { compareRanks, type Rank, rankAction } from '../../context/relevance-rank.ts'
import { type LargeTexts, renderResultText, renderStub } from '../../context/result-text.ts'
import type { PlanRound } from '../../context/rounds.ts'
import { part, promptText, titles } from '../../context/sections.ts'
import type { ModelMessage, Reasoning } from '../../state/ports/model-messages.ts'
import {
  type DataFence,
  derivedLabel,
  modelWords,
  ownText,
  type PromptText,
  readActionLabel,
} from '../../state/provenance.ts'
import { estimateTokens } from '../../state/text/tokens.ts'
import type { ReadonlyAction } from '../../state/turn.ts'

/** One result as a message, and the line that may replace it. */
type ResultMessage = {
  message: ModelMessage
  tokens: number
  stub: ModelMessage
  stubTokens: number
  rank: Rank
}

/** One step of a turn as the chat format has it. */
type RoundMessages = {
  plan: ModelMessage
  results: readonly ResultMessage[]
  notes: readonly ModelMessage[]
  /** Of all but the results. */
  tokens: number
  /** That of its least important result. */
  rank: Rank
}

type Options = { budget: number; canOpen: boolean; fence: DataFence; largeTexts?: LargeTexts | undefined }

/** Messages of completed rounds never change, so that a step renders only its own. */
const renderedRounds = new WeakMap<PlanRound, { key: string; round: RoundMessages }>()

/** Renders rounds; how much of a result is whole depends on the budget and its own round only, and so never changes. */
export const createRoundRenderer = (options: Options): ((round: PlanRound) => RoundMessages) => {
  const key = `${options.budget} ${options.canOpen} ${options.fence('-', derivedLabel)}`
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
  { budget, canOpen, fence, largeTexts }: Options,
): RoundMessages => {
  const maxTokens = Math.floor(budget * Math.min(partShares.result, partShares.step / calls.length))
  const decision: ModelMessage = {
    role: 'assistant',
    content: fence(plan.preparation, derivedLabel),
    tool_calls: calls.map(({ call: { id, tool, args } }) => ({
      id,
      name: modelWords(tool),
      arguments: modelWords(JSON.stringify(args)),
    })),
    ...readReasoning(plan),
  }
  const results = calls.map(({ call, answer }) =>
    answer
      ? renderResult(
          call.id,
          fence(
            renderResultText(answer, { maxTokens, canOpen, large: largeTexts?.get(answer) }) || '[no text]',
            readActionLabel(answer),
          ),
          fence(renderStub(answer, canOpen), readActionLabel(answer)),
          rankAction(answer),
        )
      : renderResult(call.id, noResult, noResult, {
          important: true,
          relevance: 1,
          recency: plan.id,
        }),
  )
  const notes = reflections.flatMap((action) => renderGap(action, fence))
  const texts = [
    decision.content,
    decision.reasoning?.text ?? '',
    ...(decision.tool_calls ?? []).map((call) => call.name + call.arguments),
  ]
  const tokens = [...texts, ...notes.map(({ content }) => content)].reduce(
    (sum, text) => sum + estimateTokens(text) + aroundTokens,
    0,
  )
  const [rank = { important: false, relevance: 0, recency: 0 }] = results
    .map((one) => one.rank)
    .toSorted(compareRanks)
  return { plan: decision, results, notes, tokens, rank }
}

/** What was thought before these calls; a vendor that thinks between calls wants it back for as long as the turn lasts. */
const readReasoning = ({
  result: { reasoning, reasoned_by },
}: ReadonlyAction): { reasoning?: Reasoning<PromptText> } =>
  typeof reasoning === 'string' && typeof reasoned_by === 'string'
    ? { reasoning: { text: modelWords(reasoning), by: reasoned_by } }
    : {}

const noResult = ownText`[no result]`

const renderResult = (
  tool_call_id: string,
  text: PromptText,
  short: PromptText,
  rank: Rank,
): ResultMessage => ({
  message: { role: 'tool', tool_call_id, content: text },
  tokens: estimateTokens(text) + aroundTokens,
  stub: { role: 'tool', tool_call_id, content: short },
  stubTokens: estimateTokens(short) + aroundTokens,
  rank,
})

/** Only what a plan can use: a gap that was found. Silence means that the results will do. */
const renderGap = ({ result }: ReadonlyAction, fence: DataFence): ModelMessage[] => {
  if (result.is_sufficient !== false || typeof result.knowledge_gap !== 'string' || !result.knowledge_gap)
    return []
  const queries = Array.isArray(result.follow_up_queries)
    ? result.follow_up_queries.map((query) => `- ${String(query)}`)
    : []
  const gap = fence([result.knowledge_gap, ...queries].join('\n'), derivedLabel)
  return [
    {
      role: 'user',
      content: promptText([part(titles.reflection, ownText`Still missing:\n${gap}`, 'agent')]),
    },
  ]
}

/** Once a prompt is full, so much of its room stays taken: the next steps then fit without a change of what came before. */
const retainedShare = 0.7

const omittedMessage: ModelMessage = {
  role: 'user',
  content: ownText`[earlier steps of this turn are left out here]`,
}

/**
 * The messages of a turn in at most `room` tokens. Where they do not fit, results give way to a line each, then whole
 * steps go, the least important, relevant and recent first. It is decided step by step as the turn grew, so what one
 * step had is the beginning of what the next one has, except at the steps where rounds are shortened.
 */
export const fitRounds = (rounds: readonly RoundMessages[], budget: number): ModelMessage[] => {
  const shortened = new Set<ResultMessage>()
  const dropped = new Set<RoundMessages>()
  const sizeOf = (round: RoundMessages): number =>
    round.results.reduce((sum, one) => sum + (shortened.has(one) ? one.stubTokens : one.tokens), round.tokens)
  let total = 0
  let full: ResultMessage[] = []
  let kept: RoundMessages[] = []

  /** The least of the items first, until the total is at the goal; `giveUp` returns the tokens that this frees. */
  const reduce = <Item extends { rank: Rank }>(
    items: readonly Item[],
    goal: number,
    giveUp: (item: Item) => number,
  ): void => {
    if (total <= goal) return
    for (const item of items.toSorted((a, b) => compareRanks(b.rank, a.rank)))
      if (total > goal) total -= giveUp(item)
  }
  const shorten = (one: ResultMessage): number => {
    if (one.stubTokens >= one.tokens) return 0
    shortened.add(one)
    return one.tokens - one.stubTokens
  }
  const drop = (round: RoundMessages): number => {
    dropped.add(round)
    return sizeOf(round)
  }

  for (const round of rounds) {
    total += sizeOf(round)
    if (total > budget) {
      reduce(full, budget * retainedShare, shorten)
      full = full.filter((one) => !shortened.has(one))
      reduce(kept, budget * retainedShare, drop)
      kept = kept.filter((one) => !dropped.has(one))
      reduce(round.results, budget, shorten)
    }
    full.push(...round.results.filter((one) => !shortened.has(one)))
    kept.push(round)
  }
  const messages = kept.flatMap(({ plan, results, notes }) => [
    plan,
    ...results.map((one) => (shortened.has(one) ? one.stub : one.message)),
    ...notes,
  ])
  return dropped.size > 0 ? [omittedMessage, ...messages] : messages
}
