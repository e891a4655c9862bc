import { estimateTokens } from '../tokens.ts'
import type { Piece } from './earlier.ts'
import { byRank, type Rank } from './rank.ts'

/** How a piece of an earlier turn is told: whole, or by its line only; not at all where it is missing. */
export type Told = ReadonlyMap<Piece, 'whole' | 'line'>

/** Once the room is full, so much of it stays taken: the next turns then only add to what was told before. */
const keptShare = 0.6
/** Of what is kept, so much is the talk's before results get any; of the results', so much is lines. */
const chatShare = 0.5
const lineShare = 0.15

/** What the two latest turns said counts as important. */
const freshTurns = 2

/**
 * What of earlier turns is told within `room` tokens, decided turn by turn as the session grew: a turn is told whole, and
 * when the room is full the least important, relevant and recent pieces go for good, several turns' worth at once.
 * Nothing depends on what is asked now, so that one turn's prompt begins as the last one's did.
 */
export const tellTurns = (turns: Iterable<readonly Piece[]>, room: number): Told => {
  let talk: Piece[] = []
  let whole: Piece[] = []
  let lines: Piece[] = []
  let taken = 0
  let turn = 0

  const makeRoom = (): void => {
    const goal = room * keptShare
    const forActions = goal - Math.min(sizeOf(talk, wholeTokens), goal * chatShare)
    const kept = take(whole, forActions * (1 - lineShare))
    const dropped = whole.filter((piece) => !kept.has(piece))
    const short = take([...lines, ...dropped], forActions - sizeOf(kept, wholeTokens), lineTokens)
    lines = [...lines, ...dropped].filter((piece) => short.has(piece))
    whole = [...kept]
    const left = goal - sizeOf(whole, wholeTokens) - sizeOf(lines, lineTokens)
    talk = [...take(talk, left, wholeTokens, (piece) => withFresh(piece, turn))]
    taken = goal - left + sizeOf(talk, wholeTokens)
  }

  for (const pieces of turns) {
    turn = pieces[0]?.turn ?? turn
    for (const piece of pieces) (piece.kind === 'chat' ? talk : whole).push(piece)
    taken += sizeOf(pieces, wholeTokens)
    if (taken > room) makeRoom()
  }
  return new Map([
    ...[...talk, ...whole].map((piece) => [piece, 'whole'] as const),
    ...lines.map((piece) => [piece, 'line'] as const),
  ])
}

const withFresh = ({ rank, turn }: Piece, latest: number): Rank => ({
  ...rank,
  important: turn > latest - freshTurns,
})

type Size = (piece: Piece) => number
const wholeTokens: Size = ({ tokens }) => tokens
const lineTokens: Size = ({ line }) => estimateTokens(line) + 2

const sizeOf = (pieces: Iterable<Piece>, size: Size): number => {
  let sum = 0
  for (const piece of pieces) sum += size(piece)
  return sum
}

/** The best pieces that so many tokens hold, in the order they came in. */
export const take = (
  pieces: readonly Piece[],
  room: number,
  size: Size = wholeTokens,
  rank: (piece: Piece) => Rank = (piece) => piece.rank,
): ReadonlySet<Piece> => {
  const taken = new Set<Piece>()
  let left = room
  const ranked = pieces.map((piece) => ({ piece, rank: rank(piece) }))
  for (const { piece } of ranked.toSorted((a, b) => byRank(a.rank, b.rank))) {
    const tokens = size(piece)
    if (tokens > left) continue
    left -= tokens
    taken.add(piece)
  }
  return new Set(pieces.filter((piece) => taken.has(piece)))
}
