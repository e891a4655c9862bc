import { patchSchema } from '../state/patch.ts'
import { stateFields } from '../state/runtime-state.ts'
import type { AnyNode } from './node.ts'
import type { AnyTool } from './tool.ts'

/** The nodes and tools a graph is built from. */
export type Parts = { nodes: readonly AnyNode[]; tools: readonly AnyTool[] }

/** Nodes that the processor itself relies on. */
const requiredNodes = ['load-session', 'planner', 'reflection', 'end']
/** The planner's control call, and marks of the router. */
const reservedNames = new Set(['update_todos', '__start__', '__end__'])
const kinds = ['prepare', 'call', 'output']
const fields: readonly string[] = stateFields
const patchFields = Object.keys(patchSchema.shape)

/** All that keeps these parts from making a graph, each fault with the part and what to do; empty when nothing does. */
export const partFaults = ({ nodes, tools }: Parts): string[] => {
  const names = [...nodes, ...tools].map((part) => part.name)
  const known = new Set(names)
  const twice = new Set(names.filter((name, at) => names.indexOf(name) !== at))
  return [
    ...[...twice].map((name) => `"${name}" is defined twice; rename one of them`),
    ...requiredNodes
      .filter((name) => !nodes.some((node) => node.name === name))
      .map((name) => `the node "${name}" is missing; restore src/nodes/**/${name}.node.ts`),
    ...nodes.flatMap((node) => [...nextFaults(node, known), ...fieldFaults(node)]),
    ...tools.flatMap((tool) => [...toolFaults(tool), ...fieldFaults(tool)]),
  ]
}

const nextFaults = (node: AnyNode, known: ReadonlySet<string>): string[] =>
  node.next.flatMap((next: AnyNode['next'][number]) =>
    typeof next === 'string' && !known.has(next)
      ? [`node "${node.name}" leads to "${next}", which is not there; mend its next`]
      : [],
  )

const toolFaults = (tool: AnyTool): string[] => {
  const faults: string[] = []
  if (tool.kinds.length === 0) faults.push(`tool "${tool.name}" has no kind; name one of ${kinds.join(', ')}`)
  for (const kind of tool.kinds)
    if (!kinds.includes(kind))
      faults.push(`tool "${tool.name}" has the unknown kind "${kind}"; the kinds are ${kinds.join(', ')}`)
  if (reservedNames.has(tool.name)) faults.push(`tool "${tool.name}" has a reserved name; choose another`)
  else if (!/^[a-z][a-z0-9_-]{0,63}$/.test(tool.name))
    faults.push(`tool "${tool.name}" needs a name of a-z, 0-9, _ and - that starts with a letter`)
  return faults
}

const fieldFaults = ({ kind, name, reads, writes }: AnyNode | AnyTool): string[] => [
  ...reads
    .filter((field: string) => !fields.includes(field))
    .map((field: string) => `${kind} "${name}" reads "${field}", which is no field of the state`),
  ...writes
    .filter((field: string) => !patchFields.includes(field))
    .map((field: string) => `${kind} "${name}" writes "${field}", which no patch can change`),
]
