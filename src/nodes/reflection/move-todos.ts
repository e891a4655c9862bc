import type { AnsweredCall } from '../../state/calls.ts'
import type { Todo } from '../../state/runtime-state.ts'
import { completeTodo, failTodo } from '../../state/todos.ts'
import type { Reflection } from './judge.ts'

type Tools = { isPure(tool: string): boolean }

/**
 * The tasks in work after their calls came back: as the reflection says, else by the results: one good result completes
 * a task, only failures fail the try. Only tasks that changed are given.
 */
export const moveTodos = (
  todos: readonly Todo[],
  calls: readonly AnsweredCall[],
  reflection: Reflection,
  now: Date,
  tools: Tools,
): Todo[] => {
  const said = new Map(reflection.todos.map(({ id, status }) => [id, status]))
  return todos
    .map((todo) => move(todo, callsOf(todo, calls), said.get(todo.id), now, tools))
    .filter((todo, index) => todo !== todos[index])
}

const callsOf = (todo: Todo, calls: readonly AnsweredCall[]): readonly AnsweredCall[] => {
  const suggested = calls.filter(({ call }) => todo.suggested_tools.includes(call.tool))
  return suggested.length > 0 ? suggested : calls
}

const move = (
  todo: Todo,
  calls: readonly AnsweredCall[],
  said: Todo['status'] | undefined,
  now: Date,
  tools: Tools,
): Todo => {
  const good = calls.findLast(({ action }) => action.result.is_error !== true)
  const status =
    said ?? (todo.status !== 'processing' || calls.length === 0 ? undefined : good ? 'completed' : 'failed')
  const last = good ?? calls.at(-1)
  const attempt = { now, tool_used: last?.call.tool ?? '', execution_time: 0 }
  if (status === 'completed') return completeTodo(todo, { ...attempt, output: last?.action.summary ?? '' })
  if (status !== 'failed') return todo
  const failed = failTodo(todo, { ...attempt, error: String(last?.action.result.text ?? 'the task failed') })
  // a tool that always gives the same for the same call gains nothing by waiting
  return failed.status === 'pending' && calls.every(({ call }) => tools.isPure(call.tool))
    ? { ...failed, retry_after: null }
    : failed
}
