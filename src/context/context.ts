import { toRequestGoal } from '../state/opening-patch.ts'
import type { PromptPart } from '../state/prompt-part.ts'
import { type DataFence, derivedLabel } from '../state/provenance.ts'
import type { RuntimeState, StateField, Todo } from '../state/runtime-state.ts'
import { fitTokens } from '../state/text/tokens.ts'
import { turnActions, turnGoal, turnPrompt, turnTodos } from '../state/turn.ts'
import { part, titles } from './sections.ts'

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
/** The fields of the state that prompts are built from. */
export type ContextState = Pick<RuntimeState, ContextFields>

/** The plan, and the task that is next; in the prompt of every step. */
export const renderPlan = (state: Pick<RuntimeState, 'todos'>): PromptPart[] => {
  const todos = turnTodos(state)
  const current =
    todos.find((todo) => todo.status === 'processing') ?? todos.find((todo) => todo.status === 'pending')
  return [
    part(titles.plan, todos.map(renderTodo).join('\n'), 'agent'),
    part(titles.task, current ? renderCurrentTask(current) : '', 'agent'),
  ]
}

const renderTodo = (todo: Todo): string => {
  const after = todo.dependencies.length > 0 ? ` after ${todo.dependencies.join(', ')}` : ''
  return `- [${todo.status === 'completed' ? 'x' : ' '}] ${todo.id}: ${todo.task} (${todo.status}${after})`
}

const renderCurrentTask = ({ id, task, execution_tips, success_criteria }: Todo): string =>
  [
    `${id}: ${task}`,
    execution_tips && `How: ${execution_tips}`,
    success_criteria && `Done when: ${success_criteria}`,
  ]
    .filter((line) => line !== '')
    .join('\n')

/**
 * The goal of the turn as a prompt shows it: a model made it of the request, but also of what files, memory and earlier
 * results say, so it is fenced. The request beside it is the user's own word; a goal that only repeats it is left out.
 */
export const renderGoal = (
  state: Pick<RuntimeState, 'prompts' | 'task_goals'>,
  maxTokens: number,
  fence: DataFence,
): string => {
  const goal = turnGoal(state)
  if (goal.trim() === '' || goal === toRequestGoal(turnPrompt(state))) return ''
  return fence(fitTokens(goal, Math.floor(maxTokens)), derivedLabel)
}

/** The planner's latest draft of an answer in this turn, or null; an empty one is none. */
export const findDraft = (state: Pick<RuntimeState, 'action_history'>): string | null => {
  const draft = turnActions(state).findLast(
    ({ result }) =>
      typeof result.draft === 'string' && result.draft.trim() !== '' && result.call === undefined,
  )?.result.draft
  return typeof draft === 'string' ? draft : null
}
