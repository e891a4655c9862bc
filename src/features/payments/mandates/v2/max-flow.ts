/** Arcs looked at before the search gives up: about 20 ms. */
const maxSteps = 1_000_000

/**
 * The largest flow from `supplies` over `edges` (index of a supply, index of a demand; unlimited) to `demands`; null where that
 * takes more than a million steps. Algorithm: Dinic, O(V^2 E); arcs are linked lists in typed arrays, and `arc ^ 1` is the way back.
 */
export const computeMaxFlow = (
  supplies: readonly number[],
  demands: readonly number[],
  edges: readonly (readonly [number, number])[],
): number | null => {
  const sink = supplies.length + demands.length + 1
  const size = 2 * (supplies.length + demands.length + edges.length)
  const target = new Int32Array(size)
  const capacity = new Float64Array(size)
  const following = new Int32Array(size)
  const first = new Int32Array(sink + 1).fill(-1)
  let count = 0
  const addArc = (from: number, to: number, amount: number): void => {
    target[count] = to
    capacity[count] = amount
    following[count] = first[from] as number
    first[from] = count++
  }
  const connect = (from: number, to: number, amount: number): void => {
    addArc(from, to, amount)
    addArc(to, from, 0)
  }
  for (const [i, amount] of supplies.entries()) connect(0, i + 1, amount)
  for (const [i, amount] of demands.entries()) connect(supplies.length + 1 + i, sink, amount)
  for (const [supply, demand] of edges) connect(supply + 1, supplies.length + 1 + demand, Infinity)

  const level = new Int32Array(sink + 1)
  const queue = new Int32Array(sink + 1)
  const path: number[] = []
  let steps = 0
  let total = 0
  for (;;) {
    level.fill(-1)
    level[0] = 0
    queue[0] = 0
    for (let read = 0, end = 1; read < end; read++) {
      const node = queue[read] as number
      for (let arc = first[node] as number; arc !== -1; arc = following[arc] as number) {
        steps++
        const to = target[arc] as number
        if (level[to] !== -1 || capacity[arc] === 0) continue
        level[to] = (level[node] as number) + 1
        queue[end++] = to
      }
    }
    if (level[sink] === -1) return total

    // a blocking flow: each node goes on with the arc where it stopped
    const current = first.slice()
    for (let node = 0; ; ) {
      if (++steps > maxSteps) return null
      const arc = current[node] as number
      if (node === sink) {
        const amount = path.reduce((least, used) => Math.min(least, capacity[used] as number), Infinity)
        for (const used of path) {
          capacity[used] = (capacity[used] as number) - amount
          capacity[used ^ 1] = (capacity[used ^ 1] as number) + amount
        }
        steps += path.length
        total += amount
        path.length = 0
        node = 0
      } else if (arc === -1) {
        const back = path.pop()
        if (back === undefined) break
        node = target[back ^ 1] as number
        current[node] = following[back] as number
      } else if (capacity[arc] === 0 || level[target[arc] as number] !== (level[node] as number) + 1)
        current[node] = following[arc] as number
      else {
        path.push(arc)
        node = target[arc] as number
      }
    }
  }
}
