import { createHash } from 'node:crypto'
import { type AnsweredCall, answeredCall, type PlannedCall, plannedCalls } from '../state/calls.ts'
import type { RuntimeState } from '../state/runtime-state.ts'
import { type ReadonlyAction, turnActions } from '../state/turn.ts'

/** `replan`: the same thing came back twice, `stop`: a third time. `why` is for the planner and for people. */
export type Progress = { verdict: 'ok' | 'replan' | 'stop'; why: string }

/** How far back a repetition is looked for: the cost of a step must not grow with the turn. */
const window = 600

type Repeat = { times: number; what: string }

/** Whether the turn still gets anywhere: no call with the same result, and no gap of knowledge, may come back. */
export const progress = (state: Pick<RuntimeState, 'action_history'>): Progress => {
  const actions = turnActions(state).slice(-window)
  const repeats = [...repeatedCalls(actions), ...repeatedGaps(actions)]
  const worst = repeats.reduce<Repeat>((a, b) => (b.times > a.times ? b : a), { times: 0, what: '' })
  if (worst.times >= 3) return { verdict: 'stop', why: `${worst.what} three times` }
  if (worst.times === 2) return { verdict: 'replan', why: `${worst.what} twice` }
  return { verdict: 'ok', why: '' }
}

/** One plan, what its calls brought, and whether reflection granted another try of what failed. */
type Step = { answered: AnsweredCall[]; retried: boolean }

const stepsOf = (actions: readonly ReadonlyAction[]): Step[] => {
  const steps: Step[] = []
  let calls: readonly PlannedCall[] = []
  for (const action of actions) {
    const planned = plannedCalls(action)
    const answer = answeredCall(action)
    const step = steps.at(-1)
    if (planned.length > 0) {
      calls = planned
      steps.push({ answered: [], retried: false })
    } else if (step && answer) {
      const call = calls.find((candidate) => candidate.index === answer.index)
      if (call) step.answered.push({ call, action })
    } else if (step && action.node === 'reflection' && hasRetries(action)) step.retried = true
  }
  return steps
}

/** A retry that a todo grants is no lack of progress. */
const hasRetries = ({ result }: ReadonlyAction): boolean =>
  Array.isArray(result.retried) && result.retried.length > 0

/** Counts steps, not calls: the same call twice in one block is one step. */
const repeatedCalls = (actions: readonly ReadonlyAction[]): Repeat[] => {
  const counts = new Map<string, Repeat>()
  for (const { answered, retried } of stepsOf(actions)) {
    const counted = answered.filter(({ action }) => !(retried && action.result.is_error === true))
    const tools = new Map(counted.map((one) => [fingerprint(one), one.call.tool]))
    for (const [key, tool] of tools)
      count(counts, key, `${tool} was called with the same arguments and gave the same result`)
  }
  return [...counts.values()]
}

const repeatedGaps = (actions: readonly ReadonlyAction[]): Repeat[] => {
  const counts = new Map<string, Repeat>()
  for (const action of actions) {
    const { knowledge_gap } = action.result
    if (action.node !== 'reflection' || typeof knowledge_gap !== 'string' || hasRetries(action)) continue
    const gap = knowledge_gap.trim().toLowerCase().replace(/\s+/g, ' ')
    if (gap !== '') count(counts, gap, 'the same gap was found')
  }
  return [...counts.values()]
}

const count = (counts: Map<string, Repeat>, key: string, what: string): void => {
  const seen = counts.get(key)
  if (seen) seen.times++
  else counts.set(key, { times: 1, what })
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
