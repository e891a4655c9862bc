import fc from 'fast-check'
import type { Todo } from '../../src/state/runtime-state.ts'
import {
  applyTodoChanges,
  completeTodo,
  failTodo,
  startTodo,
  type TodoChange,
} from '../../src/state/todos.ts'

/** Hand-made and generated todos, at one fixed time. */

export const now = new Date('2025-01-01T12:00:00.000Z')
export const later = (ms: number): Date => new Date(now.getTime() + ms)

export const planned = (wanted: TodoChange[], existing: readonly Todo[] = []): Todo[] => {
  const result = applyTodoChanges(existing, wanted)
  if (!result.ok) throw new Error(result.error)
  return result.todos
}
export const planErrorOf = (wanted: TodoChange[], existing: readonly Todo[] = []): string => {
  const result = applyTodoChanges(existing, wanted)
  return result.ok ? 'no error' : result.error
}
export const find = (todos: readonly Todo[], id: string): Todo => {
  const todo = todos.find((candidate) => candidate.id === id)
  if (!todo) throw new Error(`no todo ${id}`)
  return todo
}
export const replaced = (todos: readonly Todo[], todo: Todo): Todo[] =>
  todos.map((old) => (old.id === todo.id ? todo : old))
export const task = (
  id: string,
  dependencies: string[] = [],
  more: Partial<TodoChange> = {},
): TodoChange => ({
  id,
  task: `do ${id}`,
  dependencies,
  ...more,
})
export const failure = { now, tool_used: 'fetch', error: 'no answer', execution_time: 1.5 }

/** Wanted todos without a cycle: each depends on earlier ones only; the list is shuffled. */
export const acyclic = fc
  .array(
    fc.record({ picks: fc.array(fc.nat(), { maxLength: 4 }), priority: fc.integer({ min: 0, max: 9 }) }),
    {
      minLength: 1,
      maxLength: 40,
    },
  )
  .chain((items) => {
    const wanted = items.map(({ picks, priority }, at) =>
      task(`t${at}`, at === 0 ? [] : picks.map((pick) => `t${pick % at}`), { priority }),
    )
    return fc.shuffledSubarray(wanted, { minLength: wanted.length })
  })

/** Todos anywhere in their lives. */
export const todoListsAfterWork = fc
  .tuple(acyclic, fc.infiniteStream(fc.integer({ min: 0, max: 5 })))
  .map(([wanted, fates]) => {
    return planned(wanted).map((todo) => {
      const fate = fates.next().value
      if (fate === 0) return startTodo(todo)
      if (fate === 1) return completeTodo(todo, { now, tool_used: 'x', execution_time: 1, output: 'done' })
      if (fate === 2) return failTodo(todo, failure)
      if (fate === 3) return failTodo({ ...todo, max_retry: 0 }, failure)
      return todo
    })
  })
