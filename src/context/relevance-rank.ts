import { toPairs } from '../state/text/words.ts'
import type { ReadonlyAction } from '../state/turn.ts'

/** Decides which entry gets into a prompt first. */
export type Rank = { important: boolean; relevance: number; recency: number }

/** The best first: important, then relevant, then recent. */
export const compareRanks = (a: Rank, b: Rank): number =>
  Number(b.important) - Number(a.important) || b.relevance - a.relevance || b.recency - a.recency

/** The best items that so many tokens hold, in the order they came in. */
export const takeBest = <Item extends { rank: Rank }>(
  items: readonly Item[],
  budget: number,
  size: (item: Item) => number,
  rank = (item: Item): Rank => item.rank,
): ReadonlySet<Item> => {
  const taken = new Set<Item>()
  let left = budget
  const ranked = items.map((item) => ({ item, rank: rank(item) }))
  for (const { item } of ranked.toSorted((a, b) => compareRanks(a.rank, b.rank))) {
    const tokens = size(item)
    if (tokens > left) continue
    left -= tokens
    taken.add(item)
  }
  return new Set(items.filter((item) => taken.has(item)))
}

/** The rank of an action, as its node and reflection judged it. */
export const rankAction = (action: ReadonlyAction): Rank => ({
  important: action.context?.important === true,
  relevance: action.relevance,
  recency: action.id,
})

const stopWords = new Set(
  (
    'the and for are was were has have had not but with from that this these those what when where which who whom whose ' +
    'why how can could should would will shall may might must does did done you your our their his her its there here ' +
    'into onto over than then them they all any some one two please tell give show about again more most only also'
  ).split(' '),
)

const maxTerms = 40
const maxRead = 2000

/** The telling words of a request, in lower case: words and figures of three letters or more, pairs of CJK characters. */
export const extractTerms = (request: string): string[] => {
  const text = request.slice(0, maxRead).toLowerCase()
  const words = (text.match(/[\p{L}\p{N}]{3,}/gu) ?? []).flatMap((word) =>
    /[\u2e80-\uffff]/.test(word) ? toPairs(word) : stopWords.has(word) ? [] : [word],
  )
  return [...new Set(words)].slice(0, maxTerms)
}

/** Which share of the terms a text holds, 0 to 1. */
export const computeOverlap = (text: string, terms: readonly string[]): number => {
  if (terms.length === 0) return 0
  const lower = text.slice(0, maxRead).toLowerCase()
  return terms.filter((term) => lower.includes(term)).length / terms.length
}

/** A piece that holds so much of what is asked for counts as important. */
const importantOverlap = 0.6

/** A rank raised by how much of the request the entry contains (0 to 1). */
export const raiseRank = (rank: Rank, overlap: number): Rank => ({
  important: rank.important || overlap >= importantOverlap,
  relevance: Math.max(rank.relevance, overlap),
  recency: rank.recency,
})
