import { byRank, type Rank } from '../../state/context/rank.ts'
import type { ModelMessage } from '../../state/ports.ts'
import type { ToldResult, ToldRound } from './tell-round.ts'

/** Once a prompt is full, so much of its room stays taken: the next steps then fit without a change of what came before. */
const keptShare = 0.7

const leftOut: ModelMessage = { role: 'user', content: '[earlier steps of this turn are left out here]' }

/**
 * The messages of a turn in at most `room` tokens. Where they do not fit, results give way to a line each, then whole
 * steps go, the least important, relevant and recent first. It is decided step by step as the turn grew, so what one
 * step was shown is the beginning of what the next one is, but for the steps at which room is made.
 */
export const fitRounds = (rounds: readonly ToldRound[], room: number): ModelMessage[] => {
  const shortened = new Set<ToldResult>()
  const dropped = new Set<ToldRound>()
  const sizeOf = (round: ToldRound): number =>
    round.results.reduce((sum, one) => sum + (shortened.has(one) ? one.stubTokens : one.tokens), round.tokens)
  let total = 0
  let full: ToldResult[] = []
  let kept: ToldRound[] = []

  const shorten = (candidates: readonly ToldResult[], goal: number): void => {
    if (total <= goal) return
    for (const one of candidates.toSorted((a, b) => byRank(b.rank, a.rank))) {
      if (total <= goal) return
      if (one.stubTokens >= one.tokens) continue
      shortened.add(one)
      total += one.stubTokens - one.tokens
    }
  }
  const drop = (candidates: readonly ToldRound[], goal: number): void => {
    if (total <= goal) return
    const ranked = candidates.map((round) => ({ round, rank: rankOfRound(round) }))
    for (const { round } of ranked.toSorted((a, b) => byRank(b.rank, a.rank))) {
      if (total <= goal) return
      dropped.add(round)
      total -= sizeOf(round)
    }
  }

  for (const round of rounds) {
    total += sizeOf(round)
    if (total > room) {
      shorten(full, room * keptShare)
      full = full.filter((one) => !shortened.has(one))
      drop(kept, room * keptShare)
      kept = kept.filter((one) => !dropped.has(one))
      if (total > room) shorten(round.results, room)
    }
    full.push(...round.results.filter((one) => !shortened.has(one)))
    kept.push(round)
  }
  const messages = kept.flatMap(({ decision, results, notes }) => [
    decision,
    ...results.map((one) => (shortened.has(one) ? one.stub : one.message)),
    ...notes,
  ])
  return dropped.size > 0 ? [leftOut, ...messages] : messages
}

const rankOfRound = ({ results }: ToldRound): Rank =>
  results.map(({ rank }) => rank).toSorted(byRank)[0] ?? { important: false, relevance: 0, recency: 0 }
