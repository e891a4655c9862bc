import { defaultNext, lastPrepareTool, listNextTargets } from './default-next.ts'
import type { AnyNode, AnyTool, ToolKind } from './definitions.ts'
import { describeTarget, type GraphParts, toolKinds } from './graph-parts.ts'
import type { VisitTarget } from './route.ts'
import type { RouterNodes } from './router.ts'

/** The graph for people and for LangGraph, made of the definitions it is built from: never drawn by hand. */

/** The nodes of LangGraph, with every edge that a definition allows. The tools of a kind are one, so that a new tool changes nothing here. */
export const listRouterNodes = (parts: GraphParts): RouterNodes => {
  const tools = new Map(parts.tools.map((tool) => [tool.name, tool]))
  const nodeOf = ({ node, call }: VisitTarget): string => {
    const kinds = tools.get(node)?.kinds
    if (!kinds) return toNodeName(node)
    const kind = kinds.find((one) => isCallKind(one) === (call !== null)) ?? kinds[0] ?? 'call'
    return describeTarget({ tools: kind })
  }
  const toNodes = (next: readonly (string | { tools: ToolKind })[]): string[] =>
    next.map((one) => (typeof one === 'string' ? nodeOf({ node: one, call: null }) : describeTarget(one)))
  const toolEnds = (kind: ToolKind): string[] => [
    ...toNodes(defaultNext[kind]),
    ...(kind === 'prepare' && tools.has(lastPrepareTool) ? [describeTarget({ tools: 'output' })] : []),
    ...(parts.tools.some(({ kinds, steps = [] }) => kinds.includes(kind) && steps.length > 0)
      ? [describeTarget({ tools: 'step' })]
      : []),
  ]
  const nodes = [
    ...inVisitOrder(parts)
      .filter((part) => part.kind === 'node')
      .map((node) => ({ name: toNodeName(node.name), ends: toNodes(listNextTargets(node)) })),
    ...toolKinds
      .filter((kind) => parts.tools.some(({ kinds }) => kinds.includes(kind)))
      .map((kind) => ({ name: describeTarget({ tools: kind }), ends: toolEnds(kind) })),
  ]
  const known = new Set(nodes.map(({ name }) => name))
  return {
    nodes: nodes.map(({ name, ends }) => ({
      name,
      ends: [...new Set(ends)].filter((one) => known.has(one)),
    })),
    nodeOf,
  }
}

/** Mermaid reserves `end`. */
const toNodeName = (name: string): string => (name === 'end' ? 'end of run' : name)

const isCallKind = (kind: ToolKind): boolean => kind === 'call' || kind === 'step'

/** Nodes and tools in the order in which a run visits them. */
export const inVisitOrder = (parts: GraphParts): (AnyNode | AnyTool)[] => {
  const all = new Map([...parts.nodes, ...parts.tools].map((part) => [part.name, part]))
  const order = new Set(['load-session'])
  for (const name of order) {
    const part = all.get(name)
    for (const next of part ? listNextTargets(part) : [])
      if (typeof next === 'string') order.add(next)
      else for (const tool of toolsIn(parts, next.tools)) order.add(tool.name)
  }
  return [...order, ...[...all.keys()].sort()].flatMap((name) => {
    const part = all.get(name)
    all.delete(name)
    return part ? [part] : []
  })
}

const byName = (a: { name: string }, b: { name: string }): number => (a.name < b.name ? -1 : 1)

const toolsIn = ({ tools }: GraphParts, kind: ToolKind): AnyTool[] =>
  tools.filter((tool) => tool.kinds.includes(kind) && tool.name !== lastPrepareTool).sort(byName)

/** Nodes and tools as the API shows them, in the order in which a run visits them, and where each may lead. */
export const describeParts = (parts: GraphParts) =>
  inVisitOrder(parts).map((part) => ({
    name: part.name,
    kind: part.kind,
    kinds: part.kind === 'tool' ? [...part.kinds] : [],
    description: part.description,
    reads: [...part.reads],
    writes: [...part.writes],
    next: [
      ...new Set(
        listNextTargets(part).flatMap((next) =>
          typeof next === 'string' ? [next] : toolsIn(parts, next.tools).map(({ name }) => name),
        ),
      ),
    ],
  }))
