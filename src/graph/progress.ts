import { answeredCalls } from '../state/calls.ts'
import type { RuntimeState } from '../state/runtime-state.ts'
import { turnActions, turnTodos } from '../state/turn.ts'

/** `replan`: the same thing came back twice, `stop`: a third time. `why` is for the planner and for people. */
export type Progress = { verdict: 'ok' | 'replan' | 'stop'; why: string }

type Repeat = { times: number; what: string }

/** Whether the turn still gets anywhere: no call with the same result, and no gap of knowledge, may come back. */
export const progress = (state: Pick<RuntimeState, 'action_history' | 'todos'>): Progress => {
  const repeats = [...repeatedCalls(state), ...repeatedGaps(state)]
  const worst = repeats.reduce<Repeat>((a, b) => (b.times > a.times ? b : a), { times: 0, what: '' })
  if (worst.times >= 3) return { verdict: 'stop', why: `${worst.what} three times` }
  if (worst.times === 2) return { verdict: 'replan', why: `${worst.what} twice` }
  return { verdict: 'ok', why: '' }
}

const repeatedCalls = (state: Pick<RuntimeState, 'action_history' | 'todos'>): Repeat[] => {
  const counts = new Map<string, Repeat & { tool: string }>()
  for (const { call, action } of answeredCalls(turnActions(state))) {
    const { call: _own, ...result } = action.result
    const key = JSON.stringify([call.tool, call.args, result])
    const seen = counts.get(key)
    if (seen) seen.times++
    else
      counts.set(key, {
        times: 1,
        tool: call.tool,
        what: `${call.tool} was called with the same arguments and gave the same result`,
      })
  }
  // a retry that a todo grants is no lack of progress
  const granted = (tool: string): number =>
    turnTodos(state).reduce(
      (sum, todo) => sum + todo.error_history.filter((error) => error.tool_used === tool).length,
      0,
    )
  return [...counts.values()].map(({ times, tool, what }) => ({
    times: times - (times > 1 ? granted(tool) : 0),
    what,
  }))
}

const repeatedGaps = (state: Pick<RuntimeState, 'action_history'>): Repeat[] => {
  const counts = new Map<string, Repeat>()
  for (const { node, result } of turnActions(state)) {
    if (node !== 'reflection' || typeof result.knowledge_gap !== 'string') continue
    const gap = result.knowledge_gap.trim().toLowerCase().replace(/\s+/g, ' ')
    if (gap === '') continue
    const seen = counts.get(gap)
    if (seen) seen.times++
    else counts.set(gap, { times: 1, what: 'the same gap was found' })
  }
  return [...counts.values()]
}
