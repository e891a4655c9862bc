import { readResultText } from '../context/result-text.ts'
import { type AnsweredCall, listAnsweredCalls, type PlannedCall, readPlannedCalls } from '../state/calls.ts'
import { memoizeByObject } from '../state/memoize.ts'
import type { Todo } from '../state/runtime-state.ts'
import { type FindEvidence, listWorkableTodos, startTodo, type TodoChange } from '../state/todos.ts'
import type { ReadonlyAction } from '../state/turn.ts'

/**
 * The calls with the tasks each is for: those whose change of the plan names it, else the first workable one that suggests
 * its tool, else the current one.
 */
export const assignCalls = (
  todos: readonly Todo[],
  calls: readonly PlannedCall[],
  changes: readonly TodoChange[],
): PlannedCall[] => {
  const workable = listWorkableTodos(todos)
  return calls.map((call) => {
    const named = changes.filter((change) => change.calls?.includes(call.index + 1)).map(({ id }) => id)
    const usual = workable.find((todo) => todo.suggested_tools.includes(call.tool)) ?? workable[0]
    if (named.length > 0) return { ...call, todos: named }
    return usual ? { ...call, todos: [usual.id] } : call
  })
}

/** Whether a call is for a task. */
export const isCallFor = ({ todos = [] }: PlannedCall, id: string): boolean => todos.includes(id)

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

const listPlans = memoizeByObject((actions: readonly ReadonlyAction[]) =>
  actions.filter((action) => readPlannedCalls(action).length > 0),
)

/** Milliseconds of work since the first, or the `latest`, calls that were made for a task; 0 where there are none. */
export const measureTodoWork = (
  actions: readonly ReadonlyAction[],
  id: string,
  workedMs: number,
  which: 'first' | 'latest' = 'first',
): number => {
  const isFor = (action: ReadonlyAction): boolean =>
    readPlannedCalls(action).some((call) => isCallFor(call, id))
  const plans = listPlans(actions)
  const since = (which === 'first' ? plans.find(isFor) : plans.findLast(isFor))?.result.worked_ms
  return typeof since === 'number' ? workedMs - since : 0
}

/** What the turn's calls for a task have brought so far: its last result without an error. */
export const createFindEvidence =
  (actions: readonly ReadonlyAction[], time: { now: Date; workedMs: number }): FindEvidence =>
  (id) => {
    const result = findLastGood(listAnsweredCalls(actions).filter(({ call }) => isCallFor(call, id)))
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
