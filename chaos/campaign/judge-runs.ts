import { readPlannedCalls } from '../../src/state/calls.ts'
import type { ActionRow } from '../../src/state/fold.ts'
import { type RuntimeState, runtimeStateSchema } from '../../src/state/runtime-state.ts'
import { sumUsage } from '../../src/state/token-usage.ts'
import type { Accepted } from './clients.ts'
import { answerOf, callsOf, resultsOf, type Script } from './job.ts'

export type RunRow = {
  run_id: string
  session_id: string
  turn: number
  status: string
  finish_reason: string | null
  first_seq: number | null
  next_seq: number | null
  result: { answer: string | null; error: { code?: string; message?: string } | null } | null
}

type Actions = RuntimeState['action_history'][number]

/** A run ended as it was asked to: cancelled only when that was asked, else with the answer of its script. */
export const checkRun = (
  run: RunRow,
  rows: readonly (ActionRow & { run_id: string })[],
  promised: Accepted | undefined,
): string[] => {
  const faults: string[] = []
  const mine = rows.filter(({ run_id }) => run_id === run.run_id)
  if (mine.some(({ turn }) => turn !== run.turn)) faults.push('its actions stand in another turn')
  if (
    run.first_seq !== null &&
    (mine[0]?.seq !== run.first_seq || (mine.at(-1)?.seq ?? 0) + 1 !== run.next_seq)
  )
    faults.push(
      `its actions are ${mine[0]?.seq} to ${mine.at(-1)?.seq}, its row says ${run.first_seq} up to ${run.next_seq}`,
    )
  if (!run.result) faults.push('it has no result')
  if (run.status === 'cancelled' && promised?.isCancelled) return faults
  if (run.status === 'failed' && run.result?.error?.code === 'poison' && promised?.isGivenUp) return faults
  if (run.status !== 'completed' || run.finish_reason !== 'answered') {
    faults.push(`lost: it is ${run.status} ${run.finish_reason ?? ''} ${JSON.stringify(run.result?.error)}`)
    return faults
  }
  if (promised)
    faults.push(
      ...scriptFaults(
        promised.job,
        mine.map(({ body }) => body),
        run.result?.answer ?? null,
      ),
    )
  return faults
}

/** The actions that a script asks for, each as often as it asks, and the answer they add up to. */
const scriptFaults = (
  script: Script,
  actions: readonly { node: string }[],
  answer: string | null,
): string[] => {
  const calls = script.rounds.map((_, round) => callsOf(script, round, ''))
  const expected = [
    'load-session',
    'user-context',
    'answer',
    'end',
    'planner',
    ...calls.flatMap((round) => ['planner', 'reflection', ...round.map(({ tool }) => tool)]),
  ]
  const faults: string[] = []
  const found = actions.map(({ node }) => node)
  if (found.toSorted().join() !== expected.toSorted().join()) {
    const what = found.length > expected.length ? 'doubled actions' : 'not the actions of its script'
    faults.push(`${what}: ${found.join(' ')}; expected ${expected.toSorted().join(' ')}`)
  }
  const results = JSON.parse(/^Done \S+: (.*)$/.exec(answer ?? '')?.[1] ?? '[]') as string[]
  const allowed = calls.flatMap((round, at) => round.map((call, index) => resultsOf(call, at, index)))
  const fits =
    answer === answerOf(script.name, results) &&
    results.length === allowed.length &&
    results.every((result, at) =>
      allowed[at]?.some((one) => (typeof one === 'string' ? one === result : one.test(result))),
    )
  if (!fits) faults.push(`the answer is not the script's: ${answer}`)
  return faults
}

/** The invariants of CONTRACT section 5 over all turns of a session whose runs have ended. */
export const checkState = (state: RuntimeState): string[] => {
  if (state.action_history.length === 0) return []
  const faults: string[] = []
  const parsed = runtimeStateSchema.safeParse(state)
  if (!parsed.success) faults.push(`the state does not check: ${parsed.error.message}`)
  const turns = state.prompts.length
  for (const field of ['task_goals', 'todos', 'action_history', 'usage'] as const)
    if (state[field].length !== turns)
      faults.push(`${field} has ${state[field].length} entries for ${turns} turns`)
  for (const [at, actions] of state.action_history.entries())
    faults.push(...turnFaults(actions, state.usage[at]).map((what) => `turn ${at + 1}: ${what}`))
  return faults
}

const turnFaults = (actions: Actions, usage: unknown): string[] => {
  // cancelled before anybody had claimed it
  if (actions.length === 0) return []
  const faults: string[] = []
  if (JSON.stringify(usage) !== JSON.stringify(sumUsage(actions.map((action) => action.usage))))
    faults.push('its usage is not the sum of its actions')
  if (actions[0]?.node !== 'load-session') faults.push(`it begins with ${actions[0]?.node}`)
  for (const [index, { node, id }] of actions.entries())
    if (index > 0 && node !== 'end' && !actions.slice(0, index).some(({ next }) => next.includes(node)))
      faults.push(`no earlier action leads to ${node} (${id})`)
  const ends = actions.filter(({ node }) => node === 'end')
  if (ends.length !== 1 || actions.at(-1) !== ends[0])
    faults.push(`it has ${ends.length} ends, and one has to be last`)
  return [...faults, ...callFaults(actions)]
}

/** Each call of each plan was answered at most once. */
const callFaults = (actions: Actions): string[] => {
  const faults: string[] = []
  let answered = new Set<number>()
  for (const action of actions) {
    if (readPlannedCalls(action).length > 0) answered = new Set()
    const call = action.result.call as { index?: number } | undefined
    if (call?.index === undefined) continue
    if (answered.has(call.index))
      faults.push(`doubled: call ${call.index} was answered again by action ${action.id}`)
    answered.add(call.index)
  }
  return faults
}
