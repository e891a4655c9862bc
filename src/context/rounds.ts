import {
  findNextPlan,
  findStop,
  type PlannedCall,
  readAnsweredCall,
  readPlannedCalls,
} from '../state/calls.ts'
import type { ReadonlyAction } from '../state/turn.ts'

/** One step of a turn: the plan that opened it, what answered its calls, and what reflection made of that. */
export type PlanRound = {
  plan: ReadonlyAction
  /** The index of the plan in the turn, and of the next one. */
  start: number
  end: number
  calls: readonly { call: PlannedCall; answer: ReadonlyAction | undefined }[]
  /** The index of the call whose failure kept the rest from running, or null. */
  stoppedBy: number | null
  reflections: readonly ReadonlyAction[]
}

/** Rounds that are over, by the first action of the turn: each is read once, so a step costs the same in a long turn. */
const finishedRounds = new WeakMap<ReadonlyAction, PlanRound[]>()

/** The rounds of a turn in order; those that are over come as the same objects each time. */
export const listRounds = (actions: readonly ReadonlyAction[]): PlanRound[] => {
  const [first] = actions
  if (!first) return []
  const known = finishedRounds.get(first) ?? []
  finishedRounds.set(first, known)
  // an earlier state of the turn has not come so far
  const stale = known.findIndex(({ end, start, plan }) => end >= actions.length || actions[start] !== plan)
  const rounds = stale < 0 ? [...known] : known.slice(0, stale)
  for (let at = findNextPlan(actions, rounds.at(-1)?.end ?? 0); at < actions.length; ) {
    const round = readRound(actions, at)
    rounds.push(round)
    if (round.end < actions.length && rounds.length > known.length) known.push(round)
    at = round.end
  }
  return rounds
}

const readRound = (actions: readonly ReadonlyAction[], start: number): PlanRound => {
  const plan = actions[start] as ReadonlyAction
  const end = findNextPlan(actions, start + 1)
  const answers = new Map<number, ReadonlyAction>()
  const reflections: ReadonlyAction[] = []
  for (const action of actions.slice(start + 1, end)) {
    const answered = readAnsweredCall(action)
    if (answered) answers.set(answered.index, action)
    else if (action.node === 'reflection') reflections.push(action)
  }
  const calls = readPlannedCalls(plan).map((call) => ({ call, answer: answers.get(call.index) }))
  const inOrder = calls.map(({ answer }) => answer)
  return { plan, start, end, calls, stoppedBy: findStop(plan, inOrder), reflections }
}
