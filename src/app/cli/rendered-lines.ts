import { describeLimit } from '../../state/outcome.ts'
import type { ActionEvent, RunView } from '../../state/run-view.ts'
import type { Todo, TodoStatus } from '../../state/runtime-state.ts'
import { cutToWidth, formatCount, formatPlural, type Terminal, toOneLine, toPrintable } from './terminal.ts'

/** The permanent lines that the renderer prints for a run, as pure functions. */

type Colors = Terminal['colors']

const timeWidth = 9
const nodeWidth = 20

const nodeColors: Partial<Record<string, 'cyan' | 'magenta' | 'dim'>> = {
  planner: 'cyan',
  reflection: 'magenta',
  'load-session': 'dim',
  end: 'dim',
}

/** One action. On a terminal its summary is cut to one line. */
export const formatActionLine = (
  action: ActionEvent,
  elapsed: string,
  { colors, live, out }: Pick<Terminal, 'colors' | 'live' | 'out'>,
): string => {
  const tokens =
    action.usage.total_tokens > 0 ? `  · ${formatPlural(action.usage.total_tokens, 'token')}` : ''
  const width = live
    ? (out.columns || 80) - timeWidth - nodeWidth - tokens.length - 5
    : Number.POSITIVE_INFINITY
  const summary = cutToWidth(toOneLine(action.summary), Math.max(20, width))
  return [
    colors.dim(elapsed.padStart(timeWidth)),
    colors[nodeColors[action.node] ?? 'blue'](action.node.padEnd(nodeWidth)),
    (action.result.is_error === true ? colors.red(summary) : summary) + colors.dim(tokens),
  ].join('  ')
}

/** That a run waits for a model: until when, and why. */
export const formatModelWait = ({ retry_at, retry_reason }: Partial<RunView>): string =>
  `no model is available; next try at ${retry_at}: ${toOneLine(retry_reason?.message ?? '')}`

const todoStyles = {
  pending: { mark: '[ ]', color: 'dim' },
  processing: { mark: '[>]', color: 'yellow' },
  completed: { mark: '[x]', color: 'green' },
  failed: { mark: '[!]', color: 'red' },
} as const satisfies Record<TodoStatus, unknown>

/** One todo with its status. `elapsed` is empty where the line has no time column. */
export const formatTodoLine = (todo: Todo, elapsed: string, colors: Colors): string => {
  const { mark, color } = todoStyles[todo.status]
  const text = colors[color](`${mark} ${toOneLine(todo.task)}`)
  return [colors.dim(elapsed.padStart(timeWidth)), ' '.repeat(elapsed ? nodeWidth : 0), text]
    .filter((part) => part !== '')
    .join('  ')
}

type EndedRun = { run: RunView; todos: readonly Todo[]; actions: number; took: string }

/** The final todos, the answer, and one line with status, counts and duration. */
export const formatResult = (ended: EndedRun, { colors, live }: Terminal): string => {
  const { run, todos } = ended
  const plan = live ? todos.map((todo) => formatTodoLine(todo, '', colors)) : []
  return [
    ...(plan.length > 0 ? ['', ...plan] : []),
    ...(run.answer === null ? [] : ['', indentLines(renderBold(formatAnswer(run), colors))]),
    '',
    `${formatOutcome(run, colors)} ${colors.dim(`· ${[...listCounts(ended)].join(' · ')}`)}`,
    '',
  ].join('\n')
}

const indentLines = (text: string): string =>
  text
    .split('\n')
    .map((line) => (line === '' ? '' : `  ${line}`))
    .join('\n')

/** Answers are usually Markdown; bold is the part of it that a terminal can show. */
const renderBold = (text: string, { isColorSupported, bold }: Colors): string =>
  isColorSupported ? text.replace(/\*\*(\S(?:[^*\n]*\S)?)\*\*/g, (_, inner: string) => bold(inner)) : text

/** With an output structure the answer is JSON text, which is indented for people. */
const formatAnswer = (run: RunView): string => {
  const text = toPrintable(run.answer ?? '').trim()
  if (run.output_structure.length === 0) return text
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

const formatOutcome = (run: RunView, colors: Colors): string => {
  switch (run.status) {
    case 'completed': {
      const { finish_reason: reason } = run
      return reason && reason !== 'answered'
        ? colors.yellow(`completed early: ${describeLimit(reason)}`)
        : colors.bold(colors.green('completed'))
    }
    case 'failed': {
      const { code, message, node } = run.error ?? { code: 'internal', message: 'unknown reason' }
      return colors.red(`failed${node ? ` in ${node}` : ''}: ${toOneLine(message)} (${code})`)
    }
    case 'cancelled':
      return colors.yellow('cancelled')
    default:
      return run.status
  }
}

function* listCounts({ run, todos, actions, took }: EndedRun): Generator<string> {
  if (todos.length > 0)
    yield `${todos.filter((todo) => todo.status === 'completed').length} of ${formatPlural(todos.length, 'todo')}`
  yield formatPlural(actions, 'action')
  const { prompt_tokens, completion_tokens, total_tokens } = run.usage
  yield total_tokens === 0
    ? '0 tokens'
    : `${formatPlural(total_tokens, 'token')} (${formatCount(prompt_tokens)} in, ${formatCount(completion_tokens)} out)`
  yield took
}
