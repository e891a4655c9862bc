import type { z } from 'zod'
import { toModelSchema } from '../state/model-schema.ts'
import { patchSchema } from '../state/patch.ts'
import { stateFields } from '../state/runtime-state.ts'
import { listNextTargets } from './default-next.ts'
import type { AnyNode, AnyTool, ToolKind } from './definitions.ts'
import { describeEffects } from './tool-effects.ts'

/** The nodes and tools a graph is built from. */
export type GraphParts = { nodes: readonly AnyNode[]; tools: readonly AnyTool[] }

/** Nodes that the processor itself relies on. */
const requiredNodes = ['load-session', 'planner', 'reflection', 'end']
/** The planner's control calls, and marks of the router. */
const reservedNames = new Set(['update_todos', 'finish', '__start__', '__end__'])
/** The kinds of tools, as a run comes to them. */
export const toolKinds: readonly ToolKind[] = ['prepare', 'call', 'step', 'output']
const fields: readonly string[] = stateFields
const patchFields = Object.keys(patchSchema.shape)

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
      ...findFieldErrors(node),
    ]),
    ...tools.flatMap((tool) => [
      ...findToolErrors(tool),
      ...findDialogueErrors(tool),
      ...findStepErrors(tool, tools),
      ...findFieldErrors(tool),
    ]),
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

const findToolErrors = (tool: AnyTool): string[] => {
  const errors: string[] = []
  if (!['none', 'read', 'write', 'varies'].includes(describeEffects(tool)))
    errors.push(
      `tool "${tool.name}" has the effects "${tool.effects}"; write none, read, write or a function of the arguments`,
    )
  if (tool.pure === true && tool.effects !== undefined && tool.effects !== 'none')
    errors.push(`tool "${tool.name}" is pure and has other effects; remove one of both`)
  if (tool.kinds.length === 0)
    errors.push(`tool "${tool.name}" has no kind; name one of ${toolKinds.join(', ')}`)
  for (const kind of tool.kinds)
    if (!toolKinds.includes(kind))
      errors.push(`tool "${tool.name}" has the unknown kind "${kind}"; the kinds are ${toolKinds.join(', ')}`)
  if (reservedNames.has(tool.name)) errors.push(`tool "${tool.name}" has a reserved name; choose another`)
  else if (!/^[a-z][a-z0-9_-]{0,63}$/.test(tool.name))
    errors.push(`tool "${tool.name}" needs a name of a-z, 0-9, _ and - that starts with a letter`)
  return errors
}

/** What the language of the dialogue has for itself, so that no server and no call tool can have such a name. */
const dialogueTags = new Set(['think', 'answer', 'result', 'execute_tools', 'parallel', 'sequential'])

const findDialogueErrors = ({ name, kinds: own, input, server, exclusive, raw }: AnyTool): string[] => {
  const errors: string[] = []
  const isCall = own.includes('call')
  for (const [field, value] of Object.entries({ server, exclusive, raw }))
    if (value !== undefined && !isCall)
      errors.push(
        `tool "${name}" has ${field} and is not a call tool; give it the kind call, or remove its ${field}`,
      )
  if (isCall && dialogueTags.has(name))
    errors.push(`tool "${name}" has the name of a tag of the dialogue; choose another`)
  if (server !== undefined && (!/^[a-z][a-z0-9_]{0,63}$/.test(server) || dialogueTags.has(server)))
    errors.push(
      `tool "${name}" has the server "${server}"; name one of a-z, 0-9 and _ that starts with a letter and is not a tag of the dialogue`,
    )
  if (exclusive === '')
    errors.push(`tool "${name}" is exclusive for nothing; name the resource, or remove exclusive`)
  if (raw === undefined) return errors
  const fields = Object.keys(toModelSchema(input as z.ZodType, 'input').properties ?? {})
  if (!fields.includes(raw.field))
    errors.push(
      `tool "${name}" has its raw body in "${raw.field}"; name a field of its input: ${fields.join(', ') || 'it has none'}`,
    )
  if (raw.language !== undefined && raw.language !== 'python')
    errors.push(`tool "${name}" has a raw body in the language "${raw.language}"; the only one is python`)
  return errors
}

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

const findFieldErrors = ({ kind, name, reads, writes }: AnyNode | AnyTool): string[] => [
  ...reads
    .filter((field: string) => !fields.includes(field))
    .map((field: string) => `${kind} "${name}" reads "${field}", which is not a field of the state`),
  ...writes
    .filter((field: string) => !patchFields.includes(field))
    .map((field: string) => `${kind} "${name}" writes "${field}", which no patch can change`),
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
