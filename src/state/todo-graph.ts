/** The dependencies of todos as a graph. All functions are linear in todos plus dependencies. */

type TodoNode = { readonly id: string; readonly dependencies: readonly string[] }

/** For each node, by its place in the list, the places of those that depend on it; unknown ids are left out. */
const listDependents = (nodes: readonly TodoNode[]): number[][] => {
  const places = new Map<string, number>()
  for (const [place, node] of nodes.entries()) places.set(node.id, place)
  const dependents: number[][] = nodes.map(() => [])
  for (const [place, node] of nodes.entries())
    for (const id of node.dependencies) dependents[places.get(id) ?? -1]?.push(place)
  return dependents
}

/** Places in an order in which every node comes after its dependencies; those on or behind a cycle are missing. */
const sortByDependency = (dependents: readonly (readonly number[])[]): number[] => {
  const open = new Array<number>(dependents.length).fill(0)
  for (const places of dependents) for (const place of places) open[place] = (open[place] ?? 0) + 1
  const order: number[] = []
  for (const [place, count] of open.entries()) if (count === 0) order.push(place)
  for (const done of order)
    for (const place of dependents[done] ?? []) {
      const left = (open[place] ?? 0) - 1
      open[place] = left
      if (left === 0) order.push(place)
    }
  return order
}

/** One cycle as ids `[a, b, a]`, each depending on the next, the first in list order in front; some are missing in `order`. */
const findCycle = (nodes: readonly TodoNode[], order: readonly number[]): string[] => {
  const placed = new Set(order)
  const stuck = new Map(nodes.filter((_, place) => !placed.has(place)).map((node) => [node.id, node]))
  const path = new Set<string>()
  let at = stuck.keys().next().value
  while (at !== undefined && !path.has(at)) {
    path.add(at)
    at = stuck.get(at)?.dependencies.find((id) => stuck.has(id))
  }
  const walked = [...path]
  const cycle = walked.slice(walked.indexOf(at ?? ''))
  const members = new Set(cycle)
  const first = [...stuck.keys()].find((id) => members.has(id)) ?? ''
  const start = cycle.indexOf(first)
  return [...cycle.slice(start), ...cycle.slice(0, start), first]
}

/**
 * For each node, by its place, the number of nodes on the longest chain that waits for it, itself included;
 * or a cycle, which has none.
 */
export const computeChainLengths = (
  nodes: readonly TodoNode[],
): { ok: true; lengths: number[] } | { ok: false; cycle: string[] } => {
  const dependents = listDependents(nodes)
  const order = sortByDependency(dependents)
  if (order.length < nodes.length) return { ok: false, cycle: findCycle(nodes, order) }
  const lengths = new Array<number>(nodes.length).fill(1)
  for (const place of order.reverse())
    for (const dependent of dependents[place] ?? [])
      lengths[place] = Math.max(lengths[place] ?? 1, 1 + (lengths[dependent] ?? 0))
  return { ok: true, lengths }
}

/** The ids of the nodes that are chosen and of all that depend on them, directly or through others. */
export const findWithDependents = (
  nodes: readonly TodoNode[],
  isChosen: (place: number) => boolean,
): Set<string> => {
  const dependents = listDependents(nodes)
  const reached = new Set([...nodes.keys()].filter(isChosen))
  for (const place of reached) for (const dependent of dependents[place] ?? []) reached.add(dependent)
  return new Set([...reached].map((place) => nodes[place]?.id ?? ''))
}
