import type { AnsweredCall } from './calls.ts'
import type { RuntimeState, StateField, Todo } from './runtime-state.ts'
import { type ReadonlyAction, turnActions, turnGoal, turnOf, turnPrompt, turnTodos } from './turn.ts'

/** What a prompt gets to see of the state: markdown sections, each `# Title` and a body; empty ones are left out. */

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
  'todos',
  'action_history',
  'chat_history',
] as const satisfies readonly StateField[]
export type ContextFields = (typeof contextFields)[number]

type ContextState = Pick<RuntimeState, ContextFields>

/** Characters of one tool result and of the whole conversation that a prompt shows at the most. */
const maxResultChars = 120_000
const maxConversationChars = 20_000

/** One `# Title` section; empty when its body is. */
export const section = (title: string, body: string): string =>
  body.trim() === '' ? '' : `# ${title}\n${body.trim()}`
export const joinSections = (sections: readonly string[]): string =>
  sections.filter((text) => text !== '').join('\n\n')

/** The request and everything around it; the same at every step of a turn, so that prompt caches hold. */
export const backgroundOf = (state: ContextState): string =>
  joinSections([
    section('Request', turnPrompt(state)),
    section('Goal', turnGoal(state)),
    section('Scenario', state.scenario),
    section('Files', state.origin_files.map((file) => `- ${file.name} (${file.type})`).join('\n')),
    section('User', userText(state.user_context)),
    section('Memory', state.memory.map((memory) => `- ${memory.content}`).join('\n')),
    section('Output style', state.output_style),
    section(
      'Output structure',
      state.output_structure.map((piece) => `- ${piece.id} (${piece.type}): ${piece.expected}`).join('\n'),
    ),
    section('Conversation', conversationOf(state)),
  ])

const userText = (user: RuntimeState['user_context']): string =>
  Object.entries(user)
    .map(([key, value]) => `- ${key}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join('\n')

/** What was said in earlier turns, the latest kept when it is too long. */
const conversationOf = (state: Pick<RuntimeState, 'chat_history' | 'prompts'>): string => {
  const earlier = state.chat_history.filter((message) => message.turn < turnOf(state))
  const lines: string[] = []
  let size = 0
  for (const { role, content } of earlier.toReversed()) {
    size += content.length
    if (size > maxConversationChars && lines.length > 0) {
      lines.push('[earlier messages left out]')
      break
    }
    lines.push(`${role}: ${content}`)
  }
  return lines.toReversed().join('\n')
}

/** The plan, and the task that is next; shown to every step. */
export const planOf = (state: Pick<RuntimeState, 'todos'>): string => {
  const todos = turnTodos(state)
  const current =
    todos.find((todo) => todo.status === 'processing') ?? todos.find((todo) => todo.status === 'pending')
  return joinSections([
    section('CURRENT PLAN STATUS', todos.map(todoLine).join('\n')),
    section('YOUR CURRENT TASK', current ? `${current.id}: ${current.task}` : ''),
  ])
}

const todoLine = (todo: Todo): string => {
  const after = todo.dependencies.length > 0 ? ` after ${todo.dependencies.join(', ')}` : ''
  return `- [${todo.status === 'completed' ? 'x' : ' '}] ${todo.id}: ${todo.task} (${todo.status}${after})`
}

/** Full texts of results that left the state as blobs, by their hash. */
export type OpenedBlobs = ReadonlyMap<string, string>

/** What a model reads of an action's result. */
export const resultText = (action: ReadonlyAction, blobs: OpenedBlobs): string => {
  const { result } = action
  const full = typeof result.blob === 'string' ? blobs.get(result.blob) : undefined
  const text =
    full ??
    (typeof result.text === 'string'
      ? result.text
      : typeof result.head === 'string'
        ? headText(result)
        : JSON.stringify(result))
  return text.length <= maxResultChars
    ? text
    : `${text.slice(0, maxResultChars)}\n[cut: ${text.length} characters in all]`
}

const headText = (result: ReadonlyAction['result']): string =>
  `${String(result.head)}\n[cut: ${String(result.bytes)} bytes in all; ask for a smaller part]`

/** What calls brought, by action. */
export const resultsOf = (calls: readonly AnsweredCall[], blobs: OpenedBlobs): string =>
  section(
    'Results',
    calls
      .map(({ call, action }) => {
        const fault = action.result.is_error === true ? ' (error)' : ''
        return `## Action ${action.id}: ${call.tool} ${JSON.stringify(call.args)}${fault}\n${resultText(action, blobs)}`
      })
      .join('\n\n'),
  )

/** The planner's latest draft of an answer in this turn, or null; an empty one is none. */
export const draftOf = (state: Pick<RuntimeState, 'action_history'>): string | null => {
  const draft = turnActions(state).findLast(
    ({ result }) =>
      typeof result.draft === 'string' && result.draft.trim() !== '' && result.call === undefined,
  )?.result.draft
  return typeof draft === 'string' ? draft : null
}
