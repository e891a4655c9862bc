import { createLogUpdate } from 'log-update'
import type { ActionEvent, RunEvent, RunView, TextDelta } from '../../state/run-view.ts'
import type { Todo } from '../../state/runtime-state.ts'
import { formatActionLine, formatModelWait, formatResult, formatTodoLine } from './rendered-lines.ts'
import { formatDuration, type Terminal, toOneLine, toPrintable } from './terminal.ts'

/** Shows the events of a run as they arrive. */
export type Renderer = {
  event(event: RunEvent): void
  /** Prints a notice between the other lines. */
  note(line: string): void
  /** Stops redrawing while a person is asked; the next event starts it again. */
  pause(): void
  close(): void
}

/** One JSON object per event and nothing else. */
export const createJsonRenderer = (out: NodeJS.WritableStream, err: NodeJS.WritableStream): Renderer => ({
  event: (event) => void out.write(`${JSON.stringify(event)}\n`),
  note: (line) => void err.write(`${line}\n`),
  pause: () => {},
  close: () => {},
})

/** For people: a line per action. On a terminal the todos and the streamed text are redrawn below the lines. */
export const createRenderer = (terminal: Terminal, now: () => number = () => performance.now()): Renderer => {
  let startedAt: number | null = null
  const streamed = createStreamedText()
  const liveArea = terminal.live ? createLiveArea(terminal) : null
  const waiting = new Set<string>()
  let todos: readonly Todo[] = []
  let actions = 0

  const print = (line: string): void => {
    if (liveArea) liveArea.persist(line)
    else terminal.out.write(`${line}\n`)
  }
  /** Since the first event, because opening a runtime is not part of the run's time. */
  const elapsed = (): string => {
    startedAt ??= now()
    return formatDuration(now() - startedAt)
  }
  const draw = (): void => liveArea?.draw(todos, streamed.tail(terminal.out), [...waiting])

  const onAction = (action: ActionEvent): void => {
    actions += 1
    streamed.settle(action.node)
    waiting.delete(action.node)
    for (const next of action.next) waiting.add(next)
    print(formatActionLine(action, elapsed(), terminal))
  }
  const onTodos = (current: readonly Todo[]): void => {
    const before = new Map(todos.map((todo) => [todo.id, todo.status]))
    todos = current
    if (liveArea) return
    for (const todo of current)
      if (before.get(todo.id) !== todo.status) print(formatTodoLine(todo, elapsed(), terminal.colors))
  }
  const onDone = (run: RunView): void => {
    liveArea?.end()
    terminal.out.write(formatResult({ run, todos, actions, took: elapsed() }, terminal))
  }

  return {
    event(event) {
      switch (event.event) {
        case 'action':
          onAction(event.data)
          break
        case 'todos':
          onTodos(event.data.todos)
          break
        case 'delta':
          streamed.add(event.data)
          break
        case 'done':
          return onDone(event.data)
        case 'status':
          if (event.data.operator_request)
            print(terminal.colors.yellow(formatOperatorWait(event.data.operator_request)))
          if (event.data.retry_at) print(terminal.colors.yellow(formatModelWait(event.data)))
          break
        case 'input_required':
          break
        case 'consent_required':
          print(terminal.colors.yellow(formatConsent(event.data)))
          break
        default:
          throw event satisfies never
      }
      draw()
    },
    note: (line) => print(terminal.colors.yellow(toOneLine(line))),
    pause: () => liveArea?.end(),
    close: () => liveArea?.end(),
  }
}

/** What a person who follows a run does about a payment that waits for approval. */
const formatConsent = ({
  payment_id,
  expires_at,
}: Extract<RunEvent, { event: 'consent_required' }>['data']): string =>
  `Payment ${payment_id} waits for approval until ${expires_at}: show the user its page (docs/payments.md#consent)`

/** Settling it is for an operator, not for the user. */
const formatOperatorWait = ({ effect_id, error }: NonNullable<RunView['operator_request']>): string =>
  toOneLine(
    `Waits for an operator to say whether the side effect took place (${error}): mason effects resolve ${effect_id}`,
  )

const spinnerFrames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']

/** The part of a terminal below the permanent lines. Its spinner moves while nodes are at work. */
const createLiveArea = ({ out, colors }: Terminal) => {
  const update = createLogUpdate(out)
  let timer: NodeJS.Timeout | undefined
  let frame = 0
  let parts: Parameters<typeof show> = [[], '', []]

  const show = (todos: readonly Todo[], text: string, waiting: readonly string[]): void => {
    const mark = colors.cyan(spinnerFrames[frame % spinnerFrames.length] ?? '')
    const lines = [
      ...(todos.length > 0 ? ['', ...todos.map((todo) => formatTodoLine(todo, '', colors))] : []),
      ...(text ? ['', text] : []),
      ...(waiting.length > 0 ? ['', `${mark} ${colors.dim(waiting.join(', '))}`] : []),
    ]
    update(lines.join('\n'))
  }
  const tick = (): void => {
    frame += 1
    show(...parts)
  }
  return {
    persist(line: string): void {
      update.clear()
      out.write(`${line}\n`)
    },
    draw(...latest: Parameters<typeof show>): void {
      parts = latest
      timer ??= setInterval(tick, 120).unref()
      show(...parts)
    },
    end(): void {
      clearInterval(timer)
      timer = undefined
      update.clear()
      update.done()
    },
  }
}

/** Streamed text, kept per model call. A new attempt replaces the text of an earlier one. */
export const createStreamedText = () => {
  const texts = new Map<string, { node: string; attempt: number; text: string }>()
  let latest = ''

  return {
    add({ run_id, node, call, attempt, text }: TextDelta): void {
      const key = `${run_id} ${node} ${call}`
      const before = texts.get(key)
      if (before && before.attempt > attempt) return
      const previous = before?.attempt === attempt ? before.text : ''
      texts.set(key, { node, attempt, text: previous + toPrintable(text) })
      latest = key
    },
    /** Forgets what a node streamed, because its committed action contains it. */
    settle(node: string): void {
      for (const [key, streamed] of texts) if (streamed.node === node) texts.delete(key)
    },
    /** The last lines of the latest stream, at most half a terminal. */
    tail(size: { columns?: number; rows?: number }): string {
      const text = texts.get(latest)?.text ?? ''
      if (text.trim() === '') return ''
      const width = Math.max(20, (size.columns || 80) - 4)
      const lines = text
        .trim()
        .split('\n')
        .flatMap((line) => line.match(new RegExp(`.{1,${width}}`, 'gu')) ?? [''])
      return lines
        .slice(-Math.max(3, Math.floor((size.rows || 24) / 2)))
        .map((line) => `  ${line}`)
        .join('\n')
    },
  }
}
