import { readResultText } from '../context/result-text.ts'
import {
  type AnsweredCall,
  hashCall,
  listAnsweredCalls,
  type PlannedCall,
  readPlannedCalls,
} from '../state/calls.ts'
import { memoizeByObject } from '../state/memoize.ts'
import type { Todo } from '../state/runtime-state.ts'
import { type FindEvidence, listWorkableTodos, startTodo, type TodoChange } from '../state/todos.ts'
import type { ReadonlyAction } from '../state/turn.ts'

/**
 * The calls with the tasks each is for: those whose change of the plan names it, else those of the same call that failed before, of
 * those `answered`, else the first workable one that suggests its tool, else the current one.
 */
export const assignCalls = (
  todos: readonly Todo[],
  calls: readonly PlannedCall[],
  changes: readonly TodoChange[],
  listAnswered: () => readonly AnsweredCall[] = () => [],
): PlannedCall[] => {
  const workable = listWorkableTodos(todos)
  const named = new Map<number, string[]>()
  for (const { id, calls: numbers = [] } of changes) for (const nth of numbers) append(named, nth - 1, id)
  const suggested = new Map<string, Todo>()
  for (const todo of workable.toReversed()) for (const tool of todo.suggested_tools) suggested.set(tool, todo)
  const failed = new Map(
    (workable.length > 1 ? listAnswered() : [])
      .filter(({ action }) => action.result.is_error === true)
      .map((one) => [hashCall(one.call), one.call.todos ?? []]),
  )
  const findRetried = (call: PlannedCall): string[] | undefined => {
    const ids = failed.get(hashCall(call))?.filter((id) => workable.some((todo) => todo.id === id))
    return ids?.length ? ids : undefined
  }
  return calls.map((call) => {
    const usual = suggested.get(call.tool) ?? workable[0]
    const ids = named.get(call.index) ?? findRetried(call) ?? (usual && [usual.id])
    return ids ? { ...call, todos: ids } : call
  })
}

const append = <Key, Item>(lists: Map<Key, Item[]>, key: Key, item: Item): void => {
  const list = lists.get(key)
  if (!list) lists.set(key, [item])
  else if (list.at(-1) !== item) list.push(item)
}

const groupByTodo = memoizeByObject((calls: readonly AnsweredCall[]) => {
  const byTodo = new Map<string, AnsweredCall[]>()
  for (const one of calls) for (const id of one.call.todos ?? []) append(byTodo, id, one)
  return byTodo
})

/** The calls that are for a task. Reads all of them once. */
export const listCallsFor = (id: string, calls: readonly AnsweredCall[]): readonly AnsweredCall[] =>
  groupByTodo(calls).get(id) ?? []

/**
 * The tasks that these calls work on, in work. One that waits for its retry stays as it is: `notBefore` is the time at
 * which its calls may be made, else null.
 */
export const startTodos = (todos: readonly Todo[], calls: readonly PlannedCall[], now: Date) => {
  const workable = new Set(listWorkableTodos(todos))
  const called = new Set(calls.flatMap((call) => call.todos ?? []))
  const isCalled = (todo: Todo): boolean => called.has(todo.id) && workable.has(todo)
  const isLater = (todo: Todo): boolean => Date.parse(todo.retry_after ?? '') > now.getTime()
  const times = todos.filter((todo) => isCalled(todo) && isLater(todo)).map(({ retry_after }) => retry_after)
  return {
    todos: todos.map((todo) => (isCalled(todo) && !isLater(todo) ? startTodo(todo) : todo)),
    notBefore: times.toSorted().at(-1) ?? null,
  }
}

/** The actions that decided on calls for each task, by its id. */
const groupPlansByTodo = memoizeByObject((actions: readonly ReadonlyAction[]) => {
  const byTodo = new Map<string, ReadonlyAction[]>()
  for (const action of actions)
    for (const { todos = [] } of readPlannedCalls(action)) for (const id of todos) append(byTodo, id, action)
  return byTodo
})

/** Milliseconds of work since the first, or the `latest`, calls that were made for a task; 0 where there are none. */
export const measureTodoWork = (
  actions: readonly ReadonlyAction[],
  id: string,
  workedMs: number,
  which: 'first' | 'latest' = 'first',
): number => {
  const since = groupPlansByTodo(actions)
    .get(id)
    ?.at(which === 'first' ? 0 : -1)?.result.worked_ms
  return typeof since === 'number' ? workedMs - since : 0
}

/** What the turn's calls for a task have brought so far: its last result without an error. */
export const createFindEvidence =
  (actions: readonly ReadonlyAction[], time: { now: Date; workedMs: number }): FindEvidence =>
  (id) => {
    const result = findLastGood(listCallsFor(id, listAnsweredCalls(actions)))
    return {
      now: time.now,
      execution_time: measureTodoWork(actions, id, time.workedMs),
      tool_used: result?.call.tool ?? '',
      output: result ? readResultText(result.action) : '',
    }
  }

/** The last of these results that is no error. */
export const findLastGood = (calls: readonly AnsweredCall[]): AnsweredCall | undefined =>
  calls.findLast(({ action }) => action.result.is_error !== true)
