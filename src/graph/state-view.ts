import { MasonError } from '../state/errors.ts'
import type { Patch } from '../state/patch.ts'
import {
  commonServices,
  defaultNeeds,
  type ServiceName,
  type Services,
  type VisitServices,
} from '../state/ports/services.ts'
import { type RuntimeState, stateFields } from '../state/runtime-state.ts'
import type { DeclaredTarget, GraphInfo } from './definitions.ts'

const createUndeclaredError = (part: string, act: string, item: string, list: string): MasonError =>
  new MasonError('node_failed', `"${part}" ${act}, which it does not declare`, {
    remedy: `add '${item}' to its ${list}`,
  })

/** Makes views that have the declared ones of these properties; reading one of the others throws. */
const createViewer = <Source extends object, View>(
  names: readonly string[],
  isDeclared: (name: string) => boolean,
  createError: (name: string) => MasonError,
  { enumerable }: { enumerable: boolean },
): ((source: Source) => View) => {
  const guard = {}
  for (const name of names.filter((one) => !isDeclared(one)))
    Object.defineProperty(guard, name, {
      get() {
        throw createError(name)
      },
    })
  const declared = names.filter(isDeclared)
  return (source) => {
    const view = Object.create(guard)
    for (const name of declared)
      Object.defineProperty(view, name, { enumerable, value: Reflect.get(source, name) })
    return view
  }
}

/**
 * Makes the services of one node or tool: the common ones and those it needs. The others are not there, and reading one
 * throws, naming it. What is returned has the declared ones as its own properties.
 */
export const createServiceView = (
  { name, needs = defaultNeeds }: { name: string; needs?: readonly string[] },
  serviceNames: readonly string[],
) =>
  createViewer<Services, VisitServices<ServiceName>>(
    serviceNames,
    (service) => [...commonServices, ...needs].includes(service),
    (service) => createUndeclaredError(name, `used the service ${service}`, service, 'needs'),
    { enumerable: true },
  )

type DeclaredFields = { name: string; reads: readonly string[]; writes: readonly string[] }

/** Makes the view of one node: the fields it declares, and a clear error for any other. */
export const createView = ({ name, reads }: DeclaredFields) =>
  createViewer<RuntimeState, Partial<RuntimeState>>(
    stateFields,
    (field) => reads.includes(field),
    (field) => createUndeclaredError(name, `read state.${field}`, field, 'reads'),
    { enumerable: false },
  )

type DeclaredNext = {
  kind: 'node' | 'tool'
  name: string
  next?: readonly DeclaredTarget[]
  steps?: readonly string[] | undefined
}

/**
 * Throws when an action leads to a missing part, or a node to one that it does not declare: the picture of the graph is
 * what happens. `end` may follow any.
 */
export const checkNext = (part: DeclaredNext, next: readonly string[], graph: GraphInfo): void => {
  for (const target of next) {
    if (target === 'end') continue
    const tool = graph.tool(target)
    if (!tool && !graph.hasNode(target))
      throw new MasonError('node_failed', `"${part.name}" leads to "${target}", which is not there`, {
        remedy: 'name a node or tool of the graph in next',
      })
    if (tool?.kinds.includes('step') && (next.length > 1 || !part.steps?.includes(target)))
      throw createUndeclaredError(part.name, `leads to the step "${target}"`, target, 'steps')
    const declared = (part.next ?? [target]).find((entry) =>
      typeof entry === 'string'
        ? entry === target
        : 'one' in entry
          ? entry.one.includes(target)
          : tool?.kinds.includes(entry.tools),
    )
    if (declared === undefined) throw createUndeclaredError(part.name, `leads to "${target}"`, target, 'next')
    if (next.length > 1 && typeof declared === 'object' && 'one' in declared)
      throw new MasonError('node_failed', `"${part.name}" leads to "${target}" and to others at once`, {
        remedy: `lead to "${target}" alone, or name it outside of { one: […] }`,
      })
  }
}

/** Throws when a node changes a field it does not declare. */
export const checkWrites = ({ name, writes }: DeclaredFields, patch: Patch): void => {
  for (const field of Object.keys(patch))
    if (!writes.includes(field)) throw createUndeclaredError(name, `changed state.${field}`, field, 'writes')
}
