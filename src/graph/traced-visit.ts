import { type ErrorCode, errorCodes } from '../state/errors.ts'
import type { ReadonlyAction } from '../state/turn.ts'
import type { AnyNode } from './node.ts'
import type { AnyTool } from './tool.ts'
import type { Visit } from './visit.ts'

/** The same visit, told to the run's tracer. */
export const tracedVisit =
  ({ name, kind }: Pick<AnyNode | AnyTool, 'name' | 'kind'>, visit: Visit): Visit =>
  (run, call, services, signal) =>
    run.tracer.visit({ name, kind, call }, async (note) => {
      const state = await visit(run, call, services, signal)
      const waits = run.suspended.some((one) => one.call.index === call)
      // a visit's state ends with its own action
      const action = waits ? undefined : state.action_history[run.claimed.turn - 1]?.at(-1)
      note({ action_id: action?.id ?? null, code: action ? faultIn(action) : null, waits })
      return state
    })

const codes: ReadonlySet<unknown> = new Set(errorCodes)
const isCode = (value: unknown): value is ErrorCode => codes.has(value)

/** The code of the fault that an action tells, of a tool or of a node. */
const faultIn = ({ result }: Pick<ReadonlyAction, 'result'>): ErrorCode | null => {
  if (result.is_error === true) return isCode(result.code) ? result.code : 'node_failed'
  const { error } = result
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : null
  return isCode(code) ? code : null
}
