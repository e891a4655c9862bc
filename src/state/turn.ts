import type { Action, RuntimeState, Todo, Usage } from './runtime-state.ts'
import { noUsage } from './token-usage.ts'

/** Views of the turn that is being worked on: the last one. */

type State<Field extends keyof RuntimeState> = Pick<RuntimeState, Field>
type ReadonlyAction = RuntimeState['action_history'][number][number]

/** The number of the current turn, from 1. */
export const currentTurn = (state: State<'prompts'>): number => state.prompts.length
/** The actions of the current turn. */
export const turnActions = (state: State<'action_history'>): readonly ReadonlyAction[] =>
  state.action_history.at(-1) ?? []
/** The first action of a node in the current turn. */
export const findTurnAction = (state: State<'action_history'>, node: string): ReadonlyAction | undefined =>
  turnActions(state).find((action) => action.node === node)
/** The prompt of the current turn. */
export const turnPrompt = (state: State<'prompts'>): string => state.prompts.at(-1) ?? ''
/** The goal of the current turn. */
export const turnGoal = (state: State<'task_goals'>): string => state.task_goals.at(-1) ?? ''
/** The tasks of the current turn. */
export const turnTodos = (state: State<'todos'>): readonly Todo[] =>
  (state.todos.at(-1) ?? []) as readonly Todo[]
/** The tokens of the current turn. */
export const turnUsage = (state: State<'usage'>): Usage => state.usage.at(-1) ?? noUsage
export type { Action, ReadonlyAction }
