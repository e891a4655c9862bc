import type { Graph, Walk } from '../../src/graph/build.ts'
import { createNextOf } from '../../src/graph/leads.ts'
import { route, type Target } from '../../src/graph/route.ts'
import { createVisit, type Visit } from '../../src/graph/visit.ts'

/** The same graph, walked by a loop in place of LangGraph: what is left between the two is what LangGraph costs. */
export const walkPlainly = (graph: Graph): void => {
  const nextOf = createNextOf(graph)
  const visits = new Map<string, Visit>()
  for (const part of [...graph.parts.nodes, ...graph.parts.tools])
    visits.set(part.name, createVisit(part, graph, nextOf))

  const visitOf = ({ run, services, signal }: Walk, { node, call }: Target): Promise<unknown> => {
    const visit = visits.get(node)
    if (!visit) throw new Error(`there is no node "${node}"`)
    return visit(run, call, services, signal)
  }
  graph.walk = async (walk) => {
    while (!walk.run.ended)
      await Promise.all(route(walk.run.actions, true).map((target) => visitOf(walk, target)))
  }
}
