import { compareRanks, type Rank } from '../../../context/relevance-rank.ts'
import type { LargeTexts } from '../../../context/result-text.ts'
import type { PlanRound } from '../../../context/rounds.ts'
import type { ModelMessage } from '../../../state/ports/model-messages.ts'
import {
  type DataFence,
  derivedLabel,
  joinTexts,
  ownText,
  promptOfAction,
} from '../../../state/provenance.ts'
import { estimateTokens } from '../../../state/text/tokens.ts'
import type { WrittenPlans } from './written-plans.ts'

/** One result as a message, and the line that may replace it. */
export type ResultMessage = {
  message: ModelMessage
  tokens: number
  stub: ModelMessage
  stubTokens: number
  rank: Rank
}

/** One step of a turn as messages. */
export type RoundMessages = {
  plan: ModelMessage
  results: readonly ResultMessage[]
  notes: readonly ModelMessage[]
  /** What was refused on the way to the plan, and what was said of it. */
  before?: readonly ModelMessage[]
  /** The plan and what else closed the prompt that this step answered, and its tokens; they are not among those of the step. */
  closing?: { message: ModelMessage; tokens: number }
  /** The results are one message of the user, their texts joined. */
  isJoined?: boolean
  /** Of all but the results. */
  tokens: number
  /** That of its least important result. */
  rank: Rank
}

/** How a round is rendered: tokens that the prompt may take, and whether `read_result` is offered beside it. */
export type RoundOptions = {
  budget: number
  canOpen: boolean
  fence: DataFence
  largeTexts?: LargeTexts | undefined
  /** What was written in the language and is in blobs. */
  written?: WrittenPlans | undefined
  /** The server of a tool in the language. */
  serverOf?: (tool: string) => string | undefined
}

/** The name of a dialect, and how it renders. */
type RoundRendering = { name: string; renderRound(round: PlanRound, options: RoundOptions): RoundMessages }

/** Messages of completed rounds never change, so that a step renders only its own. */
const renderedRounds = new WeakMap<PlanRound, { key: string; round: RoundMessages }>()

/** Renders rounds; how much of a result is whole depends on the budget and its own round only, and so never changes. */
export const createRoundRenderer = (
  { name, renderRound }: RoundRendering,
  options: RoundOptions,
): ((round: PlanRound) => RoundMessages) => {
  const key = `${name} ${options.budget} ${options.canOpen} ${options.fence('-', derivedLabel)}`
  return (round) => {
    const known = renderedRounds.get(round)
    if (known?.key === key) return known.round
    const made = { ...renderRound(round, options), ...readClosing(round) }
    renderedRounds.set(round, { key, round: made })
    return made
  }
}

/** What the chat format puts around each message. */
export const aroundTokens = 6

const readClosing = ({ plan }: PlanRound): Pick<RoundMessages, 'closing'> => {
  const { closing } = plan.result
  if (typeof closing !== 'string') return {}
  const content = promptOfAction(closing)
  return { closing: { message: { role: 'user', content }, tokens: estimateTokens(content) + aroundTokens } }
}

const joinMessages = (messages: readonly ModelMessage[]): ModelMessage[] => {
  const texts = messages.map(({ content }) => content)
  return texts.length === 0 ? [] : [{ role: 'user', content: joinTexts(texts, '\n') }]
}

/** Once a prompt is full, so much of its room stays taken: the next steps then fit without a change of what came before. */
const retainedShare = 0.7

const omittedMessage: ModelMessage = {
  role: 'user',
  content: ownText`[earlier steps of this turn are left out here]`,
}

/**
 * The messages of a turn in at most `budget` tokens. Where they do not fit, the plans of earlier steps go, then results give
 * way to a line each, then whole steps go, the least important, relevant and recent first. It is decided step by step as the turn grew, so what one
 * step had is the beginning of what the next one has, except at the steps where rounds are shortened.
 */
export const fitRounds = (rounds: readonly RoundMessages[], budget: number): ModelMessage[] => {
  const shortened = new Set<ResultMessage>()
  const dropped = new Set<RoundMessages>()
  const outdated = new Set<RoundMessages>()
  const closingSize = (round: RoundMessages): number =>
    outdated.has(round) ? 0 : (round.closing?.tokens ?? 0)
  const sizeOf = (round: RoundMessages): number =>
    round.results.reduce(
      (sum, one) => sum + (shortened.has(one) ? one.stubTokens : one.tokens),
      round.tokens + closingSize(round),
    )
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
      for (const earlier of kept) {
        total -= closingSize(earlier)
        outdated.add(earlier)
      }
      reduce(full, budget * retainedShare, shorten)
      full = full.filter((one) => !shortened.has(one))
      reduce(kept, budget * retainedShare, drop)
      kept = kept.filter((one) => !dropped.has(one))
      reduce(round.results, budget, shorten)
    }
    full.push(...round.results.filter((one) => !shortened.has(one)))
    kept.push(round)
  }
  const messages = kept.flatMap((round) => {
    const { before = [], closing, plan, results, notes, isJoined = false } = round
    const shown = results.map((one) => (shortened.has(one) ? one.stub : one.message))
    const asked = closing && !outdated.has(round) ? [closing.message] : []
    return [...asked, ...before, plan, ...(isJoined ? joinMessages(shown) : shown), ...notes]
  })
  return dropped.size > 0 ? [omittedMessage, ...messages] : messages
}
