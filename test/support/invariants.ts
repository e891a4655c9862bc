import { expect } from 'vitest'
import { type RuntimeState, runtimeStateSchema } from '../../src/state/runtime-state.ts'
import { sumUsage } from '../../src/state/token-usage.ts'

/** The invariants of CONTRACT section 5, of every turn of a state whose last turn has ended. */
export const checkInvariants = (state: RuntimeState, options: { ended: boolean } = { ended: true }): void => {
  expect(() => runtimeStateSchema.parse(state)).not.toThrow()
  const turns = state.prompts.length
  for (const list of [state.task_goals, state.todos, state.action_history, state.usage])
    expect(list).toHaveLength(turns)
  const ids = state.action_history.flat().map((action) => action.id)
  expect(ids).toEqual(ids.map((_, index) => index + 1))
  for (const [at, actions] of state.action_history.entries()) {
    if (actions.length === 0) continue
    expect(state.usage[at]).toEqual(sumUsage(actions.map((action) => action.usage)))
    expect(actions[0]?.node).toBe('load-session')
    for (const [index, action] of actions.entries()) {
      if (index === 0 || action.node === 'end') continue
      const named = actions.slice(0, index).some((earlier) => earlier.next.includes(action.node))
      expect(named, `${action.node} (${action.id}) is in the next of an earlier action`).toBe(true)
    }
    const ends = actions.filter((action) => action.node === 'end')
    const isLast = at === turns - 1
    expect(ends).toHaveLength(isLast && !options.ended ? 0 : 1)
    if (ends[0]) {
      expect(actions.at(-1)).toBe(ends[0])
      const { open_todos = [], ...rest } = ends[0].result
      expect(Object.keys(rest).sort()).toEqual(['reason', 'status'])
      const open =
        state.todos[at]?.filter(({ status }) => status === 'pending' || status === 'processing') ?? []
      expect((open_todos as { id: string }[]).map(({ id }) => id)).toEqual(open.map(({ id }) => id))
    }
  }
}
