import { createLogUpdate } from 'log-update'
import type { ActionEvent, RunEvent, RunView } from '../state/run-view.ts'
import type { Todo } from '../state/runtime-state.ts'
import { actionLine, resultLines, todoLine } from './render-lines.ts'
import { createStreamed } from './render-streamed.ts'
import { duration, oneLine, type Terminal } from './terminal.ts'

/** Shows what happens to a run as it happens. */
export type Renderer = {
  event(event: RunEvent): void
  /** A line between the others, for notices. */
  note(line: string): void
  /** Stops redrawing while somebody is asked; the next event starts it again. */
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

/** For people: a line per action; on a terminal also a part below that is redrawn, with the plan and the streamed text. */
export const createRenderer = (terminal: Terminal, now: () => number = () => performance.now()): Renderer => {
  let startedAt: number | null = null
  const streamed = createStreamed()
  const below = terminal.live ? createBelow(terminal) : null
  const waiting = new Set<string>()
  let todos: readonly Todo[] = []
  let actions = 0

  const print = (line: string): void => {
    if (below) below.persist(line)
    else terminal.out.write(`${line}\n`)
  }
  /** Since the first event: opening a runtime is not the run's time. */
  const elapsed = (): string => {
    startedAt ??= now()
    return duration(now() - startedAt)
  }
  const draw = (): void => below?.draw(todos, streamed.tail(terminal.out), [...waiting])

  const onAction = (action: ActionEvent): void => {
    actions += 1
    streamed.settle(action.node)
    waiting.delete(action.node)
    for (const next of action.next) waiting.add(next)
    print(actionLine(action, elapsed(), terminal))
  }
  const onTodos = (current: readonly Todo[]): void => {
    const before = new Map(todos.map((todo) => [todo.id, todo.status]))
    todos = current
    if (below) return
    for (const todo of current)
      if (before.get(todo.id) !== todo.status) print(todoLine(todo, elapsed(), terminal.colors))
  }
  const onDone = (run: RunView): void => {
    below?.end()
    terminal.out.write(resultLines({ run, todos, actions, took: elapsed() }, terminal))
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
        case 'input_required':
          break
        default:
          throw event satisfies never
      }
      draw()
    },
    note: (line) => print(terminal.colors.yellow(oneLine(line))),
    pause: () => below?.end(),
    close: () => below?.end(),
  }
}

const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']

/** The part of a terminal below the lines that stay. It moves by itself while something is awaited. */
const createBelow = ({ out, colors }: Terminal) => {
  const update = createLogUpdate(out)
  let timer: NodeJS.Timeout | undefined
  let frame = 0
  let parts: Parameters<typeof show> = [[], '', []]

  const show = (todos: readonly Todo[], text: string, waiting: readonly string[]): void => {
    const mark = colors.cyan(frames[frame % frames.length] ?? '')
    const lines = [
      ...(todos.length > 0 ? ['', ...todos.map((todo) => todoLine(todo, '', colors))] : []),
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
