import type { ActionEvent, RunView } from '../state/run-view.ts'
import type { Todo, TodoStatus } from '../state/runtime-state.ts'
import { cutToWidth, grouped, oneLine, plural, printable, type Terminal } from './terminal.ts'

/** The lines that a run leaves behind. Pure but for the widths of the terminal. */

type Colors = Terminal['colors']

const timeWidth = 9
const nodeWidth = 20

const column = (text: string, width: number): string => text.padEnd(width)

const nodeColor = (node: string, colors: Colors): ((text: string) => string) => {
  if (node === 'planner') return colors.cyan
  if (node === 'reflection') return colors.magenta
  if (node === 'load-session' || node === 'end') return colors.dim
  return colors.blue
}

/** On a terminal one line and no more; elsewhere the whole summary. */
export const actionLine = (
  action: ActionEvent,
  elapsed: string,
  { colors, live, out }: Pick<Terminal, 'colors' | 'live' | 'out'>,
): string => {
  const tokens = action.usage.total_tokens > 0 ? `  · ${plural(action.usage.total_tokens, 'token')}` : ''
  const room = live
    ? (out.columns || 80) - timeWidth - nodeWidth - tokens.length - 5
    : Number.POSITIVE_INFINITY
  const summary = cutToWidth(oneLine(action.summary), Math.max(20, room))
  return [
    colors.dim(elapsed.padStart(timeWidth)),
    nodeColor(action.node, colors)(column(action.node, nodeWidth)),
    (action.result.is_error === true ? colors.red(summary) : summary) + colors.dim(tokens),
  ].join('  ')
}

const marks: Record<TodoStatus, string> = {
  pending: '[ ]',
  processing: '[>]',
  completed: '[x]',
  failed: '[!]',
}

const todoColor = (status: TodoStatus, colors: Colors): ((text: string) => string) => {
  if (status === 'completed') return colors.green
  if (status === 'failed') return colors.red
  return status === 'processing' ? colors.yellow : colors.dim
}

export const todoLine = (todo: Todo, elapsed: string, colors: Colors): string => {
  const text = todoColor(todo.status, colors)(`${marks[todo.status]} ${oneLine(todo.task)}`)
  return [colors.dim(elapsed.padStart(timeWidth)), column('', elapsed ? nodeWidth : 0), text]
    .filter((part) => part !== '')
    .join('  ')
}

type Ended = { run: RunView; todos: readonly Todo[]; actions: number; took: string }

/** The plan as it ended, the answer, and one line of what it took. */
export const resultLines = (ended: Ended, { colors, live }: Terminal): string => {
  const { run, todos } = ended
  const plan = live ? todos.map((todo) => todoLine(todo, '', colors)) : []
  return [
    ...(plan.length > 0 ? ['', ...plan] : []),
    ...(run.answer === null ? [] : ['', indented(withBold(answerText(run), colors))]),
    '',
    `${verdict(run, colors)} ${colors.dim(`· ${[...counts(ended)].join(' · ')}`)}`,
    '',
  ].join('\n')
}

const indented = (text: string): string =>
  text
    .split('\n')
    .map((line) => (line === '' ? '' : `  ${line}`))
    .join('\n')

/** Answers are Markdown as a rule; its bold is what a terminal can show. */
const withBold = (text: string, { isColorSupported, bold }: Colors): string =>
  isColorSupported ? text.replace(/\*\*(\S(?:[^*\n]*\S)?)\*\*/g, (_, inner: string) => bold(inner)) : text

/** With a structure the answer is JSON text; people get it laid out. */
const answerText = (run: RunView): string => {
  const text = printable(run.answer ?? '').trim()
  if (run.output_structure.length === 0) return text
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

const limits: Record<string, string> = {
  steps: 'the limit of steps was reached',
  tokens: 'the limit of tokens was reached',
  cost: 'the limit of cost was reached',
  time: 'the time was up',
  no_progress: 'nothing new came',
}

const verdict = (run: RunView, colors: Colors): string => {
  switch (run.status) {
    case 'completed': {
      const limit = run.finish_reason ? limits[run.finish_reason] : undefined
      return limit
        ? colors.yellow(`completed with what there was: ${limit}`)
        : colors.bold(colors.green('completed'))
    }
    case 'failed': {
      const { code, message, node } = run.error ?? { code: 'internal', message: 'no reason was given' }
      return colors.red(`failed${node ? ` in ${node}` : ''}: ${oneLine(message)} (${code})`)
    }
    case 'cancelled':
      return colors.yellow('cancelled')
    case 'queued':
    case 'running':
    case 'input_required':
      return run.status
    default:
      throw run.status satisfies never
  }
}

function* counts({ run, todos, actions, took }: Ended): Generator<string> {
  if (todos.length > 0)
    yield `${todos.filter((todo) => todo.status === 'completed').length} of ${plural(todos.length, 'todo')}`
  yield plural(actions, 'action')
  const { prompt_tokens, completion_tokens, total_tokens } = run.usage
  yield total_tokens === 0
    ? '0 tokens'
    : `${plural(total_tokens, 'token')} (${grouped(prompt_tokens)} in, ${grouped(completion_tokens)} out)`
  yield took
}
