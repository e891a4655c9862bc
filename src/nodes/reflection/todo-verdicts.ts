import { readResultText } from '../../context/result-text.ts'
import { listRounds } from '../../context/rounds.ts'
import { type AnsweredCall, listAnsweredCalls, type PlannedCall } from '../../state/calls.ts'
import type { Todo } from '../../state/runtime-state.ts'
import {
  addTodoError,
  completeTodo,
  failTodo,
  isOpenTodo,
  putBackTodo,
  startTodo,
} from '../../state/todos.ts'
import type { ReadonlyAction } from '../../state/turn.ts'
import { findLastGood, listCallsFor, measureTodoWork } from '../todo-progress.ts'
import type { Reflection } from './judge.ts'

/** What a reflection says of a task. */
type Verdict = Reflection['todos'][number]

/** The turn's actions, and the time: now, and the milliseconds of work that the run has taken. */
type Progress = { actions: readonly ReadonlyAction[]; now: Date; workedMs: number }

/**
 * The tasks after their calls came back. A task is completed only where the reflection names it, with a result or a reason:
 * rules complete none. A failed call is in the history of its task. The try has failed where the reflection says so, and
 * where all of its calls did. Only tasks that changed are given.
 */
export const updateTodoStatuses = (
  todos: readonly Todo[],
  calls: readonly AnsweredCall[],
  verdicts: readonly Verdict[],
  progress: Progress,
  isPure: (call: PlannedCall) => boolean,
): Todo[] => {
  const byId = new Map(verdicts.map((verdict) => [verdict.id, verdict]))
  const unstarted = listUnstarted(progress.actions)
  return todos
    .map((todo) => (unstarted.has(todo.id) ? putBackTodo(todo) : todo))
    .map((todo) => updateTodo(todo, listCallsFor(todo.id, calls), byId.get(todo.id), progress, isPure))
    .filter((todo, index) => todo !== todos[index])
}

/** The tasks of which the last plan had calls that did not run, and no plan a call that did. */
const listUnstarted = (actions: readonly ReadonlyAction[]): ReadonlySet<string> => {
  const round = listRounds(actions).at(-1)
  if (round === undefined || round.stoppedBy === null) return new Set()
  const answered = listAnsweredCalls(actions)
  const planned = round.calls.flatMap(({ call: { todos = [] } }) => todos)
  return new Set(planned.filter((id) => listCallsFor(id, answered).length === 0))
}

const updateTodo = (
  todo: Todo,
  calls: readonly AnsweredCall[],
  verdict: Verdict | undefined,
  progress: Progress,
  isPure: (call: PlannedCall) => boolean,
): Todo => {
  const { actions, now, workedMs } = progress
  const execution_time = measureTodoWork(actions, todo.id, workedMs, 'latest')
  const errors = calls
    .filter(({ action }) => action.result.is_error === true)
    .map(({ call, action }) => ({
      now,
      execution_time,
      tool_used: call.tool,
      error: String(action.result.text ?? action.summary),
    }))
  const withErrors = (): Todo =>
    isOpenTodo(todo) ? errors.reduce((one, error) => addTodoError(one, error), todo) : todo

  const completion = verdict?.status === 'completed' ? findCompletion(todo, verdict, actions) : null
  if (completion)
    return completeTodo(withErrors(), {
      now,
      execution_time: measureTodoWork(actions, todo.id, workedMs),
      ...completion,
    })
  const isOver =
    verdict && verdict.status !== 'completed'
      ? verdict.status === 'failed'
      : errors.length > 0 && errors.length === calls.length
  if (!isOver) return calls.length > 0 ? startTodo(withErrors()) : todo
  const said = {
    now,
    execution_time,
    tool_used: calls.at(-1)?.call.tool ?? '',
    error: verdict?.reason || 'the task failed',
  }
  const before = errors.slice(0, -1).reduce((one, error) => addTodoError(one, error), todo)
  const failed = failTodo(before, errors.at(-1) ?? said)
  // a tool that always gives the same for the same call gains nothing by waiting
  return failed.status === 'pending' && calls.every(({ call }) => isPure(call))
    ? { ...failed, retry_after: null }
    : failed
}

/** What completed a task: the result that the verdict names, else the last of the task's own calls, else the reason alone. */
const findCompletion = (
  todo: Todo,
  { action, reason }: Verdict,
  actions: readonly ReadonlyAction[],
): { tool_used: string; output: string } | null => {
  const answered = listAnsweredCalls(actions)
  const named = answered.filter((one) => one.action.id === action)
  const result = findLastGood(named) ?? findLastGood(listCallsFor(todo.id, answered))
  if (result) return { tool_used: result.call.tool, output: readResultText(result.action) }
  return reason === '' ? null : { tool_used: '', output: reason }
}
