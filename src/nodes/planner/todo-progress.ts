import type { PlannedCall } from '../../state/calls.ts'
import type { Todo } from '../../state/runtime-state.ts'
import { cutText } from '../../state/text/cut-text.ts'
import { completeTodo, listReadyTodos, startTodo } from '../../state/todos.ts'

/** The tasks that these calls work on: ready ones that suggest a called tool, else the first that is ready. */
export const startTodos = (todos: readonly Todo[], calls: readonly PlannedCall[]): readonly Todo[] => {
  if (todos.some((todo) => todo.status === 'processing')) return todos
  const tools = new Set(calls.map((call) => call.tool))
  const ready = listReadyTodos(todos, new Date(8.64e15))
  const suggested = ready.filter((todo) => todo.suggested_tools.some((tool) => tools.has(tool)))
  const started = new Set(suggested.length > 0 ? suggested : ready.slice(0, 1))
  return todos.map((todo) => (started.has(todo) ? startTodo(todo) : todo))
}

/** Finishing does what was left to do: every open task whose dependencies are done is completed by the answer. */
export const finishTodos = (
  todos: readonly Todo[],
  { now, tool, output }: { now: Date; tool: string; output: string },
): readonly Todo[] => {
  let current = todos
  for (;;) {
    const done = new Set(current.filter((todo) => todo.status === 'completed').map((todo) => todo.id))
    const open = current.filter(
      (todo) =>
        (todo.status === 'pending' || todo.status === 'processing') &&
        todo.dependencies.every((id) => done.has(id)),
    )
    if (open.length === 0) return current
    const attempt = { now, tool_used: tool, execution_time: 0, output: cutText(output, 500) }
    current = current.map((todo) => (open.includes(todo) ? completeTodo(todo, attempt) : todo))
  }
}
