import { MasonError } from '../state/errors.ts'
import type { Patch } from '../state/patch.ts'
import {
  commonServices,
  defaultNeeds,
  type ServiceName,
  type Services,
  type VisitServices,
} from '../state/ports/services.ts'
import { type RuntimeState, type StateField, stateFields } from '../state/runtime-state.ts'
import type { GraphInfo, ToolKind } from './definitions.ts'

/**
 * Makes the services of one node or tool: the common ones and those it needs. The others are not there, and reading one
 * throws, naming it. What is returned has the declared ones as its own properties.
 */
export const createServiceView = (
  { name, needs = defaultNeeds }: { name: string; needs?: readonly string[] },
  serviceNames: readonly string[],
): ((services: Services) => VisitServices<ServiceName>) => {
  const isDeclared = (service: string): boolean => [...commonServices, ...needs].includes(service)
  const declared = serviceNames.filter(isDeclared)
  const undeclared = Object.create(Object.prototype)
  for (const service of serviceNames.filter((candidate) => !isDeclared(candidate)))
    Object.defineProperty(undeclared, service, {
      get() {
        throw new MasonError(
          'node_failed',
          `"${name}" used the service ${service}, which it does not declare`,
          { remedy: `add '${service}' to its needs` },
        )
      },
    })
  return (services) => {
    const view = Object.create(undeclared)
    for (const service of declared) view[service] = services[service as keyof Services]
    return view
  }
}

type DeclaredFields = { name: string; reads: readonly StateField[]; writes: readonly string[] }

/** Makes the view of one node: the fields it declares, and a clear error for any other. */
export const createView = ({
  name,
  reads,
}: DeclaredFields): ((state: RuntimeState) => Partial<RuntimeState>) => {
  class View {
    readonly #state: RuntimeState
    constructor(state: RuntimeState) {
      this.#state = state
    }
    static field(view: View, field: StateField): unknown {
      return view.#state[field]
    }
  }
  for (const field of stateFields)
    Object.defineProperty(View.prototype, field, {
      enumerable: true,
      get(this: View) {
        if (reads.includes(field)) return View.field(this, field)
        throw new MasonError('node_failed', `"${name}" read state.${field}, which it does not declare`, {
          remedy: `add '${field}' to its reads`,
        })
      },
    })
  return (state) => new View(state) as unknown as Partial<RuntimeState>
}

type DeclaredNext = {
  kind: 'node' | 'tool'
  name: string
  next?: readonly (string | { tools: ToolKind })[]
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
    const declared = (part.next ?? [target]).some((one) =>
      typeof one === 'string' ? one === target : tool?.kinds.includes(one.tools),
    )
    if (!declared)
      throw new MasonError('node_failed', `"${part.name}" leads to "${target}", which it does not declare`, {
        remedy: `add '${target}' to its next`,
      })
  }
}

/** Throws when a node changes a field it does not declare. */
export const checkWrites = ({ name, writes }: DeclaredFields, patch: Patch): void => {
  for (const field of Object.keys(patch))
    if (!writes.includes(field))
      throw new MasonError('node_failed', `"${name}" changed state.${field}, which it does not declare`, {
        remedy: `add '${field}' to its writes`,
      })
}
