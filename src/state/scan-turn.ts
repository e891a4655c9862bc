import type { ReadonlyAction } from './turn.ts'

/**
 * Finds the actions of a turn that `isMeant`, in order. What was looked at once is not looked at again, however often
 * it is asked for: a step of a long turn costs what a step of a short one does.
 */
export const createTurnScan = (isMeant: (action: ReadonlyAction) => boolean) => {
  const scans = new WeakMap<ReadonlyAction, { upTo: number; places: number[] }>()
  return (actions: readonly ReadonlyAction[]): ReadonlyAction[] => {
    const [first] = actions
    if (!first) return []
    const scan = scans.get(first) ?? { upTo: 0, places: [] }
    scans.set(first, scan)
    for (; scan.upTo < actions.length; scan.upTo++) {
      const action = actions[scan.upTo]
      if (action && isMeant(action)) scan.places.push(scan.upTo)
    }
    // an earlier state of the turn has not come so far
    return scan.places.flatMap((place) => actions[place] ?? [])
  }
}
