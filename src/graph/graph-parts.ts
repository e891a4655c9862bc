import { listNextTargets } from './default-next.ts'
import type { AnyNode, AnyTool, ToolKind } from './definitions.ts'

/** The nodes and tools a graph is built from. */
export type GraphParts = { nodes: readonly AnyNode[]; tools: readonly AnyTool[] }

/** Nodes that the processor itself relies on. */
const requiredNodes = ['load-session', 'planner', 'reflection', 'end']

/** The kinds of tools, as a run comes to them. */
export const toolKinds = ['prepare', 'call', 'step', 'output'] as const satisfies readonly ToolKind[]

/** Why these parts make no graph, each error with the part and what to do; empty when they do. `files`: where each is. */
export const findPartErrors = (
  { nodes, tools }: GraphParts,
  files: ReadonlyMap<AnyNode | AnyTool, string> = new Map(),
): string[] => {
  const parts = [...nodes, ...tools]
  const names = parts.map((part) => part.name)
  const known = new Set(names)
  const twice = new Set(names.filter((name, at) => names.indexOf(name) !== at))
  const describeFiles = (name: string): string => {
    const paths = parts.filter((part) => part.name === name).flatMap((part) => files.get(part) ?? [])
    return paths.length === 0 ? '' : `, in ${paths.join(' and ')}`
  }
  return [
    ...[...twice].map((name) => `"${name}" is defined twice${describeFiles(name)}; rename one of them`),
    ...requiredNodes
      .filter((name) => !nodes.some((node) => node.name === name))
      .map((name) => `the node "${name}" is missing; restore src/nodes/**/${name}.node.ts`),
    ...nodes.flatMap((node) => [
      ...findNextErrors(node, known),
      ...findJoinErrors(node, [...nodes, ...tools]),
    ]),
    ...tools.flatMap((tool) => findStepErrors(tool, tools)),
  ]
}

const findNextErrors = (node: AnyNode, known: ReadonlySet<string>): string[] =>
  listNextTargets(node).flatMap((next) =>
    typeof next === 'string' && !known.has(next)
      ? [`node "${node.name}" leads to "${next}", which is not there; correct its next`]
      : [],
  )

/** A run goes on after several nodes at once where all of them lead. With two such places one of them would be lost. */
const findJoinErrors = (node: AnyNode, parts: readonly (AnyNode | AnyTool)[]): string[] => {
  const branches = parts.filter(({ name }) => node.next.includes(name))
  const targets = branches.map(
    (branch) => listNextTargets(branch).map(describeTarget).join(', ') || 'nowhere',
  )
  const [join] = targets
  if (branches.length < 2 || (targets.every((target) => target === join) && !/^nowhere$|, /.test(join ?? '')))
    return []
  const leads = branches.map(({ name }, at) => `"${name}" to ${targets[at]}`).join(', ')
  const names = branches.map(({ name }) => `'${name}'`).join(', ')
  return [
    `node "${node.name}" can visit several nodes at once that do not lead to one node: ${leads}; ` +
      `give them the same single next, or write { one: [${names}] } where it visits one at a time`,
  ]
}

/** The name of a node, or of all tools of a kind. */
export const describeTarget = (target: string | { tools: ToolKind }): string =>
  typeof target === 'string' ? target : `${target.tools} tools`

/** A step belongs to a call: no planner, turn or answer begins with one. */
const findStepErrors = ({ name, kinds: own, steps = [] }: AnyTool, tools: readonly AnyTool[]): string[] => [
  ...(own.includes('step') && own.length > 1
    ? [`tool "${name}" is a step and of other kinds too; make the step a tool of its own`]
    : []),
  ...(steps.length > 0 && !own.some((kind) => kind === 'call' || kind === 'step')
    ? [`tool "${name}" has steps and is not a call tool; give it the kind call, or remove its steps`]
    : []),
  ...steps
    .filter((step) => !tools.some((tool) => tool.name === step && tool.kinds.includes('step')))
    .map(
      (step) =>
        `tool "${name}" leads to the step "${step}", which is not there; define it as a tool of the kind step`,
    ),
]

/** Each service that a node or tool needs and that is not there, with what to do. */
export const findNeedErrors = ({ nodes, tools }: GraphParts, serviceNames: readonly string[]): string[] =>
  [...nodes, ...tools].flatMap(({ kind, name, needs = [] }) =>
    needs
      .filter((service: string) => !serviceNames.includes(service))
      .map(
        (service: string) =>
          `${kind} "${name}" needs the service "${service}", which is not there; remove it from its needs, name one that is ` +
          `there (${serviceNames.join(', ')}), or define it in a *.run-service.ts`,
      ),
  )
