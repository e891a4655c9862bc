import { applyAction } from '../../src/state/fold.ts'
import type { Patch } from '../../src/state/patch.ts'
import { type ActionBody, emptyState, type RuntimeState } from '../../src/state/runtime-state.ts'
import { answer, body, plan } from '../../test/support/actions.ts'

/** A session as its states would be: talk, calls and results of 1.5 KB, judged in turn as more and less relevant. */

const words = 'river stone maple window copper garden signal harbour lantern meadow orbit saddle'.split(' ')
const prose = (seed: number, count: number): string =>
  Array.from({ length: count }, (_, at) => words[(seed * 7 + at * 5 + (at >> 3)) % words.length]).join(' ')

/** One more turn of so many steps; the turn before it is ended with an answer. */
export const addTurn = (before: RuntimeState, turn: number, steps: number): RuntimeState => {
  let state = before
  const lay = (at: number, one: ActionBody, patch: Patch = {}): void => {
    const seq = (state.action_history.flat().at(-1)?.id ?? 0) + 1
    state = applyAction(state, { seq, turn: at, body: one, patch })
  }
  if (turn > 1)
    lay(turn - 1, body('end'), {
      chat_history: [{ role: 'assistant', content: prose(turn, 80), turn: turn - 1 }],
    })
  const prompt = prose(turn + 1000, 25)
  lay(turn, body('load-session', { next: ['planner'] }), {
    prompts: prompt,
    chat_history: [{ role: 'user', content: prompt, turn }],
  })
  for (let step = 0; step < steps; step++) {
    lay(turn, plan([{ tool: 'look', args: { q: prose(step, 5) }, id: `t${turn}s${step}` }]))
    const id = state.action_history.at(-1)?.at(-1)?.id ?? 0
    lay(turn, answer('look', 0, { text: prose(turn * 31 + step, 230) }))
    const judged = [{ id: id + 1, relevance: ((turn + step) % 10) / 10, important: false }]
    lay(turn, body('reflection', { result: { judged, is_sufficient: true }, next: ['planner'] }))
  }
  return state
}

export const talk = (turns: number, steps: number): RuntimeState => {
  let state = emptyState
  for (let turn = 1; turn <= turns; turn++) state = addTurn(state, turn, Math.max(1, steps))
  return state
}
