import type { Graph, GraphRun } from '../../src/graph/build.ts'
import { createDefaultNext } from '../../src/graph/default-next.ts'
import { findNextTargets, type VisitTarget } from '../../src/graph/route.ts'
import { createVisit, type NodeVisit, tracedVisit } from '../../src/graph/visit.ts'

/** The same graph, walked by a loop in place of LangGraph: what is left between the two is what LangGraph costs. */
export const walkPlainly = (graph: Graph): void => {
  const nextOf = createDefaultNext(graph)
  const visits = new Map<string, NodeVisit>()
  for (const part of [...graph.parts.nodes, ...graph.parts.tools])
    visits.set(part.name, tracedVisit(part, createVisit(part, graph, nextOf)))

  const visitOf = ({ run, services, signal }: GraphRun, { node, call }: VisitTarget): Promise<unknown> => {
    const visit = visits.get(node)
    if (!visit) throw new Error(`there is no node "${node}"`)
    return visit(run, call, services, signal)
  }
  graph.walk = async (walk) => {
    while (!walk.run.ended)
      await Promise.all(findNextTargets(walk.run.actions, true).map((target) => visitOf(walk, target)))
  }
}
