import assert from 'node:assert/strict'
import { type RuntimeState, runtimeStateSchema } from '../state/runtime-state.ts'
import { sumUsage } from '../state/token-usage.ts'

/** The kinds of work that an `end` may name, which docs/contract.md lists. */
const ongoingKinds = ['payments']

/**
 * Checks the invariants of CONTRACT section 5 on every turn of a state whose last turn has ended (`ended: false`: goes on).
 * Throws an AssertionError that says which one does not hold.
 *
 * @example
 * ```ts
 * import type { Runtime } from 'mason-runtime'
 * import { checkInvariants } from 'mason-runtime/testing'
 *
 * const checkRun = async (runtime: Runtime, runId: string): Promise<void> => {
 *   const state = await runtime.of('default').state(runId, false)
 *   if (state) checkInvariants(state)
 * }
 * ```
 */
export const checkInvariants = (state: RuntimeState, options: { ended: boolean } = { ended: true }): void => {
  runtimeStateSchema.parse(state)
  const turns = state.prompts.length
  for (const field of ['task_goals', 'todos', 'action_history', 'usage'] as const)
    assert.equal(state[field].length, turns, `${field} has one entry for each turn`)
  const ids = state.action_history.flat().map((action) => action.id)
  assert.deepEqual(
    ids,
    ids.map((_, index) => index + 1),
    'ids of actions count from 1',
  )
  for (const [at, actions] of state.action_history.entries()) {
    if (actions.length === 0) continue
    assert.deepEqual(state.usage[at], sumUsage(actions.map((action) => action.usage)), 'usage is the sum')
    assert.equal(actions[0]?.node, 'load-session')
    for (const [index, action] of actions.entries()) {
      if (index === 0 || action.node === 'end') continue
      const named = actions.slice(0, index).some((earlier) => earlier.next.includes(action.node))
      assert(named, `${action.node} (${action.id}) is in the next of an earlier action`)
    }
    const ends = actions.filter((action) => action.node === 'end')
    const isLast = at === turns - 1
    assert.equal(ends.length, isLast && !options.ended ? 0 : 1, `turn ${at + 1} has one end`)
    if (ends[0]) {
      assert.equal(actions.at(-1), ends[0])
      const { open_todos = [], ...result } = ends[0].result
      const ongoing = ongoingKinds.filter((kind) => result[kind] !== undefined)
      assert.deepEqual(Object.keys(result).sort(), ['reason', 'status', ...ongoing].sort())
      for (const kind of ongoing) {
        const ids = result[kind]
        assert(
          Array.isArray(ids) && ids.length > 0 && ids.every((id) => typeof id === 'string'),
          `${kind} that go on are a list of ids`,
        )
      }
      const open =
        state.todos[at]?.filter(({ status }) => status === 'pending' || status === 'processing') ?? []
      assert.deepEqual(
        (open_todos as { id: string }[]).map(({ id }) => id),
        open.map(({ id }) => id),
      )
    }
  }
}
