import { createHash } from 'node:crypto'
import { type AnsweredCall, answeredCall, plannedCalls } from '../state/calls.ts'
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

/** Something that must not come back; `key` tells it from all others. */
type Sight = { key: string; what: string }
/** One plan and what came of it, up to the next. */
type Step = { at: number; end: number; sights: readonly Sight[] }

type Repeat = { times: number; what: string }
/** What the steps of the window that are over came to, up to the plan that stands at `upTo`. */
type Tally = { upTo: number; steps: Step[]; seen: Map<string, Repeat>; repeated: Set<Repeat> }

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
  for (const { key, what } of sights) {
    const repeat = seen.get(key) ?? { times: 0, what }
    seen.set(key, repeat)
    repeat.times++
    if (repeat.times > 1) repeated.add(repeat)
  }
}

const remove = ({ seen, repeated }: Tally, { sights }: Step): void => {
  for (const { key } of sights) {
    const repeat = seen.get(key)
    if (!repeat) continue
    repeat.times--
    if (repeat.times < 2) repeated.delete(repeat)
    if (repeat.times === 0) seen.delete(key)
  }
}

/** Where the first plan from `at` on stands; the end when there is none. */
const nextPlan = (actions: readonly ReadonlyAction[], at: number): number => {
  const found = actions.slice(at).findIndex((action) => plannedCalls(action).length > 0)
  return found < 0 ? actions.length : at + found
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
  // the same call several times in one block is one step
  const prints = new Map(counted.map((one) => [fingerprint(one), one.call.tool]))
  const sameCall = ' was called with the same arguments and gave the same result'
  return {
    at,
    end,
    sights: [
      ...[...prints].map(([key, tool]) => ({ key, what: `${tool}${sameCall}` })),
      ...gaps.map((gap) => ({ key: `gap ${gap}`, what: 'the same gap was found' })),
    ],
  }
}

const hasRetries = ({ result }: ReadonlyAction): boolean =>
  Array.isArray(result.retried) && result.retried.length > 0

const gapOf = ({ node, result }: ReadonlyAction): string[] => {
  if (node !== 'reflection' || typeof result.knowledge_gap !== 'string') return []
  const gap = result.knowledge_gap.trim().toLowerCase().replace(/\s+/g, ' ')
  return gap === '' ? [] : [gap]
}

const known = new WeakMap<ReadonlyAction, string>()

/** Names a call together with its result; made once for each action, so that long turns stay quick. */
const fingerprint = ({ call, action }: AnsweredCall): string => {
  const made = known.get(action)
  if (made) return made
  const { call: _own, ...result } = action.result
  const text = JSON.stringify([call.tool, call.args, result])
  const print = createHash('sha256').update(text).digest('base64')
  known.set(action, print)
  return print
}
