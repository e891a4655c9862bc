import { partShares } from '../../src/context/budget.ts'
import { findCompactable, summarizeByRules } from '../../src/context/compaction.ts'
import { applyAction } from '../../src/state/fold.ts'
import type { Patch } from '../../src/state/patch.ts'
import { type ActionBody, emptyState, type RuntimeState } from '../../src/state/runtime-state.ts'
import { answer, body, plan } from '../../test/support/actions.ts'

/** A session as its states would be: talk, calls and results of 1.5 KB, judged in turn as more and less relevant. */

const words = 'river stone maple window copper garden signal harbour lantern meadow orbit saddle'.split(' ')
const prose = (seed: number, count: number): string =>
  Array.from({ length: count }, (_, at) => words[(seed * 7 + at * 5 + (at >> 3)) % words.length]).join(' ')

const append = (state: RuntimeState, turn: number, one: ActionBody, patch: Patch = {}): RuntimeState =>
  applyAction(state, { seq: (state.action_history.flat().at(-1)?.id ?? 0) + 1, turn, body: one, patch })

/** The turn before is ended with an answer, and one more begins. */
export const openTurn = (before: RuntimeState, turn: number): RuntimeState => {
  const ended =
    turn === 1
      ? before
      : append(before, turn - 1, body('end'), {
          chat_history: [{ role: 'assistant', content: prose(turn, 80), turn: turn - 1 }],
        })
  const prompt = prose(turn + 1000, 25)
  return append(ended, turn, body('load-session', { next: ['planner'] }), {
    prompts: prompt,
    chat_history: [{ role: 'user', content: prompt, turn }],
  })
}

/** So many steps more of a turn. */
export const addSteps = (before: RuntimeState, turn: number, steps: number): RuntimeState => {
  let state = before
  for (let step = 0; step < steps; step++) {
    state = append(state, turn, plan([{ tool: 'look', args: { q: prose(step, 5) }, id: `t${turn}s${step}` }]))
    const id = state.action_history.at(-1)?.at(-1)?.id ?? 0
    state = append(state, turn, answer('look', 0, { text: prose(turn * 31 + step, 230) }))
    const judged = [{ id: id + 1, relevance: ((turn + step) % 10) / 10, important: false }]
    state = append(
      state,
      turn,
      body('reflection', { result: { judged, is_sufficient: true }, next: ['planner'] }),
    )
  }
  return state
}

/** One more turn of so many steps; the turn before it is ended with an answer. */
export const addTurn = (before: RuntimeState, turn: number, steps: number): RuntimeState =>
  addSteps(openTurn(before, turn), turn, steps)

/** The state after a compaction by rules of all that can be summed up. */
export const compacted = (state: RuntimeState, budget: number): RuntimeState => {
  const compactable = findCompactable(state)
  const text = summarizeByRules(compactable, budget * partShares.summary)
  const result = { text, compacted: compactable.ranges.map(([from, to]) => [from, to]), by: 'rules' }
  return append(state, state.prompts.length, body('compaction', { result, next: ['planner'] }))
}

export const conversation = (turns: number, steps: number): RuntimeState => {
  let state = emptyState
  for (let turn = 1; turn <= turns; turn++) state = addTurn(state, turn, Math.max(1, steps))
  return state
}
