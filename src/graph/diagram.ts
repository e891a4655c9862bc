import { defaultNext, lastPrepareTool, listNextTargets } from './default-next.ts'
import type { AnyNode, AnyTool, ToolKind } from './definitions.ts'
import type { GraphParts } from './graph-parts.ts'

/** The graph for people, made of the definitions it is built from: never drawn by hand. */

/** A group of tools is one box: the picture stays the same when a tool is added. */
const groups: Record<ToolKind, { id: string; title: string; label: string }> = {
  prepare: { id: 'prepare_tools', title: 'prepare tools', label: 'those with work' },
  call: { id: 'call_tools', title: 'call tools', label: 'calls' },
  step: { id: 'step_tools', title: 'step tools', label: 'next step' },
  output: { id: 'output_tools', title: 'output tools', label: 'finishes' },
}
const groupKinds = Object.keys(groups) as ToolKind[]

/** A Mermaid flowchart: every node, one box for each kind of tools, and every edge that a definition allows. */
export const drawGraph = (parts: GraphParts): string => {
  const nodes = inVisitOrder(parts).filter((part) => part.kind === 'node')
  const kinds = groupKinds.filter((kind) => toolsIn(parts, kind).length > 0)
  const edges = [
    ...nodes.flatMap((node) => nodeEdges(node, parts)),
    ...kinds.flatMap((kind) =>
      defaultNext[kind]
        .filter((name) => parts.nodes.some((node) => node.name === name))
        .map((name) => edge(groups[kind].id, toId(name))),
    ),
    ...parts.tools.flatMap(({ kinds: own, steps = [] }) =>
      steps.length === 0 ? [] : own.map((kind) => edge(groups[kind].id, groups.step.id, groups.step.label)),
    ),
    ...(parts.tools.some(({ name }) => name === lastPrepareTool)
      ? [edge(groups.prepare.id, groups.output.id, 'answers at once')]
      : []),
  ]
  return [
    'flowchart TD',
    `  start((" ")) --> ${toId('load-session')}`,
    ...nodes.map(({ name }) => `  ${toId(name)}${name === 'end' ? '(((end)))' : `["${name}"]`}`),
    ...kinds.map((kind) => `  ${groups[kind].id}(["${groups[kind].title}"])`),
    ...[...new Set(edges)].map((line) => `  ${line}`),
  ].join('\n')
}

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

/** Mermaid reserves `end` and does not allow dashes. */
const toId = (name: string): string => `${name.replaceAll('-', '_')}_`

const edge = (from: string, to: string, label?: string): string =>
  label ? `${from} -- ${label} --> ${to}` : `${from} --> ${to}`

const nodeEdges = (node: AnyNode, parts: GraphParts): string[] =>
  listNextTargets(node).flatMap((next) => {
    if (typeof next === 'string') return [edge(toId(node.name), toId(next))]
    const { id, label } = groups[next.tools]
    return toolsIn(parts, next.tools).length > 0 ? [edge(toId(node.name), id, label)] : []
  })

/** The graph as the API shows it: nodes and tools in the order in which a run visits them, and where each may lead. */
export const describeParts = (parts: GraphParts) => ({
  nodes: inVisitOrder(parts).map((part) => ({
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
  })),
  mermaid: drawGraph(parts),
})
