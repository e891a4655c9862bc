import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { type AnsweredCall, answeredCall, nextPlan, plannedCalls } from '../state/calls.ts'
import type { RuntimeState } from '../state/runtime-state.ts'
import { type ReadonlyAction, turnActions } from '../state/turn.ts'

/** `replan`: the same thing came back twice, `stop`: a third time. `why` is for the planner and for people. */
export type Progress = { verdict: 'ok' | 'replan' | 'stop'; why: string }

/** How far back, in actions, a repetition is looked for. */
const window = 600

/** By the list of actions: the router and the planner ask the same of one state. */
const judged = new WeakMap<readonly ReadonlyAction[], Progress>()

/** Whether the turn still gets anywhere: no call with the same result, and no gap of knowledge, may come back. */
export const progress = (state: Pick<RuntimeState, 'action_history'>): Progress => {
  const actions = turnActions(state)
  const verdict = judged.get(actions) ?? judge(actions)
  judged.set(actions, verdict)
  return verdict
}

const judge = (actions: readonly ReadonlyAction[]): Progress => {
  const tally = tallyOf(actions)
  const current = stepAt(actions, tally.upTo)
  add(tally, current)
  const worst = [...tally.repeated].reduce((a, b) => (b.times > a.times ? b : a), { times: 0, what: '' })
  const { times, what } = worst
  remove(tally, current)
  if (times >= 3) return { verdict: 'stop', why: `${what} three times` }
  if (times === 2) return { verdict: 'replan', why: `${what} twice` }
  return { verdict: 'ok', why: '' }
}

/** Something that must not come back; told from all others by `key` and, for a call, by what it brought. */
type Sight = { key: string; what: string; result: Result | null }
type Result = ReadonlyAction['result']
/** One plan and what came of it, up to the next. */
type Step = { at: number; end: number; sights: readonly Sight[] }

type Repeat = Sight & { times: number }
/** What the steps of the window that are over came to, up to the plan that stands at `upTo`; `seen` is by key. */
type Tally = { upTo: number; steps: Step[]; seen: Map<string, Repeat[]>; repeated: Set<Repeat> }

/** By the first action of a turn: each step is looked at once, so that the cost of one does not grow with the turn. */
const tallies = new WeakMap<ReadonlyAction, Tally>()

const tallyOf = (actions: readonly ReadonlyAction[]): Tally => {
  const [first] = actions
  const start = Math.max(0, actions.length - window)
  const known = first && tallies.get(first)
  const tally: Tally =
    // an earlier state of the turn, or one that was taken up anew
    known && known.upTo >= start && known.upTo < actions.length
      ? known
      : { upTo: nextPlan(actions, start), steps: [], seen: new Map(), repeated: new Set() }
  if (first) tallies.set(first, tally)
  for (let step = stepAt(actions, tally.upTo); step.end < actions.length; ) {
    add(tally, step)
    tally.steps.push(step)
    tally.upTo = step.end
    step = stepAt(actions, step.end)
  }
  for (let oldest = tally.steps[0]; oldest && oldest.at < start; oldest = tally.steps[0]) {
    remove(tally, oldest)
    tally.steps.shift()
  }
  return tally
}

const add = ({ seen, repeated }: Tally, { sights }: Step): void => {
  for (const sight of sights) {
    const alike = seen.get(sight.key)
    const repeat = alike?.find((one) => isSame(one, sight))
    if (repeat) {
      repeat.times++
      repeated.add(repeat)
    } else if (alike) alike.push({ ...sight, times: 1 })
    else seen.set(sight.key, [{ ...sight, times: 1 }])
  }
}

const remove = ({ seen, repeated }: Tally, { sights }: Step): void => {
  for (const sight of sights) {
    const alike = seen.get(sight.key) ?? []
    const repeat = alike.find((one) => isSame(one, sight))
    if (!repeat) continue
    repeat.times--
    if (repeat.times < 2) repeated.delete(repeat)
    if (repeat.times > 0) continue
    if (alike.length === 1) seen.delete(sight.key)
    else alike.splice(alike.indexOf(repeat), 1)
  }
}

const stepAt = (actions: readonly ReadonlyAction[], at: number): Step => {
  const plan = actions[at]
  const calls = plan ? plannedCalls(plan) : []
  const end = nextPlan(actions, at + 1)
  const answered: AnsweredCall[] = []
  const gaps: string[] = []
  let isRetried = false
  for (const action of actions.slice(at + 1, end)) {
    const answer = answeredCall(action)
    const call = answer && calls.find((candidate) => candidate.index === answer.index)
    if (call) answered.push({ call, action })
    if (action.node === 'reflection' && hasRetries(action)) isRetried = true
    else gaps.push(...gapOf(action))
  }
  // a retry that a todo grants is no lack of progress
  const counted = answered.filter(({ action }) => !(isRetried && action.result.is_error === true))
  const sights: Sight[] = []
  // the same call several times in one block is one step
  for (const sight of counted.map(sightOf))
    if (!sights.some((one) => one.key === sight.key && isSame(one, sight))) sights.push(sight)
  for (const gap of gaps) sights.push({ key: `gap ${gap}`, what: 'the same gap was found', result: null })
  return { at, end, sights }
}

const hasRetries = ({ result }: ReadonlyAction): boolean =>
  Array.isArray(result.retried) && result.retried.length > 0

const gapOf = ({ node, result }: ReadonlyAction): string[] => {
  if (node !== 'reflection' || typeof result.knowledge_gap !== 'string') return []
  const gap = result.knowledge_gap.trim().toLowerCase().replace(/\s+/g, ' ')
  return gap === '' ? [] : [gap]
}

const sightOf = ({ call, action }: AnsweredCall): Sight => {
  const { call: _own, ...result } = action.result
  const text = JSON.stringify([call.tool, call.args, glanceAt(result)])
  return {
    key: text.length > maxKey ? createHash('sha256').update(text).digest('base64') : text,
    what: `${call.tool} was called with the same arguments and gave the same result`,
    result,
  }
}

/** Characters; longer keys are kept as their hash. */
const maxKey = 1000

/** Tells most values apart without reading them whole; those that are equal look the same. */
const glanceAt = (value: unknown, depth = 0): string => {
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
  const seen = depth < 3 ? names.map((name) => `${name} ${glanceAt(fields.get(name), depth + 1)}`) : names
  return `${Array.isArray(value) ? value.length : ''} ${seen.join()}`
}

/** Of two sights with one key: only here what the calls brought is read whole. */
const isSame = ({ result: a }: Sight, { result: b }: Sight): boolean => a === b || isDeepStrictEqual(a, b)
