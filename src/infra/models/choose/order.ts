import type { MicroPrices, ModelEntry, RouteEntry } from '../ports.ts'

/** A model of a route; `entry` is null where the route names one that there is not. */
type Member = { name: string; entry: ModelEntry | null; weight: number }

/** The models that serve a role or category, made ready once a view. */
export type Line = {
  strategy: RouteEntry['strategy']
  /** In the order of the route; for `cheapest` from the cheapest on. */
  members: readonly Member[]
  totalWeight: number
  /** The category they must stand in for; null: any. */
  category: string | null
}

const priceOf = ({ input, output }: MicroPrices): number => input + output

/** By input plus output price; what is priced in another currency than the first one cannot be compared and comes after. */
const cheapestFirst = (members: readonly Member[]): Member[] => {
  const currency = members.find(({ entry }) => entry?.prices)?.entry?.prices?.currency
  const rank = ({ entry }: Member): number =>
    !entry?.prices
      ? Number.POSITIVE_INFINITY
      : entry.prices.currency === currency
        ? priceOf(entry.prices)
        : Number.MAX_VALUE
  // two infinities have no difference
  return [...members].sort((a, b) => (rank(a) === rank(b) ? 0 : rank(a) < rank(b) ? -1 : 1))
}

export const lineOf = (
  strategy: RouteEntry['strategy'],
  members: readonly Member[],
  category: string | null,
): Line => ({
  strategy,
  members: strategy === 'cheapest' ? cheapestFirst(members) : members,
  totalWeight: members.reduce((sum, { weight }) => sum + weight, 0),
  category,
})

/** What the strategies look at beside the view. */
export type Load = {
  /** From 0 up to but not including 1. */
  random(): number
  /** Calls of this process that are under way to a model. */
  inFlight(modelId: string): number
}

/** Gives the models of a line one after the other, each once; looks at the load only when it is asked for the next. */
export const walk = ({ strategy, members, totalWeight }: Line, load: Load): (() => Member | null) => {
  switch (strategy) {
    case 'priority':
    case 'cheapest': {
      let next = 0
      return () => members[next++] ?? null
    }
    case 'weighted': {
      let left = totalWeight
      return eachOnce(members, (isTaken) => {
        let point = load.random() * left
        let last = -1
        for (let index = 0; index < members.length; index++) {
          if (isTaken(index)) continue
          last = index
          point -= members[index]?.weight ?? 0
          if (point < 0) break
        }
        left -= members[last]?.weight ?? 0
        return last
      })
    }
    case 'least-busy':
      return eachOnce(members, (isTaken) => {
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

/** `pick` gives the index of one that is not taken, or -1. */
const eachOnce = (
  members: readonly Member[],
  pick: (isTaken: (index: number) => boolean) => number,
): (() => Member | null) => {
  let first = -1
  // made for the second pick only: most calls need one
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
