import { backgroundWithin } from './context/background.ts'
import { promptBudget } from './context/budget.ts'
import { joinSections, section } from './context/section.ts'
import type { RuntimeState, StateField, Todo } from './runtime-state.ts'
import { turnActions, turnTodos } from './turn.ts'

/**
 * What a prompt gets to see of the state: markdown sections, each `# Title` and a body; empty ones are left out. Pure
 * functions of the state under a budget in tokens; the parts stand in `context/`.
 */

/** Every field a prompt may be built from: what planner, understand and the output tools read. */
export const contextFields = [
  'prompts',
  'user_context',
  'memory',
  'output_style',
  'output_structure',
  'scenario',
  'task_goals',
  'origin_files',
  'preprocessed_files',
  'todos',
  'action_history',
  'chat_history',
] as const satisfies readonly StateField[]
type ContextFields = (typeof contextFields)[number]
export type ContextState = Pick<RuntimeState, ContextFields>

/** The request and everything around it, for a prompt of so many tokens in all. */
export const backgroundOf = (
  state: ContextState,
  budget: number = promptBudget('understand', undefined),
): string => backgroundWithin(state, budget)

/** The plan, and the task that is next; shown to every step. */
export const planOf = (state: Pick<RuntimeState, 'todos'>): string => {
  const todos = turnTodos(state)
  const current =
    todos.find((todo) => todo.status === 'processing') ?? todos.find((todo) => todo.status === 'pending')
  return joinSections([
    section('CURRENT PLAN STATUS', todos.map(todoLine).join('\n')),
    section('YOUR CURRENT TASK', current ? currentTask(current) : ''),
  ])
}

const todoLine = (todo: Todo): string => {
  const after = todo.dependencies.length > 0 ? ` after ${todo.dependencies.join(', ')}` : ''
  return `- [${todo.status === 'completed' ? 'x' : ' '}] ${todo.id}: ${todo.task} (${todo.status}${after})`
}

const currentTask = ({ id, task, execution_tips, success_criteria }: Todo): string =>
  [
    `${id}: ${task}`,
    execution_tips && `How: ${execution_tips}`,
    success_criteria && `Done when: ${success_criteria}`,
  ]
    .filter((line) => line !== '')
    .join('\n')

/** The planner's latest draft of an answer in this turn, or null; an empty one is none. */
export const draftOf = (state: Pick<RuntimeState, 'action_history'>): string | null => {
  const draft = turnActions(state).findLast(
    ({ result }) =>
      typeof result.draft === 'string' && result.draft.trim() !== '' && result.call === undefined,
  )?.result.draft
  return typeof draft === 'string' ? draft : null
}
