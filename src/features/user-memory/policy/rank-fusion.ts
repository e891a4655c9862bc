import type { MemoryKind } from '../../../state/memory-kinds.ts'

/** The part of a memory that its rank depends on. Times are the database's. */
export type RankedMemory = { id: string; kind: MemoryKind; strength: number; last_used_at: Date }

/** Days without use after which half of the strength is left. */
const halfLifeDays: Record<MemoryKind, number> = { episode: 30, fact: 365, knowledge: 365, preference: 730 }
const dayMs = 86_400_000

/** A memory's strength at a time, from 0 to 1: halves with every half-life since its last use. */
const computeStrength = ({ kind, strength, last_used_at }: Omit<RankedMemory, 'id'>, now: Date): number =>
  strength * 0.5 ** (Math.max(0, now.getTime() - last_used_at.getTime()) / dayMs / halfLifeDays[kind])

/** The constant of reciprocal rank fusion (Cormack, Clarke and Büttcher 2009). */
const fusionConstant = 60
/** The share of the score that strength decides. */
const strengthShare = 0.4

/**
 * Merges several ranked lists into the best `limit` items. `relevance`, from 0 to 1: 1 is first in every list at full
 * strength.
 */
export const mergeByRank = <Item extends RankedMemory>(
  lists: readonly { rows: readonly Item[] }[],
  now: Date,
  limit: number,
): (Item & { relevance: number })[] => {
  const scores = new Map<string, { item: Item; score: number }>()
  for (const { rows } of lists)
    for (const [at, item] of rows.entries()) {
      const entry = scores.get(item.id)
      scores.set(item.id, { item, score: (entry?.score ?? 0) + 1 / (fusionConstant + at + 1) })
    }
  const best = lists.length / (fusionConstant + 1)
  return [...scores.values()]
    .map(({ item, score }) => {
      const factor = 1 - strengthShare + strengthShare * computeStrength(item, now)
      return { ...item, relevance: Math.min(1, (score / best) * factor) }
    })
    .toSorted((a, b) => b.relevance - a.relevance || (a.id < b.id ? -1 : 1))
    .slice(0, limit)
}
