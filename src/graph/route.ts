import { findLastFanOut, readOpenCall } from '../state/calls.ts'
import type { ReadonlyAction } from '../state/turn.ts'

/** A node to visit next; `call` is the index of the planner's call it answers. */
export type VisitTarget = { node: string; call: number | null }

/**
 * What is next in a turn, by its actions alone: the calls of the last fan-out that have no answer yet, each at its next step;
 * when none is left, the `next` of its members. So any worker can resume a run at any time.
 * `entering`: the run was just picked up, nothing is in flight; otherwise the siblings of a parallel fan-out are.
 */
export const findNextTargets = (actions: readonly ReadonlyAction[], entering: boolean): VisitTarget[] => {
  const last = actions.at(-1)
  if (!last) return [{ node: 'load-session', call: null }]
  const fanOut = findLastFanOut(actions)
  if (!fanOut) return toTargets(last.next)

  const pending = fanOut.branches.filter((_, index) => !fanOut.answers[index])
  if (pending.length > 0) {
    const targets = pending.map(({ node, call }) => ({ node, call: call?.index ?? null }))
    if (fanOut.block === 'sequential') return targets.slice(0, 1)
    if (entering || last.id === fanOut.id) return targets
    const open = readOpenCall(last)
    return open === null ? [] : targets.filter(({ call }) => call === open)
  }
  const isMember = fanOut.answers.includes(last)
  return toTargets(isMember ? fanOut.answers.flatMap((answer) => answer?.next ?? []) : last.next)
}

const toTargets = (next: readonly string[]): VisitTarget[] =>
  [...new Set(next)].map((node) => ({ node, call: null }))
