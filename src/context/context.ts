import { isDeepStrictEqual } from 'node:util'
import { toRequestGoal } from '../state/opening-patch.ts'
import type { PromptPart } from '../state/prompt-part.ts'
import {
  type DataFence,
  derivedLabel,
  type PromptText,
  type ProvenanceLabel,
  toLabel,
  userWords,
} from '../state/provenance.ts'
import type { AdmittedRequest } from '../state/run-request.ts'
import type { Json, RuntimeState, StateField, Todo } from '../state/runtime-state.ts'
import type { Scenario } from '../state/scenario.ts'
import { estimateTokens, fitTokens } from '../state/text/tokens.ts'
import { isOpenTodo, listBlockedTodos, listWorkableTodos } from '../state/todos.ts'
import { type ReadonlyAction, turnActions, turnGoal, turnPrompt, turnTodos } from '../state/turn.ts'
import { partShares } from './budget.ts'
import { compactionNodeName } from './latest-compaction.ts'
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
/** The fields of the state that prompts are built from. */
export type ContextState = Pick<RuntimeState, (typeof contextFields)[number]>

/** The user's request, within its share of a budget in tokens. */
export const renderPrompt = (state: Pick<RuntimeState, 'prompts'>, budget: number): PromptText =>
  userWords(fitTokens(turnPrompt(state), Math.floor(budget * partShares.request)).trim())

type SettingsState = Pick<
  RuntimeState,
  'prompts' | 'scenario' | 'output_style' | 'output_structure' | 'action_history'
>

/** The label of a setting: the user's where a request of the session has set exactly this, else a model may have taken it from a file. */
const labelSetting = (
  { action_history }: SettingsState,
  field: 'scenario' | 'output_style' | 'structure',
  value: unknown,
): ProvenanceLabel =>
  action_history.some(
    ([opened]) => opened?.node === 'load-session' && isDeepStrictEqual(opened.result[field], value),
  )
    ? toLabel('user')
    : derivedLabel

/** Whether a text stands in the user's own prompt: then it is the user's word, also where a model took it from there. */
const isUserWord = (state: SettingsState, text: string): boolean =>
  turnPrompt(state).replaceAll(/\s+/g, ' ').toLowerCase().includes(text.toLowerCase())

/** The scenario or the style of the turn. */
export const renderSetting = (
  state: SettingsState,
  field: 'scenario' | 'output_style',
  fence: DataFence,
): PromptText => {
  const text = state[field].trim()
  const isOwn = field === 'output_style' && isUserWord(state, text)
  return fence(text, isOwn ? toLabel('user') : labelSetting(state, field, state[field]))
}

const listEntries = ({ output_structure }: SettingsState) =>
  output_structure.map(({ content: _content, ...entry }) => entry)

/** Whether a request has named exactly this structure; else it is what a model proposed. */
export const isStructureRequested = (state: SettingsState): boolean =>
  labelSetting(state, 'structure', listEntries(state)).trusted

/** The entries that the answer is wanted in. */
export const renderStructure = (state: SettingsState, maxTokens: number, fence: DataFence): PromptText => {
  const entries = listEntries(state)
  const lines = entries.map(({ id, type, expected }) => `- ${id} (${type}): ${expected}`)
  return fence(lines.join('\n'), labelSetting(state, 'structure', entries), Math.floor(maxTokens))
}

/** The plan, and the task that is next; in the prompt of every step. A model wrote both, perhaps from a document. */
export const renderPlan = (
  state: Pick<RuntimeState, 'todos'>,
  maxTokens: number,
  fence: DataFence,
): PromptPart[] => {
  const todos = turnTodos(state)
  const blocked = new Set(listBlockedTodos(todos))
  // where tasks are blocked, those that wait for their retry are not waited for: the plan has to change first
  const current = listWorkableTodos(todos).find((todo) => todo.retry_after === null || blocked.size === 0)
  const task = fence(current ? renderCurrentTask(current) : '', derivedLabel, maxTokens / 2)
  const lines = todos.map((todo) => renderTodo(todo, blocked.has(todo), todo === current))
  return [
    part(titles.plan, fence(lines.join('\n'), derivedLabel, maxTokens - estimateTokens(task)), 'agent'),
    part(titles.task, task, 'agent'),
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
): PromptText => {
  const goal = turnGoal(state)
  const isRequest = goal === toRequestGoal(turnPrompt(state))
  return fence(isRequest ? '' : goal.trim(), derivedLabel, Math.floor(maxTokens))
}

/** How the turn began: its actions up to the planner's first reply. One that chose a scenario is none yet: the planner is asked again. */
export const readBeginning = (
  state: Pick<RuntimeState, 'action_history'>,
): { actions: readonly ReadonlyAction[]; isReplied: boolean } => {
  const actions = turnActions(state)
  const at = actions.findIndex(
    ({ node, next }) => node === 'planner' && ![compactionNodeName, node].includes(next[0] ?? ''),
  )
  return { actions: at < 0 ? actions : actions.slice(0, at + 1), isReplied: at >= 0 }
}

/** What the planner's first reply has set in this turn, by the names of the fields. */
export const listProposed = (state: Pick<RuntimeState, 'action_history'>): readonly Json[] =>
  readBeginning(state).actions.flatMap(({ node, result: { proposed } }) =>
    node === 'planner' && Array.isArray(proposed) ? proposed : [],
  )

/** The state without it, as a prompt of the turn begins: these words never change. */
export const withoutProposed = (state: ContextState): ContextState => {
  const proposed = listProposed(state)
  if (proposed.length === 0) return state
  return {
    // a view has no fields to spread
    ...(Object.fromEntries(contextFields.map((field) => [field, state[field]])) as unknown as ContextState),
    ...(proposed.includes('task_goals') && {
      task_goals: state.task_goals.with(-1, toRequestGoal(turnPrompt(state))),
    }),
    ...(proposed.includes('output_style') && { output_style: '' }),
    ...(proposed.includes('output_structure') && { output_structure: [] }),
  }
}

/** The request's own choice, then the model's; the structure alone decides whether there are fields to fill. */
export const chooseOutputTool = (
  { output }: Pick<AdmittedRequest, 'output'>,
  hasStructure: boolean,
  named?: string | null,
): string => {
  const usual = hasStructure ? 'structured_answer' : 'answer'
  if (output?.tool) return output.tool
  return !named || named === 'structured_answer' || named === 'answer' ? usual : named
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
