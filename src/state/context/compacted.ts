import { z } from 'zod'
import type { RuntimeState } from '../runtime-state.ts'
import { createTurnScan } from '../scan-turn.ts'
import type { ReadonlyAction } from '../turn.ts'

/** Ids of actions, from the first up to and with the second. */
export type Range = readonly [from: number, to: number]

/** What the latest compaction says in place of what it summed up. */
export type Compacted = { id: number; text: string; ranges: readonly Range[] }

export const compactionNode = 'compaction'

const compactedSchema = z.object({
  text: z.string(),
  compacted: z.array(z.tuple([z.int().positive(), z.int().positive()])).min(1),
})

const compactions = createTurnScan(({ node }) => node === compactionNode)

/** The latest compaction of the session, which holds what those before it said; null while there is none. */
export const latestCompaction = ({
  action_history,
}: Pick<RuntimeState, 'action_history'>): Compacted | null => {
  for (let turn = action_history.length - 1; turn >= 0; turn--)
    for (const { id, result } of compactions(action_history[turn] ?? []).reverse()) {
      const read = compactedSchema.safeParse(result)
      if (read.success) return { id, text: read.data.text, ranges: read.data.compacted }
    }
  return null
}

export const isCompacted = ({ id }: Pick<ReadonlyAction, 'id'>, compacted: Compacted | null): boolean =>
  compacted?.ranges.some(([from, to]) => from <= id && id <= to) ?? false

/** All of these ranges, in order, those that touch as one. */
export const mergeRanges = (ranges: readonly Range[]): Range[] => {
  const merged: [number, number][] = []
  for (const [from, to] of ranges.toSorted((a, b) => a[0] - b[0])) {
    const last = merged.at(-1)
    if (last && from <= last[1] + 1) last[1] = Math.max(last[1], to)
    else merged.push([from, to])
  }
  return merged
}
