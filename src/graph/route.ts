import { findLastFanOut, listFronts, orderedLane, readAnsweredCall, readOpenCall } from '../state/calls.ts'
import type { ReadonlyAction } from '../state/turn.ts'

/** A node to visit next; `call` is the index of the planner's call it answers. */
export type VisitTarget = { node: string; call: number | null }

/**
 * What is next in a turn, by its actions alone: of each lane of the last fan-out the first call that has no answer yet, at its next
 * step, and of the calls that keep their order the first once the others have theirs; when none is left, or a failure has stopped the rest, the `next` of its members. So any worker can resume a run at any time.
 * `entering`: the run was just picked up, nothing is in flight; otherwise the calls of other lanes are.
 */
export const findNextTargets = (actions: readonly ReadonlyAction[], entering: boolean): VisitTarget[] => {
  const last = actions.at(-1)
  if (!last) return [{ node: 'load-session', call: null }]
  const fanOut = findLastFanOut(actions)
  if (!fanOut) return toTargets(last.next)

  const fronts = listFronts(fanOut)
  if (fronts.length > 0) {
    const index = readAnsweredCall(last)?.index ?? readOpenCall(last)
    const own = fanOut.branches.find(({ call }) => call !== null && call.index === index)
    return fronts
      .filter(
        ({ lane }) => entering || last.id === fanOut.id || (own && [own.lane, orderedLane].includes(lane)),
      )
      .map(({ node, call }) => ({ node, call: call?.index ?? null }))
  }
  const isMember = fanOut.answers.includes(last)
  return toTargets(isMember ? fanOut.answers.flatMap((answer) => answer?.next ?? []) : last.next)
}

const toTargets = (next: readonly string[]): VisitTarget[] =>
  [...new Set(next)].map((node) => ({ node, call: null }))
