import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { type AnsweredCall, findNextPlan, readAnsweredCall, readPlannedCalls } from '../state/calls.ts'
import type { RuntimeState } from '../state/runtime-state.ts'
import { type ReadonlyAction, turnActions } from '../state/turn.ts'

/** `replan`: the same thing came back twice, `stop`: a third time. `why` is for the planner and for people. */
export type Progress = { verdict: 'ok' | 'replan' | 'stop'; reason: string }

/** How far back, in actions, a repetition is looked for. */
const window = 600

/** By the list of actions: the router and the planner ask the same of one state. */
const verdicts = new WeakMap<readonly ReadonlyAction[], Progress>()

/** Whether the turn makes progress: no call with the same result, and no knowledge gap, may repeat. */
export const checkProgress = (state: Pick<RuntimeState, 'action_history'>): Progress => {
  const actions = turnActions(state)
  const verdict = verdicts.get(actions) ?? judgeActions(actions)
  verdicts.set(actions, verdict)
  return verdict
}

const judgeActions = (actions: readonly ReadonlyAction[]): Progress => {
  const tally = updateTally(actions)
  const current = stepAt(actions, tally.upTo)
  addStep(tally, current)
  const worst = [...tally.repeated].reduce((a, b) => (b.times > a.times ? b : a), { times: 0, what: '' })
  const { times, what } = worst
  removeStep(tally, current)
  if (times >= 3) return { verdict: 'stop', reason: `${what} three times` }
  if (times === 2) return { verdict: 'replan', reason: `${what} twice` }
  return { verdict: 'ok', reason: '' }
}

/** Something that must not repeat; identified by `key` and, for a call, by its result. */
type Observation = { key: string; what: string; result: Result | null }
type Result = ReadonlyAction['result']
/** One plan and what came of it, up to the next. */
type PlanStep = { at: number; end: number; sights: readonly Observation[] }

type Repeat = Observation & { times: number }
/** The observations of the completed steps in the window, up to the plan at index `upTo`; `seen` is by key. */
type Tally = { upTo: number; steps: PlanStep[]; seen: Map<string, Repeat[]>; repeated: Set<Repeat> }

/** By the first action of a turn: each step is looked at once, so that the cost of one does not grow with the turn. */
const tallies = new WeakMap<ReadonlyAction, Tally>()

const updateTally = (actions: readonly ReadonlyAction[]): Tally => {
  const [first] = actions
  const start = Math.max(0, actions.length - window)
  const known = first && tallies.get(first)
  const tally: Tally =
    // an earlier state of the turn, or one that was taken up anew
    known && known.upTo >= start && known.upTo < actions.length
      ? known
      : { upTo: findNextPlan(actions, start), steps: [], seen: new Map(), repeated: new Set() }
  if (first) tallies.set(first, tally)
  for (let step = stepAt(actions, tally.upTo); step.end < actions.length; ) {
    addStep(tally, step)
    tally.steps.push(step)
    tally.upTo = step.end
    step = stepAt(actions, step.end)
  }
  for (let oldest = tally.steps[0]; oldest && oldest.at < start; oldest = tally.steps[0]) {
    removeStep(tally, oldest)
    tally.steps.shift()
  }
  return tally
}

const addStep = ({ seen, repeated }: Tally, { sights }: PlanStep): void => {
  for (const sight of sights) {
    const alike = seen.get(sight.key)
    const repeat = alike?.find((one) => isSameObservation(one, sight))
    if (repeat) {
      repeat.times++
      repeated.add(repeat)
    } else if (alike) alike.push({ ...sight, times: 1 })
    else seen.set(sight.key, [{ ...sight, times: 1 }])
  }
}

const removeStep = ({ seen, repeated }: Tally, { sights }: PlanStep): void => {
  for (const sight of sights) {
    const alike = seen.get(sight.key) ?? []
    const repeat = alike.find((one) => isSameObservation(one, sight))
    if (!repeat) continue
    repeat.times--
    if (repeat.times < 2) repeated.delete(repeat)
    if (repeat.times > 0) continue
    if (alike.length === 1) seen.delete(sight.key)
    else alike.splice(alike.indexOf(repeat), 1)
  }
}

const stepAt = (actions: readonly ReadonlyAction[], at: number): PlanStep => {
  const plan = actions[at]
  const calls = plan ? readPlannedCalls(plan) : []
  const end = findNextPlan(actions, at + 1)
  const answered: AnsweredCall[] = []
  const gaps: string[] = []
  let isRetried = false
  for (const action of actions.slice(at + 1, end)) {
    const answer = readAnsweredCall(action)
    const call = answer && calls.find((candidate) => candidate.index === answer.index)
    if (call) answered.push({ call, action })
    if (action.node === 'reflection' && hasRetries(action)) isRetried = true
    else gaps.push(...readGap(action))
  }
  // a retry that a todo grants is no lack of progress
  const counted = answered.filter(({ action }) => !(isRetried && action.result.is_error === true))
  const sights: Observation[] = []
  // the same call several times in one block is one step
  for (const sight of counted.map(toObservation))
    if (!sights.some((one) => one.key === sight.key && isSameObservation(one, sight))) sights.push(sight)
  for (const gap of gaps) sights.push({ key: `gap ${gap}`, what: 'the same gap was found', result: null })
  return { at, end, sights }
}

const hasRetries = ({ result }: ReadonlyAction): boolean =>
  Array.isArray(result.retried) && result.retried.length > 0

const readGap = ({ node, result }: ReadonlyAction): string[] => {
  if (node !== 'reflection' || typeof result.knowledge_gap !== 'string') return []
  const gap = result.knowledge_gap.trim().toLowerCase().replace(/\s+/g, ' ')
  return gap === '' ? [] : [gap]
}

const toObservation = ({ call, action }: AnsweredCall): Observation => {
  const { call: _own, ...result } = action.result
  const text = JSON.stringify([call.tool, call.args, summarize(result)])
  return {
    key: text.length > maxKey ? createHash('sha256').update(text).digest('base64') : text,
    what: `${call.tool} was called with the same arguments and gave the same result`,
    result,
  }
}

/** Characters; longer keys are kept as their hash. */
const maxKey = 1000

/** Distinguishes most values without reading them whole; equal ones have the same summary. */
const summarize = (value: unknown, depth = 0): string => {
  if (typeof value === 'string')
    return value.length <= 80 ? value : `${value.length} ${value.slice(0, 40)} ${value.slice(-40)}`
  if (typeof value !== 'object' || value === null) return String(value)
  const fields = new Map<string, unknown>(
    Array.isArray(value)
      ? [
          ['first', value[0]],
          ['last', value.at(-1)],
        ]
      : Object.entries(value),
  )
  const names = [...fields.keys()].sort()
  const seen = depth < 3 ? names.map((name) => `${name} ${summarize(fields.get(name), depth + 1)}`) : names
  return `${Array.isArray(value) ? value.length : ''} ${seen.join()}`
}

/** Of two observations with one key: only here the results are read whole. */
const isSameObservation = ({ result: a }: Observation, { result: b }: Observation): boolean =>
  a === b || isDeepStrictEqual(a, b)
