import { estimateTokens } from '../state/text/tokens.ts'
import type { HistoryEntry } from './history-entries.ts'
import { type Rank, takeBest } from './relevance-rank.ts'

/** How an entry of an earlier turn is rendered: whole, or as its line; not at all where it is missing. */
export type HistorySelection = ReadonlyMap<HistoryEntry, 'whole' | 'line'>

/** The share of a full budget that is retained: the next turns then only append to the same text. */
const retainedShare = 0.6
/** The share of the retained budget for messages before results get any; and of the results' share, for lines. */
const chatShare = 0.5
const lineShare = 0.15

/** What the two latest turns said counts as important. */
const freshTurns = 2

/**
 * Selects entries of earlier turns within `budget` tokens, turn by turn as the session grew: a turn is added whole, and
 * when the budget is full the least important, relevant and recent entries are dropped for good, several turns' worth at
 * once. Nothing depends on the current request, so that one turn's prompt begins as the last one's did.
 */
export const selectHistory = (turns: Iterable<readonly HistoryEntry[]>, budget: number): HistorySelection => {
  let talk: HistoryEntry[] = []
  let whole: HistoryEntry[] = []
  let lines: HistoryEntry[] = []
  let taken = 0
  let turn = 0

  const makeRoom = (): void => {
    const goal = budget * retainedShare
    const forActions = goal - Math.min(sumSizes(talk, wholeTokens), goal * chatShare)
    const kept = takeBest(whole, forActions * (1 - lineShare), wholeTokens)
    const dropped = whole.filter((piece) => !kept.has(piece))
    const short = takeBest([...lines, ...dropped], forActions - sumSizes(kept, wholeTokens), lineTokens)
    lines = [...lines, ...dropped].filter((piece) => short.has(piece))
    whole = [...kept]
    const left = goal - sumSizes(whole, wholeTokens) - sumSizes(lines, lineTokens)
    talk = [...takeBest(talk, left, wholeTokens, (piece) => rankWithRecency(piece, turn))]
    taken = goal - left + sumSizes(talk, wholeTokens)
  }

  for (const pieces of turns) {
    turn = pieces[0]?.turn ?? turn
    for (const piece of pieces) (piece.kind === 'chat' ? talk : whole).push(piece)
    taken += sumSizes(pieces, wholeTokens)
    if (taken > budget) makeRoom()
  }
  return new Map([
    ...[...talk, ...whole].map((piece) => [piece, 'whole'] as const),
    ...lines.map((piece) => [piece, 'line'] as const),
  ])
}

const rankWithRecency = ({ rank, turn }: HistoryEntry, latest: number): Rank => ({
  ...rank,
  important: turn > latest - freshTurns,
})

type Size = (piece: HistoryEntry) => number
const wholeTokens: Size = ({ tokens }) => tokens
const lineTokens: Size = ({ title, heading }) => estimateTokens(title + heading) + 12

const sumSizes = (pieces: Iterable<HistoryEntry>, size: Size): number =>
  [...pieces].reduce((sum, piece) => sum + size(piece), 0)
