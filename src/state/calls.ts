import { memoizeByObject } from './memoize.ts'
import type { Json } from './runtime-state.ts'
import { contentHash } from './text/content-hash.ts'
import type { ReadonlyAction } from './turn.ts'

/**
 * A tool call as the planner decided it, committed in the planner's action before it runs; `todos` are the tasks it is
 * made for, where there is a plan. Calls that name the same `exclusive` resource run in order.
 */
export type PlannedCall = {
  index: number
  id: string
  tool: string
  args: Record<string, Json>
  todos?: string[]
  exclusive?: string
}
/** How the calls of one plan run: side by side, or one after the other. */
export type CallBlock = 'parallel' | 'sequential'
/** What the first call of a sequential plan that fails does: the rest does not run, or it does all the same. */
export type OnFailure = 'stop' | 'go_on'

const none: readonly PlannedCall[] = []

/**
 * The calls an action decided on, which its `next` names in the same order; empty for actions that decided on none.
 * A tool's own data may be called `calls` too, so that alone does not count. Read once for each action.
 */
export const readPlannedCalls = memoizeByObject(
  ({ result: { calls, call }, next }: ReadonlyAction): readonly PlannedCall[] =>
    call === undefined &&
    Array.isArray(calls) &&
    calls.length === next.length &&
    calls.every((planned, at) => isPlannedCall(planned) && planned.tool === next[at])
      ? (calls as unknown as PlannedCall[])
      : none,
)

/** By hand, not by a schema: a state is JSON already, and a long turn that is taken up has thousands to look at. */
const isPlannedCall = (value: unknown): value is PlannedCall => {
  if (typeof value !== 'object' || value === null) return false
  const { index, id, tool, args, todos, exclusive } = value as Record<keyof PlannedCall, unknown>
  const optional = Number(todos !== undefined) + Number(exclusive !== undefined)
  return (
    Object.keys(value).length === 4 + optional &&
    (todos === undefined || (Array.isArray(todos) && todos.every(isName))) &&
    (exclusive === undefined || isName(exclusive)) &&
    Number.isSafeInteger(index) &&
    (index as number) >= 0 &&
    isName(id) &&
    isName(tool) &&
    typeof args === 'object' &&
    args !== null &&
    !Array.isArray(args)
  )
}

const isName = (value: unknown): boolean => typeof value === 'string' && value !== ''

/** The index of the first plan (an action with calls) at or after `from`; the length when there is none. */
export const findNextPlan = (actions: readonly ReadonlyAction[], from: number): number => {
  for (let at = from; at < actions.length; at++) {
    const action = actions[at]
    if (action && readPlannedCalls(action).length > 0) return at
  }
  return actions.length
}

type CallMark = { index: number; id: string }

const readCall = ({ result: { call } }: ReadonlyAction): (CallMark & { open: boolean }) | null => {
  if (typeof call !== 'object' || call === null || !('index' in call) || !('id' in call)) return null
  const { index, id } = call
  const open = 'open' in call && call.open === true
  return typeof index === 'number' && typeof id === 'string' ? { index, id, open } : null
}

/** The hash of the arguments that a call ran with, where results took the place of references in the planned ones; else null. */
export const readResolvedHash = ({ result: { call } }: ReadonlyAction): string | null =>
  typeof call === 'object' && call !== null && 'resolved_sha256' in call ? String(call.resolved_sha256) : null

/** Whether the rest of a plan does not run once one of its calls has failed. */
export const stopsOnFailure = ({ result }: ReadonlyAction): boolean =>
  result.block === 'sequential' && result.on_failure === 'stop'

/** The index of the call whose failure keeps the rest of a plan from running; null where none did. */
export const findStop = (
  plan: ReadonlyAction,
  answers: readonly (ReadonlyAction | undefined)[],
): number | null => {
  const failed = stopsOnFailure(plan) ? answers.findIndex((answer) => answer?.result.is_error === true) : -1
  return failed < 0 ? null : failed
}

/** What is said in place of the result of a call that did not run. */
export const explainNotRun = (failed: number): string => `Not run: step ${failed} failed.`

/** Which call an action answers, or null. */
export const readAnsweredCall = (action: ReadonlyAction): CallMark | null => {
  const call = readCall(action)
  return call && !call.open ? { index: call.index, id: call.id } : null
}

/** The index of the call that an action leaves open for the step that its `next` names, or null. */
export const readOpenCall = (action: ReadonlyAction): number | null => {
  const call = readCall(action)
  return call?.open ? call.index : null
}

/** The lane of the calls of a plan that keep their order: they run one after the other, after all others. */
export const orderedLane = Symbol('ordered')

/**
 * How many calls of a plan run side by side, from the first: all of a parallel one; of a sequential one those that only read, which come
 * before the first that may change something. Actions of earlier versions name none.
 */
const countSideBySide = ({ result: { block, leading_reads } }: ReadonlyAction): number => {
  if (block !== 'sequential') return Number.POSITIVE_INFINITY
  return typeof leading_reads === 'number' ? leading_reads : 0
}

/**
 * One branch of a fan-out: a node, and for the planner's calls which one. The node of an open call is its next step. Branches of
 * one lane run one after the other.
 */
export type Branch = { node: string; call: PlannedCall | null; lane: string | number | symbol }

/** A fan-out and the actions that answered its branches. */
export type FanOut = {
  /** Id of the action that opened it. */
  id: number
  branches: readonly Branch[]
  /** The action of each branch, or undefined while it has none. */
  answers: readonly (ReadonlyAction | undefined)[]
  /** Whether a branch has failed, and those without an action do not run. */
  isStopped: boolean
}

/** The last fan-out of a turn: an action with calls, or with several names in `next`. Null when there is none. */
export const findLastFanOut = (actions: readonly ReadonlyAction[]): FanOut | null => {
  const at = actions.findLastIndex((action) => action.next.length > 1 || readPlannedCalls(action).length > 0)
  const opener = actions[at]
  if (!opener) return null
  const calls = readPlannedCalls(opener)
  const answered = new Map<number | string, ReadonlyAction>()
  const steps = new Map<number, string>()
  for (const action of actions.slice(at + 1)) {
    const open = readOpenCall(action)
    if (open !== null) steps.set(open, action.next[0] ?? '')
    const key = calls.length > 0 ? readAnsweredCall(action)?.index : action.node
    if (key !== undefined && !answered.has(key)) answered.set(key, action)
  }
  const sideBySide = countSideBySide(opener)
  const branches: Branch[] =
    calls.length > 0
      ? calls.map((call) => ({
          node: steps.get(call.index) ?? call.tool,
          call,
          lane: call.index >= sideBySide ? orderedLane : (call.exclusive ?? call.index),
        }))
      : opener.next.map((node, index) => ({ node, call: null, lane: index }))
  const answers = branches.map(({ node, call }) => answered.get(call ? call.index : node))
  return { id: opener.id, branches, answers, isStopped: findStop(opener, answers) !== null }
}

/** The first branch of each lane that has no action yet: what runs now, or is about to. None once a failure has stopped the rest. */
export const listFronts = ({ branches, answers, isStopped }: FanOut): readonly Branch[] => {
  const lanes = new Set<Branch['lane']>()
  return branches.filter(({ lane }, index) => {
    if (isStopped || answers[index] || lanes.has(lane) || (lane === orderedLane && lanes.size > 0))
      return false
    lanes.add(lane)
    return true
  })
}

/** A call that has been answered, beside its answer. */
export type AnsweredCall = { call: PlannedCall; action: ReadonlyAction }

/** Every call of the turn that has its action, in order of their actions. */
export const listAnsweredCalls = memoizeByObject(
  (actions: readonly ReadonlyAction[]): readonly AnsweredCall[] => {
    let calls = new Map<number, PlannedCall>()
    const answered: AnsweredCall[] = []
    for (const action of actions) {
      const planned = readPlannedCalls(action)
      if (planned.length > 0) calls = new Map(planned.map((call) => [call.index, call]))
      const answer = readAnsweredCall(action)
      const call = answer && calls.get(answer.index)
      if (call) answered.push({ call, action })
    }
    return answered
  },
)

/** The same for calls of one tool with the same arguments. Made once for each call. */
export const hashCall = memoizeByObject(({ tool, args }: PlannedCall): string => contentHash([tool, args]))

/**
 * The same for actions whose results read the same to a model, of the same resolved arguments, whichever call they answer: where one
 * has a text, its other data, such as the time of a look-up, does not count. Made once for each action.
 */
export const hashResult = memoizeByObject((action: ReadonlyAction): string => {
  const { call: _call, ...result } = action.result
  const { text, text_sha256, is_error } = result
  const read = contentHash(typeof text === 'string' ? text : (text_sha256 ?? result))
  return `${read} ${is_error === true} ${readResolvedHash(action)}`
})
