import { answeredCall, nextPlan, type PlannedCall, plannedCalls } from '../calls.ts'
import type { ReadonlyAction } from '../turn.ts'

/** One step of a turn: the plan that opened it, what answered its calls, and what reflection made of that. */
export type Round = {
  plan: ReadonlyAction
  /** Where the plan stands in the turn, and where the next one does. */
  at: number
  end: number
  calls: readonly { call: PlannedCall; answer: ReadonlyAction | undefined }[]
  reflections: readonly ReadonlyAction[]
}

/** Rounds that are over, by the first action of the turn: each is read once, so a step costs the same in a long turn. */
const over = new WeakMap<ReadonlyAction, Round[]>()

/** The rounds of a turn in order; those that are over come as the same objects each time. */
export const roundsOf = (actions: readonly ReadonlyAction[]): Round[] => {
  const [first] = actions
  if (!first) return []
  const known = over.get(first) ?? []
  over.set(first, known)
  // an earlier state of the turn has not come so far
  const stale = known.findIndex(({ end, at, plan }) => end >= actions.length || actions[at] !== plan)
  const rounds = stale < 0 ? [...known] : known.slice(0, stale)
  for (let at = nextPlan(actions, rounds.at(-1)?.end ?? 0); at < actions.length; ) {
    const round = roundAt(actions, at)
    rounds.push(round)
    if (round.end < actions.length && rounds.length > known.length) known.push(round)
    at = round.end
  }
  return rounds
}

const roundAt = (actions: readonly ReadonlyAction[], at: number): Round => {
  const plan = actions[at] as ReadonlyAction
  const end = nextPlan(actions, at + 1)
  const answers = new Map<number, ReadonlyAction>()
  const reflections: ReadonlyAction[] = []
  for (const action of actions.slice(at + 1, end)) {
    const answered = answeredCall(action)
    if (answered) answers.set(answered.index, action)
    else if (action.node === 'reflection') reflections.push(action)
  }
  const calls = plannedCalls(plan).map((call) => ({ call, answer: answers.get(call.index) }))
  return { plan, at, end, calls, reflections }
}
