import { toRequestGoal } from '../state/opening-patch.ts'
import type { PromptPart } from '../state/prompt-part.ts'
import { type DataFence, derivedLabel } from '../state/provenance.ts'
import type { AdmittedRequest } from '../state/run-request.ts'
import type { RuntimeState, StateField, Todo } from '../state/runtime-state.ts'
import type { Scenario } from '../state/scenario.ts'
import { fitTokens } from '../state/text/tokens.ts'
import { isOpenTodo, listBlockedTodos, listWorkableTodos } from '../state/todos.ts'
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
  const blocked = new Set(listBlockedTodos(todos))
  // where tasks are blocked, those that wait for their retry are not waited for: the plan has to change first
  const current = listWorkableTodos(todos).find((todo) => todo.retry_after === null || blocked.size === 0)
  return [
    part(
      titles.plan,
      todos.map((todo) => renderTodo(todo, blocked.has(todo), todo === current)).join('\n'),
      'agent',
    ),
    part(titles.task, current ? renderCurrentTask(current) : '', 'agent'),
  ]
}

/** The texts of errors are data of tools: they are with the results, and not in the plan. */
const renderTodo = (todo: Todo, isBlocked: boolean, isCurrent: boolean): string => {
  const { id, task, status, dependencies, retry, max_retry, retry_after, success_criteria } = todo
  const after = dependencies.length > 0 ? ` after ${dependencies.join(', ')}` : ''
  const tries = retry > 0 && isOpenTodo(todo) ? `, try ${retry} of ${max_retry + 1} failed` : ''
  const time = retry_after === null ? '' : `, not before ${retry_after}`
  const done =
    success_criteria !== '' && isOpenTodo(todo) && !isCurrent ? `; done when: ${success_criteria}` : ''
  const mark = status === 'completed' ? 'x' : status === 'failed' ? '!' : ' '
  return `- [${mark}] ${id}: ${task} (${isBlocked ? 'blocked' : status}${after}${tries}${time})${done}`
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

/** Whether the planner's draft is the answer as it stands: nothing asks for another wording of it. */
export const isDraftFinal = (
  { output_style }: Pick<RuntimeState, 'output_style'>,
  { models }: Pick<AdmittedRequest, 'models'>,
  scenario: Pick<Scenario, 'prompts'> | null,
): boolean => output_style === '' && !models?.output && !scenario?.prompts.output

/** The planner's latest draft of an answer in this turn, or null; an empty one is none. */
export const findDraft = (state: Pick<RuntimeState, 'action_history'>): string | null => {
  const draft = turnActions(state).findLast(
    ({ result }) =>
      typeof result.draft === 'string' && result.draft.trim() !== '' && result.call === undefined,
  )?.result.draft
  return typeof draft === 'string' ? draft : null
}
