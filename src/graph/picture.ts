import { stateFields } from '../state/runtime-state.ts'
import type { Parts } from './check-parts.ts'
import { lastToPrepare, leadsOf } from './leads.ts'
import type { AnyNode, ToolKind } from './node.ts'
import type { AnyTool } from './tool.ts'

/** The graph for people, made of the definitions it is built from: never drawn by hand. */

const groups: Record<ToolKind, { id: string; title: string; label: string }> = {
  prepare: { id: 'prepare_tools', title: 'prepare tools, side by side', label: 'those with work' },
  call: { id: 'call_tool', title: 'call-tool', label: 'calls' },
  output: { id: 'output_tools', title: 'output tools', label: 'finishes' },
}
const groupKinds = Object.keys(groups) as ToolKind[]

/** A Mermaid flowchart: nodes, one group of tools for each kind, and every edge that a definition allows. */
export const mermaidOf = (parts: Parts): string => {
  const nodes = inOrder(parts).filter((part) => part.kind === 'node')
  const byKind = groupKinds.map((kind) => ({ kind, tools: toolsOf(parts, kind) }))
  const filled = byKind.filter(({ tools }) => tools.length > 0)
  const last = parts.tools.filter((tool) => tool.name === lastToPrepare)
  const edges = [
    ...nodes.flatMap((node) => nodeEdges(node, parts)),
    ...filled.flatMap(({ kind }) =>
      leadsOf[kind].filter((name) => has(parts, name)).map((name) => edge(groups[kind].id, idOf(name))),
    ),
    ...last.flatMap(({ name }) => [
      edge(idOf(name), idOf('planner')),
      edge(idOf(name), groups.output.id, 'answers at once'),
    ]),
  ]
  return [
    'flowchart TD',
    `  start((" ")) --> ${idOf('load-session')}`,
    ...nodes.map(({ name }) => `  ${idOf(name)}${name === 'end' ? '(((end)))' : `["${name}"]`}`),
    ...last.map(({ name }) => `  ${idOf(name)}(["${name}"])`),
    ...filled.flatMap(({ kind, tools }) => groupLines(kind, tools)),
    ...[...new Set(edges)].map((line) => `  ${line}`),
  ].join('\n')
}

/** Nodes and tools in the order in which a run comes to them. */
const inOrder = (parts: Parts): (AnyNode | AnyTool)[] => {
  const all = new Map([...parts.nodes, ...parts.tools].map((part) => [part.name, part]))
  const order = new Set(['load-session'])
  for (const name of order) {
    const part = all.get(name)
    for (const next of part ? nextOf(part) : [])
      if (typeof next === 'string') order.add(next)
      else for (const tool of toolsOf(parts, next.tools)) order.add(tool.name)
  }
  return [...order, ...[...all.keys()].sort()].flatMap((name) => {
    const part = all.get(name)
    all.delete(name)
    return part ? [part] : []
  })
}

const nextOf = (part: AnyNode | AnyTool): AnyNode['next'] =>
  part.kind === 'node'
    ? part.next
    : part.name === lastToPrepare
      ? ['planner']
      : part.kinds.flatMap((kind) => leadsOf[kind])

const byName = (a: { name: string }, b: { name: string }): number => (a.name < b.name ? -1 : 1)

const toolsOf = ({ tools }: Parts, kind: ToolKind): AnyTool[] =>
  tools.filter((tool) => tool.kinds.includes(kind) && tool.name !== lastToPrepare).sort(byName)

const has = ({ nodes, tools }: Parts, name: string): boolean =>
  [...nodes, ...tools].some((part) => part.name === name)

/** Mermaid takes `end` for a word of its own, and no dashes. */
const idOf = (name: string): string => `${name.replaceAll('-', '_')}_`

const edge = (from: string, to: string, label?: string): string =>
  label ? `${from} -- ${label} --> ${to}` : `${from} --> ${to}`

const nodeEdges = (node: AnyNode, parts: Parts): string[] =>
  node.next.flatMap((next: AnyNode['next'][number]) => {
    if (typeof next === 'string') return [edge(idOf(node.name), idOf(next))]
    const { id, label } = groups[next.tools]
    return toolsOf(parts, next.tools).length > 0 ? [edge(idOf(node.name), id, label)] : []
  })

const groupLines = (kind: ToolKind, tools: readonly AnyTool[]): string[] => [
  `  subgraph ${groups[kind].id}["${groups[kind].title}"]`,
  ...tools.map(({ name }) => `    ${kind}_${idOf(name)}(["${name}"])`),
  '  end',
]

/** A Markdown table: which fields of the state each node and tool sees, and which it changes. */
export const fieldsTableOf = (parts: Parts): string => {
  const rows = inOrder(parts).map((part) =>
    rowOf(part, part.kind === 'node' ? 'node' : `${part.kinds.join(', ')} tool`),
  )
  return ['| node or tool | kind | reads | writes |', '|---|---|---|---|', ...rows].join('\n')
}

const rowOf = ({ name, reads, writes }: AnyNode | AnyTool, kind: string): string =>
  `| \`${name}\` | ${kind} | ${fieldList(reads)} | ${fieldList(writes)} |`

const fieldList = (fields: readonly string[]): string => {
  if (fields.length === stateFields.length) return 'everything'
  if (fields.length === 0) return '–'
  return stateFields
    .filter((field) => fields.includes(field))
    .map((field) => `\`${field}\``)
    .join(' ')
}

/** The text with what stands between `<!-- name:begin -->` and `<!-- name:end -->` replaced. Throws without the marks. */
export const between = (text: string, name: string, content: string): string => {
  const [begin, end] = [`<!-- ${name}:begin -->`, `<!-- ${name}:end -->`]
  const [from, to] = [text.indexOf(begin), text.indexOf(end)]
  if (from < 0 || to < from) throw new Error(`the text has no ${begin} … ${end}`)
  return `${text.slice(0, from + begin.length)}\n${content}\n${text.slice(to)}`
}

/** A README with picture and table of these parts. */
export const withPicture = (readme: string, parts: Parts): string =>
  between(
    between(readme, 'graph', `\`\`\`mermaid\n${mermaidOf(parts)}\n\`\`\``),
    'fields',
    `${fieldsTableOf(parts)}\n\nEach also lays one action, which adds to \`action_history\` and \`usage\`.`,
  )
