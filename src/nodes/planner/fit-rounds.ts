import { compareRanks, type Rank } from '../../context/relevance-rank.ts'
import type { ModelMessage } from '../../state/ports/model-messages.ts'
import type { ResultMessage, RoundMessages } from './round-messages.ts'

/** Once a prompt is full, so much of its room stays taken: the next steps then fit without a change of what came before. */
const retainedShare = 0.7

const omittedMessage: ModelMessage = {
  role: 'user',
  content: '[earlier steps of this turn are left out here]',
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

  const shorten = (candidates: readonly ResultMessage[], goal: number): void => {
    if (total <= goal) return
    for (const one of candidates.toSorted((a, b) => compareRanks(b.rank, a.rank))) {
      if (total <= goal) return
      if (one.stubTokens >= one.tokens) continue
      shortened.add(one)
      total += one.stubTokens - one.tokens
    }
  }
  const drop = (candidates: readonly RoundMessages[], goal: number): void => {
    if (total <= goal) return
    const ranked = candidates.map((round) => ({ round, rank: rankRound(round) }))
    for (const { round } of ranked.toSorted((a, b) => compareRanks(b.rank, a.rank))) {
      if (total <= goal) return
      dropped.add(round)
      total -= sizeOf(round)
    }
  }

  for (const round of rounds) {
    total += sizeOf(round)
    if (total > budget) {
      shorten(full, budget * retainedShare)
      full = full.filter((one) => !shortened.has(one))
      drop(kept, budget * retainedShare)
      kept = kept.filter((one) => !dropped.has(one))
      if (total > budget) shorten(round.results, budget)
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

const rankRound = ({ results }: RoundMessages): Rank =>
  results.map(({ rank }) => rank).toSorted(compareRanks)[0] ?? { important: false, relevance: 0, recency: 0 }
