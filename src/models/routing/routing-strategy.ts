import type { MicroPrices, ModelEntry, RouteEntry } from '../ports/model-ports.ts'

/** A model of a route; `entry` is null where the route names an unknown model. */
type Member = { name: string; entry: ModelEntry | null; weight: number }

/** The models that serve a role or category, prepared once per view. */
export type CandidateOrder = {
  strategy: RouteEntry['strategy']
  /** In the order of the route; for `cheapest` from the cheapest on. */
  members: readonly Member[]
  totalWeight: number
  /** The category that they must serve; null: any. */
  category: string | null
}

const sumPrices = ({ input, output }: MicroPrices): number => input + output

/** By input plus output price. Prices in another currency than the first one cannot be compared and come after. */
const sortByPrice = (members: readonly Member[]): Member[] => {
  const currency = members.find(({ entry }) => entry?.prices)?.entry?.prices?.currency
  const rank = ({ entry }: Member): number =>
    !entry?.prices
      ? Number.POSITIVE_INFINITY
      : entry.prices.currency === currency
        ? sumPrices(entry.prices)
        : Number.MAX_VALUE
  // two infinities have no difference
  return [...members].sort((a, b) => (rank(a) === rank(b) ? 0 : rank(a) < rank(b) ? -1 : 1))
}

/** Prepares the members of a route for its strategy. */
export const toCandidateOrder = (
  strategy: RouteEntry['strategy'],
  members: readonly Member[],
  category: string | null,
): CandidateOrder => ({
  strategy,
  members: strategy === 'cheapest' ? sortByPrice(members) : members,
  totalWeight: members.reduce((sum, { weight }) => sum + weight, 0),
  category,
})

/** What the strategies use besides the view. */
export type RoutingLoad = {
  /** From 0 up to but not including 1. */
  random(): number
  /** Calls of this process in flight to a model. */
  inFlight(modelId: string): number
}

/** Returns the models of an order one after the other, each once, then null. The load counts when the next is taken. */
export const createCandidateIterator = (
  { strategy, members, totalWeight }: CandidateOrder,
  load: RoutingLoad,
): (() => Member | null) => {
  switch (strategy) {
    case 'priority':
    case 'cheapest': {
      let next = 0
      return () => members[next++] ?? null
    }
    case 'weighted': {
      let remaining = totalWeight
      return pickEachOnce(members, (isTaken) => {
        let point = load.random() * remaining
        let last = -1
        for (let index = 0; index < members.length; index++) {
          if (isTaken(index)) continue
          last = index
          point -= members[index]?.weight ?? 0
          if (point < 0) break
        }
        remaining -= members[last]?.weight ?? 0
        return last
      })
    }
    case 'least-busy':
      return pickEachOnce(members, (isTaken) => {
        let best = -1
        let fewest = Number.POSITIVE_INFINITY
        for (let index = 0; index < members.length; index++) {
          if (isTaken(index)) continue
          const calls = load.inFlight(members[index]?.entry?.id ?? '')
          if (calls >= fewest) continue
          best = index
          fewest = calls
        }
        return best
      })
    default:
      throw strategy satisfies never
  }
}

/** `pick` returns the index of a member that is not taken, or -1. */
const pickEachOnce = (
  members: readonly Member[],
  pick: (isTaken: (index: number) => boolean) => number,
): (() => Member | null) => {
  let first = -1
  // only for the second pick: most calls need one
  let taken: Uint8Array | undefined
  const isTaken = (index: number): boolean => index === first || taken?.[index] === 1
  return () => {
    const index = pick(isTaken)
    if (first === -1) first = index
    else {
      taken ??= new Uint8Array(members.length)
      taken[index] = 1
    }
    return members[index] ?? null
  }
}
