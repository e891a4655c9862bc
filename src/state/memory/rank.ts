import type { MemoryKind } from './kinds.ts'

/** The order of what was found: by nearness and by words, merged by rank, then by how strong the memory still is. */

/** What ranking looks at. Times are of the database. */
export type Ranked = { id: string; kind: MemoryKind; strength: number; last_used_at: Date }

/** Days without use after which half the strength is left. */
const halfLifeDays: Record<MemoryKind, number> = { episode: 30, fact: 365, knowledge: 365, preference: 730 }
const dayMs = 86_400_000

/** From 0 to 1: what is left of a memory's strength, halved with every half-life since its last use. */
const strengthNow = ({ kind, strength, last_used_at }: Omit<Ranked, 'id'>, now: Date): number =>
  strength * 0.5 ** (Math.max(0, now.getTime() - last_used_at.getTime()) / dayMs / halfLifeDays[kind])

/** Reciprocal rank fusion: Cormack, Clarke and Büttcher 2009, with their constant. */
const fusion = 60
/** The share of the order that strength decides. */
const strengthShare = 0.4

/**
 * The best `limit` of several lists, each in order of its own. `relevance`, from 0 to 1: 1 is first in every list and at
 * full strength.
 */
export const mergeByRank = <Item extends Ranked>(
  lists: readonly (readonly Item[])[],
  now: Date,
  limit: number,
): (Item & { relevance: number })[] => {
  const found = new Map<string, { item: Item; score: number }>()
  for (const list of lists)
    for (const [at, item] of list.entries()) {
      const known = found.get(item.id)
      found.set(item.id, { item, score: (known?.score ?? 0) + 1 / (fusion + at + 1) })
    }
  const best = lists.length / (fusion + 1)
  return [...found.values()]
    .map(({ item, score }) => {
      const kept = 1 - strengthShare + strengthShare * strengthNow(item, now)
      return { ...item, relevance: Math.min(1, (score / best) * kept) }
    })
    .toSorted((a, b) => b.relevance - a.relevance || (a.id < b.id ? -1 : 1))
    .slice(0, limit)
}
