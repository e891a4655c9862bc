import {
  type AnsweredCall,
  findNextPlan,
  hashCall,
  hashResult,
  listAnsweredCalls,
  readResolvedHash,
} from '../state/calls.ts'
import { memoizeByObject } from '../state/memoize.ts'
import type { RuntimeState } from '../state/runtime-state.ts'
import { contentHash } from '../state/text/content-hash.ts'
import { type ReadonlyAction, turnActions } from '../state/turn.ts'

/** `replan`: the same thing came back twice, `stop`: a third time. `why` is for the planner and for people. */
export type Progress = { verdict: 'ok' | 'replan' | 'stop'; reason: string }

/** How far back, in actions, a repetition is looked for. */
const window = 600

/** Whether the turn makes progress: no call with the same result, and no knowledge gap after the same calls, may repeat. */
export const checkProgress = (state: Pick<RuntimeState, 'action_history'>): Progress =>
  judgeActions(turnActions(state))

/** Once for each list of actions: the router and the planner ask the same of one state. */
const judgeActions = memoizeByObject((actions: readonly ReadonlyAction[]): Progress => {
  const seen = new Map<string, Repeat>()
  const repeated = new Set<Repeat>()
  for (let at = findNextPlan(actions, Math.max(0, actions.length - window)); at < actions.length; ) {
    const { end, observations } = stepAt(actions, at)
    for (const [key, what] of observations) {
      const repeat = seen.get(key) ?? { what, times: 0 }
      seen.set(key, repeat)
      if (++repeat.times > 1) repeated.add(repeat)
    }
    at = end
  }
  const { times, what } = [...repeated].reduce((a, b) => (b.times > a.times ? b : a), { times: 0, what: '' })
  if (times >= 3) return { verdict: 'stop', reason: `${what} three times` }
  if (times === 2) return { verdict: 'replan', reason: `${what} twice` }
  return { verdict: 'ok', reason: '' }
})

type Repeat = { what: string; times: number }
/** One plan and what came of it, up to the next plan: `next`, at the index `end`. */
type PlanStep = { end: number; next: ReadonlyAction | undefined; observations: readonly Observation[] }

/** Completed steps by their plan: each is read once, so that the cost of one does not grow with the turn. */
const completedSteps = new WeakMap<ReadonlyAction, PlanStep>()

const stepAt = (actions: readonly ReadonlyAction[], at: number): PlanStep => {
  const plan = actions[at] as ReadonlyAction
  const known = completedSteps.get(plan)
  // in an earlier state of the turn the step was not complete
  if (known && known.next === actions[known.end]) return known
  const end = findNextPlan(actions, at + 1)
  const step = { end, next: actions[end], observations: observe(plan, actions.slice(at + 1, end)) }
  if (step.next) completedSteps.set(plan, step)
  return step
}

/** Something that must not repeat, identified by its key. */
type Observation = readonly [key: string, what: string]

const observe = (plan: ReadonlyAction, since: readonly ReadonlyAction[]): Observation[] => {
  const isRetried = since.some(grantsRetries)
  const answered = listAnsweredCalls([plan, ...since])
  const calls = answered
    // a retry that a todo grants is no lack of progress
    .filter(({ action }) => !(isRetried && action.result.is_error === true))
    .map(toObservation)
  const gaps = since.filter((action) => !grantsRetries(action)).flatMap((action) => findGap(action, answered))
  // the same call several times in one block is one step
  return [...new Map(calls), ...gaps]
}

const grantsRetries = ({ node, result }: ReadonlyAction): boolean =>
  node === 'reflection' && Array.isArray(result.retried) && result.retried.length > 0

/** Other calls that leave the same gap are a search that goes on. */
const findGap = ({ node, result }: ReadonlyAction, answered: readonly AnsweredCall[]): Observation[] => {
  if (node !== 'reflection' || typeof result.knowledge_gap !== 'string') return []
  const gap = result.knowledge_gap.trim().toLowerCase().replace(/\s+/g, ' ')
  if (gap === '') return []
  const made = answered.map(({ call, action }) => `${hashCall(call)} ${readResolvedHash(action)}`)
  const key = contentHash([...new Set(made)].sort())
  return [[`gap ${key} ${gap}`, 'the same gap was found after the same calls']]
}

const toObservation = ({ call, action }: AnsweredCall): Observation => [
  `${hashCall(call)} ${hashResult(action)}`,
  `${call.tool} was called with the same arguments and gave the same result`,
]
