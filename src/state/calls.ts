import { memoizeByObject } from './memoize.ts'
import type { Json } from './runtime-state.ts'
import { contentHash } from './text/content-hash.ts'
import type { ReadonlyAction } from './turn.ts'

/**
 * A tool call as the planner decided it, committed in the planner's action before it runs; `todos` are the tasks it is
 * made for, where there is a plan.
 */
export type PlannedCall = {
  index: number
  id: string
  tool: string
  args: Record<string, Json>
  todos?: string[]
}
/** How the calls of one plan run: side by side, or one after the other. */
export type CallBlock = 'parallel' | 'sequential'

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
  const { index, id, tool, args, todos } = value as Record<keyof PlannedCall, unknown>
  return (
    Object.keys(value).length === (todos === undefined ? 4 : 5) &&
    (todos === undefined || (Array.isArray(todos) && todos.every(isName))) &&
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

/** One branch of a fan-out: a node, and for the planner's calls which one. The node of an open call is its next step. */
export type Branch = { node: string; call: PlannedCall | null }

/** A fan-out and the actions that answered its branches. */
export type FanOut = {
  /** Id of the action that opened it. */
  id: number
  block: CallBlock
  branches: readonly Branch[]
  /** The action of each branch, or undefined while it has none. */
  answers: readonly (ReadonlyAction | undefined)[]
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
  const branches: Branch[] =
    calls.length > 0
      ? calls.map((call) => ({ node: steps.get(call.index) ?? call.tool, call }))
      : opener.next.map((node) => ({ node, call: null }))
  const block = opener.result.block === 'sequential' ? 'sequential' : 'parallel'
  const answers = branches.map(({ node, call }) => answered.get(call ? call.index : node))
  return { id: opener.id, block, branches, answers }
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

/** The same for actions with the same result, whichever call they answer. Made once for each action. */
export const hashResult = memoizeByObject(({ result }: ReadonlyAction): string =>
  contentHash({ ...result, call: null }),
)
