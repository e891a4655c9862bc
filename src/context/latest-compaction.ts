import { z } from 'zod'
import type { RuntimeState } from '../state/runtime-state.ts'
import type { ReadonlyAction } from '../state/turn.ts'

/** Ids of actions, from the first up to and with the second. */
export type ActionRange = readonly [from: number, to: number]

/** The summary of a compaction, and the actions it replaces in prompts. */
export type Compaction = { id: number; text: string; ranges: readonly ActionRange[] }

/** The node that compacts. */
export const compactionNodeName = 'compaction'

const compactedSchema = z.object({
  text: z.string(),
  compacted: z.array(z.tuple([z.int().positive(), z.int().positive()])).min(1),
})

/** By the first action of a turn: how far it was read, and where its compactions are. */
const scans = new WeakMap<ReadonlyAction, { upTo: number; indexes: number[] }>()

/** The compactions of a turn, in order. Each action is read once, so that a step of a long turn costs what one of a short does. */
const findCompactions = (actions: readonly ReadonlyAction[]): ReadonlyAction[] => {
  const [first] = actions
  if (!first) return []
  const scan = scans.get(first) ?? { upTo: 0, indexes: [] }
  scans.set(first, scan)
  for (; scan.upTo < actions.length; scan.upTo++)
    if (actions[scan.upTo]?.node === compactionNodeName) scan.indexes.push(scan.upTo)
  // an earlier state of the turn has fewer actions
  return scan.indexes.flatMap((index) => actions[index] ?? [])
}

/** The latest compaction of the session, which contains the earlier ones; null while there is none. */
export const findLatestCompaction = ({
  action_history,
}: Pick<RuntimeState, 'action_history'>): Compaction | null => {
  for (let turn = action_history.length - 1; turn >= 0; turn--)
    for (const { id, result } of findCompactions(action_history[turn] ?? []).reverse()) {
      const read = compactedSchema.safeParse(result)
      if (read.success) return { id, text: read.data.text, ranges: read.data.compacted }
    }
  return null
}

/** Whether an action is part of a compaction. */
export const isCompacted = ({ id }: Pick<ReadonlyAction, 'id'>, compacted: Compaction | null): boolean =>
  compacted?.ranges.some(([from, to]) => from <= id && id <= to) ?? false

/** All of these ranges, in order, those that touch as one. */
export const mergeRanges = (ranges: readonly ActionRange[]): ActionRange[] => {
  const merged: [number, number][] = []
  for (const [from, to] of ranges.toSorted((a, b) => a[0] - b[0])) {
    const last = merged.at(-1)
    if (last && from <= last[1] + 1) last[1] = Math.max(last[1], to)
    else merged.push([from, to])
  }
  return merged
}
