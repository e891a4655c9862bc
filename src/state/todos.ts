import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { type Todo, todoStatusSchema } from './runtime-state.ts'
import { cutText } from './text/cut-text.ts'

/** The todos of one turn: planned, moved and asked, all without a clock of their own. */

/** The most todos of one turn. */
const maxTodos = 1000

/** The tasks in the arguments of `update_todos`. */
export const todoChangesSchema = z
  .array(
    z.strictObject({
      id: z.string().min(1).max(100).describe('A short name that stays.'),
      task: z.string().min(1).max(4000).exactOptional().describe('What to do.'),
      dependencies: z
        .array(z.string().min(1))
        .max(1000)
        .exactOptional()
        .describe('Ids that must be completed first.'),
      suggested_tools: z.array(z.string().min(1)).max(100).exactOptional().describe('Names of tools.'),
      priority: z.number().exactOptional().describe('Higher goes first; 5 when left out.'),
      execution_tips: z.string().max(4000).exactOptional().describe('How to go about it.'),
      success_criteria: z.string().max(4000).exactOptional().describe('When it is done.'),
      max_retry: z
        .int()
        .min(0)
        .max(10)
        .exactOptional()
        .describe('Tries after the first one; 3 when left out.'),
      status: todoStatusSchema.exactOptional().describe('Leave out to keep what it is.'),
      reason: z.string().exactOptional().describe('Why.'),
      calls: z.array(z.number()).exactOptional().describe('Its tool calls beside this, from 1.'),
    }),
  )
  .min(1)
  .max(maxTodos)
  .describe('New todos, and known ones that change; those not named stay as they are.')

/** One change of the plan: a new task, or fields of an existing one. */
export type TodoChange = z.infer<typeof todoChangesSchema>[number]

/** `changed` holds the todos that are new or differ: the patch to write. Unchanged todos keep their identity. */
export type TodoPlanResult = { ok: true; todos: Todo[]; changed: Todo[] } | { ok: false; error: string }

const newTodo = (id: string, task: string): Todo => ({
  id,
  task,
  status: 'pending',
  dependencies: [],
  suggested_tools: [],
  priority: 5,
  execution_tips: '',
  success_criteria: '',
  critical_path_length: 0,
  retry: 0,
  max_retry: 3,
  retry_after: null,
  error_history: [],
  completion_details: null,
})

/** A todo that a role names as done or failed, and what met its success criteria, or why it failed. */
export type TodoClosing = { id: string; status: 'completed' | 'failed'; reason: string }

/** What the calls for a todo have brought: it becomes part of the todo that a closing names. */
export type FindEvidence = (id: string) => TodoAttempt & { output: string }

const noEvidence: FindEvidence = () => ({ now: new Date(), tool_used: '', execution_time: 0, output: '' })

/** What a change of status by the planner leaves of waiting and completion; history always stays. */
const withStatus = (todo: Todo, { status, reason = '' }: TodoChange, evidence: FindEvidence): Todo => {
  if (status === undefined || status === todo.status) return todo
  if (status === 'completed' || status === 'failed')
    return closeTodo(todo, { id: todo.id, status, reason }, evidence(todo.id))
  // a retry is started by its calls, once its time has come
  if (status === 'processing' && todo.retry_after !== null) return todo
  return { ...todo, status, retry_after: null, completion_details: null }
}

/** The todo as wanted; the known one itself when nothing differs. */
const mergeTodo = (known: Todo | undefined, change: TodoChange, evidence: FindEvidence): Todo => {
  const { status: _status, reason: _reason, calls: _calls, ...wanted } = change
  const old = known ?? newTodo(wanted.id, wanted.task ?? '')
  const dependencies = [...new Set(wanted.dependencies ?? old.dependencies)]
  const next = withStatus({ ...old, ...wanted, dependencies }, change, evidence)
  return known && isDeepStrictEqual(known, next) ? known : next
}

const formatList = (items: readonly string[], max = 20): string =>
  items.slice(0, max).join(', ') + (items.length > max ? ` and ${items.length - max} more` : '')

const formatCycle = (cycle: readonly string[]): string =>
  cycle.length <= 30
    ? cycle.join(' -> ')
    : `${cycle.slice(0, 20).join(' -> ')} -> (${cycle.length - 21} more) -> ${cycle[0]}`

type TodoNode = Pick<Todo, 'id' | 'dependencies'>
type Dependents = ReadonlyMap<string, readonly string[]>

/** For each todo the ids of those that depend on it; unknown ids are left out. */
const listDependents = (nodes: readonly TodoNode[]): Dependents => {
  const dependents = new Map(nodes.map(({ id }) => [id, [] as string[]]))
  for (const { id, dependencies } of nodes)
    for (const dependency of dependencies) dependents.get(dependency)?.push(id)
  return dependents
}

/** Ids in an order in which each comes after its dependencies; those on or behind a cycle are missing. Linear. */
const sortByDependency = (nodes: readonly TodoNode[], dependents: Dependents): string[] => {
  const open = new Map(nodes.map(({ id, dependencies }) => [id, dependencies.length]))
  const order = nodes.filter(({ dependencies }) => dependencies.length === 0).map(({ id }) => id)
  for (const done of order)
    for (const dependent of dependents.get(done) ?? []) {
      const left = (open.get(dependent) ?? 0) - 1
      open.set(dependent, left)
      if (left === 0) order.push(dependent)
    }
  return order
}

/** One cycle as ids `[a, b, a]`, each depending on the next; some todos are missing in `order`. */
const findCycle = (nodes: readonly TodoNode[], order: readonly string[]): string[] => {
  const placed = new Set(order)
  const stuck = new Map(nodes.filter(({ id }) => !placed.has(id)).map((node) => [node.id, node]))
  const path = new Set<string>()
  let at = stuck.keys().next().value ?? ''
  while (!path.has(at)) {
    path.add(at)
    at = stuck.get(at)?.dependencies.find((id) => stuck.has(id)) ?? ''
  }
  const walked = [...path]
  return [...walked.slice(walked.indexOf(at)), at]
}

const refuse = (error: string): TodoPlanResult => ({ ok: false, error })

const describeIds = (todos: readonly Todo[]): string =>
  `The todos are: ${formatList(todos.map(({ id }) => id)) || 'none yet'}.`

/** Says that these ids are no todos, and which there are. */
const describeUnknown = (ids: readonly string[], todos: readonly Todo[]): string =>
  `There is no todo ${formatList(ids.map((id) => `'${id}'`))}. ${describeIds(todos)}`

/**
 * The todos after the planner's `update_todos`: known ids are changed in place and keep status, retries and
 * history unless a status is given; new ones follow with the schema's defaults. Nothing changes on an error.
 */
export const applyTodoChanges = (
  existing: readonly Todo[],
  changes: readonly TodoChange[],
  evidence = noEvidence,
): TodoPlanResult => {
  const byId = new Map(changes.map((change) => [change.id, change]))
  const repeated = changes.filter((change) => byId.get(change.id) !== change).map(({ id }) => id)
  if (repeated.length > 0) return refuse(`Each id may stand once; repeated: ${formatList(repeated)}.`)
  const merged = new Map(existing.map((todo) => [todo.id, todo]))
  const nameless = changes.filter(({ id, task }) => task === undefined && !merged.has(id)).map(({ id }) => id)
  if (nameless.length > 0) return refuse(`${describeUnknown(nameless, existing)} A new todo needs its task.`)
  for (const change of changes) merged.set(change.id, mergeTodo(merged.get(change.id), change, evidence))
  const nodes = [...merged.values()]
  if (nodes.length > maxTodos)
    return refuse(`A plan has at most ${maxTodos} todos; change existing ones instead of adding more.`)
  const unknown = nodes.flatMap(({ id, dependencies }) =>
    dependencies.filter((one) => !merged.has(one)).map((one) => `'${id}' depends on '${one}'`),
  )
  if (unknown.length > 0)
    return refuse(`Unknown dependencies: ${formatList(unknown)}. ${describeIds([...merged.values()])}`)
  const dependents = listDependents(nodes)
  const order = sortByDependency(nodes, dependents)
  if (order.length < nodes.length) {
    const cycle = formatCycle(findCycle(nodes, order))
    return refuse(`The dependencies form a cycle: ${cycle}. Take one of them out.`)
  }
  for (const id of order.reverse()) {
    const todo = merged.get(id)
    const lengths = dependents.get(id)?.map((one) => merged.get(one)?.critical_path_length ?? 0) ?? []
    const critical_path_length = 1 + Math.max(0, ...lengths)
    if (todo && todo.critical_path_length !== critical_path_length)
      merged.set(id, { ...todo, critical_path_length })
  }
  const todos = [...merged.values()]
  return { ok: true, todos, changed: todos.filter((todo, at) => existing[at] !== todo) }
}

const maxErrorLength = 1000
const maxOutputLength = 4000
const maxReason = 300
const maxBackOffMs = 60_000

/** Errors of one todo that are remembered: the latest. */
const maxErrors = 20

/** What came of one try: the tool, and the milliseconds of work it took. */
export type TodoAttempt = { now: Date; tool_used: string; execution_time: number }

const isFinished = (todo: Todo): boolean => todo.status === 'completed' || todo.status === 'failed'

/** Not before `retry_after`; a time that cannot be read holds nothing up. */
const isDue = (todo: Todo, now: Date): boolean => !(Date.parse(todo.retry_after ?? '') > now.getTime())

const milliseconds = (value: number): number => (value > 0 && Number.isFinite(value) ? value : 0)

/** A pending todo in work; any other stays as it is. */
export const startTodo = (todo: Todo): Todo =>
  todo.status === 'pending' ? { ...todo, status: 'processing', retry_after: null } : todo

/** A todo in work whose calls did not run, pending again: it has had no try. */
export const putBackTodo = (todo: Todo): Todo =>
  todo.status === 'processing' ? { ...todo, status: 'pending' } : todo

/** An unfinished or failed todo completed; a completed one keeps its first completion. */
export const completeTodo = (todo: Todo, attempt: TodoAttempt & { output: string }): Todo => {
  if (todo.status === 'completed') return todo
  const completion_details = {
    completed_at: attempt.now.toISOString(),
    tool_used: attempt.tool_used,
    execution_time: milliseconds(attempt.execution_time),
    output: cutText(attempt.output, maxOutputLength),
  }
  return { ...todo, status: 'completed', retry_after: null, completion_details }
}

/** Milliseconds to wait before retry number `retry` (from 1): 1 s, doubled each time, 60 s at most. */
export const computeBackOffMs = (retry: number): number => Math.min(1000 * 2 ** (retry - 1), maxBackOffMs)

/** The todo with a call of it that failed, beside others of the same try. */
export const addTodoError = (
  todo: Todo,
  attempt: TodoAttempt & { error: string },
  retry_count = todo.retry,
): Todo => {
  const error = {
    timestamp: attempt.now.toISOString(),
    attempt: (todo.error_history.at(-1)?.attempt ?? 0) + 1,
    tool_used: attempt.tool_used,
    error: cutText(attempt.error, maxErrorLength),
    retry_count,
    execution_time: milliseconds(attempt.execution_time),
  }
  return { ...todo, error_history: [...todo.error_history, error].slice(-maxErrors) }
}

/** The todo as a role names it: completed with what its calls brought, else with the reason; or failed for good. */
const closeTodo = (todo: Todo, { status, reason }: TodoClosing, evidence: ReturnType<FindEvidence>): Todo => {
  if (status === 'completed') return completeTodo(todo, { ...evidence, output: evidence.output || reason })
  if (todo.status === 'failed') return todo
  const failed = { ...todo, status, retry_after: null, completion_details: null }
  return reason === '' ? failed : addTodoError(failed, { ...evidence, error: reason })
}

/**
 * An unfinished todo after a failed try: pending with a back-off while retries are left, then failed.
 * So there are `max_retry + 1` tries in all, and `retry` is `max_retry + 1` once it has failed.
 */
export const failTodo = (todo: Todo, attempt: TodoAttempt & { error: string }): Todo => {
  if (isFinished(todo)) return todo
  const retry = todo.retry + 1
  const failed = { ...addTodoError(todo, attempt, retry), retry }
  if (retry > todo.max_retry) return { ...failed, status: 'failed', retry_after: null }
  const retryAt = new Date(attempt.now.getTime() + computeBackOffMs(retry))
  return { ...failed, status: 'pending', retry_after: retryAt.toISOString() }
}

/** Pending todos whose dependencies are all completed, retry time or not. */
const listStartableTodos = (todos: readonly Todo[]): Todo[] => {
  const completed = new Set(todos.filter((todo) => todo.status === 'completed').map((todo) => todo.id))
  return todos.filter(
    (todo) => todo.status === 'pending' && todo.dependencies.every((id) => completed.has(id)),
  )
}

/** What can be started now: highest priority first, then the longest critical path, then the order of the list. */
export const listReadyTodos = (todos: readonly Todo[], now: Date): Todo[] =>
  listStartableTodos(todos)
    .filter((todo) => isDue(todo, now))
    .sort((a, b) => b.priority - a.priority || b.critical_path_length - a.critical_path_length)

/**
 * What can be worked on, the current one first: what is in work, then what is ready, then what waits for its retry.
 * By the todos alone: a prompt is made of it.
 */
export const listWorkableTodos = (todos: readonly Todo[]): Todo[] => [
  ...todos.filter(({ status }) => status === 'processing'),
  ...new Set([...listReadyTodos(todos, new Date(0)), ...listReadyTodos(todos, endOfTime)]),
]

const endOfTime = new Date(8.64e15)

/** Todos that are neither completed nor failed. */
export const isOpenTodo = (todo: Todo): boolean => !isFinished(todo)

/** Pending todos that depend, directly or through others, on a failed one: they need a new plan. */
export const listBlockedTodos = (todos: readonly Todo[]): Todo[] => {
  const dependents = listDependents(todos)
  const behind = new Set(todos.filter((todo) => todo.status === 'failed').map(({ id }) => id))
  for (const id of behind) for (const dependent of dependents.get(id) ?? []) behind.add(dependent)
  return todos.filter((todo) => todo.status === 'pending' && behind.has(todo.id))
}

/**
 * The earliest time at which there is something to do, when until then there is nothing: every unfinished todo
 * waits for its own retry time, or for one that does. Null when something is ready, in work or blocked, or all is done.
 */
export const findWaitEnd = (todos: readonly Todo[], now: Date): Date | null => {
  if (todos.some((todo) => todo.status === 'processing')) return null
  const unhindered = listStartableTodos(todos)
  if (unhindered.length === 0 || unhindered.some((todo) => isDue(todo, now))) return null
  if (listBlockedTodos(todos).length > 0) return null
  return new Date(Math.min(...unhindered.map((todo) => Date.parse(todo.retry_after ?? ''))))
}

/** How many todos there are of each status. */
export const countTodos = (todos: readonly Todo[]): TodoCounts => {
  const counts = { pending: 0, processing: 0, completed: 0, failed: 0 }
  for (const { status } of todos) counts[status]++
  return counts
}

/** How many todos there are of each status. */
export type TodoCounts = Record<Todo['status'], number>

/** A todo that is neither completed nor failed, and why. */
export type OpenTodo = { id: string; reason: string }

/** What is neither completed nor failed, and why. */
export const listOpenTodos = (todos: readonly Todo[]): OpenTodo[] => {
  const byId = new Map(todos.map((todo) => [todo.id, todo]))
  const blocked = new Set(listBlockedTodos(todos))
  return todos.filter(isOpenTodo).map((todo) => {
    const before = todo.dependencies.filter((id) => byId.get(id)?.status !== 'completed')
    return { id: todo.id, reason: explainOpen(todo, blocked.has(todo), before) }
  })
}

const explainOpen = (todo: Todo, isBlocked: boolean, before: readonly string[]): string => {
  const error = todo.error_history.at(-1)
  if (isBlocked) return `blocked: it depends on ${formatList(before)}, and a task before it failed`
  if (todo.status === 'processing') return 'in work: nothing has named it completed'
  if (todo.retry > 0 && error)
    return `try ${todo.retry} of ${todo.max_retry + 1} failed: ${cutText(error.error, maxReason)}`
  return before.length > 0 ? `waits for ${formatList(before)}` : 'not started'
}
