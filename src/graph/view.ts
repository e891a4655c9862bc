import { MasonError } from '../state/errors.ts'
import type { Patch } from '../state/patch.ts'
import { type RuntimeState, type StateField, stateFields } from '../state/runtime-state.ts'

type Part = { name: string; reads: readonly StateField[]; writes: readonly string[] }

/** Makes the view of one node: the fields it declares, and a clear fault for any other. */
export const createView = ({ name, reads }: Part): ((state: RuntimeState) => Partial<RuntimeState>) => {
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

/** Throws when a node changes a field it does not declare. */
export const checkWrites = ({ name, writes }: Part, patch: Patch): void => {
  for (const field of Object.keys(patch))
    if (!writes.includes(field))
      throw new MasonError('node_failed', `"${name}" changed state.${field}, which it does not declare`, {
        remedy: `add '${field}' to its writes`,
      })
}
