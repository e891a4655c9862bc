import { foldActions } from '../../src/state/fold.ts'
import type { Patch } from '../../src/state/patch.ts'
import type { Action, ActionBody, Json, RuntimeState, Todo } from '../../src/state/runtime-state.ts'
import { noUsage } from '../../src/state/token-usage.ts'

/** Hand-made actions and states for tests of pure functions. */

export const body = (node: string, more: Partial<ActionBody> = {}): ActionBody => ({
  node,
  preparation: '',
  summary: node,
  result: {},
  context: null,
  relevance: 0.5,
  usage: noUsage,
  next: [],
  ...more,
})

export const action = (id: number, node: string, more: Partial<ActionBody> = {}): Action => ({
  id,
  ...body(node, more),
})

export type Called = {
  tool: string
  args?: Record<string, Json>
  id?: string
  todos?: string[]
  exclusive?: string
}

/** A planner's action that decides on these calls. */
export const plan = (
  calls: readonly Called[],
  block: 'parallel' | 'sequential' = 'parallel',
  on_failure?: 'stop' | 'go_on',
): ActionBody =>
  body('planner', {
    result: {
      calls: calls.map(({ tool, args = {}, id, todos, exclusive }, index) => ({
        index,
        id: id ?? `call_${index}`,
        tool,
        args,
        ...(todos && { todos }),
        ...(exclusive && { exclusive }),
      })),
      block,
      ...(on_failure && { on_failure }),
    },
    next: calls.map(({ tool }) => tool),
  })

/** The action that a tool appends for one of these calls. */
export const answer = (tool: string, index: number, result: Record<string, Json> = {}): ActionBody =>
  body(tool, { result: { ...result, call: { index, id: `call_${index}` } }, next: ['reflection'] })

/** The state of one turn that these actions add up to; a pair has a patch of its own. */
export const stateOf = (
  bodies: readonly (ActionBody | [ActionBody, Patch])[],
  prompt = 'What now?',
): RuntimeState =>
  foldActions(
    bodies.map((entry, at) => {
      const [one, patch] = Array.isArray(entry) ? entry : [entry, {}]
      return { seq: at + 1, turn: 1, body: one, patch: at === 0 ? { prompts: prompt, ...patch } : patch }
    }),
  )

export const todo = (id: string, more: Partial<Todo> = {}): Todo => ({
  id,
  task: `do ${id}`,
  status: 'pending',
  dependencies: [],
  suggested_tools: [],
  priority: 5,
  execution_tips: '',
  success_criteria: '',
  critical_path_length: 1,
  retry: 0,
  max_retry: 3,
  retry_after: null,
  error_history: [],
  completion_details: null,
  ...more,
})
