import type { Patch } from '../../state/patch.ts'
import type { RunEvent } from '../../state/run-view.ts'
import type { Todo } from '../../state/runtime-state.ts'
import type { EventRow, FollowedRun } from '../runs/read.ts'

/**
 * Which snapshots a follower has been shown, so that only news are told. Todos are read once for each run and then
 * kept up with by the actions that come: what a follower costs does not grow with the history.
 */
export const createSnapshots = () => {
  const told = new Map<string, string>()
  const todos = new Map<string, Map<string, Todo>>()
  /** Up to where a run's todos were read when it was first followed. */
  const readUpTo = new Map<string, number>()

  const isNew = (key: string, value: unknown): boolean => {
    const text = JSON.stringify(value)
    if (told.get(key) === text) return false
    told.set(key, text)
    return true
  }

  /** A session goes on for as long as its user does: what its earlier runs were shown as is not kept. */
  const forgetAllBut = (runs: readonly FollowedRun[]): void => {
    const ids = new Set(runs.map(({ view }) => view.id))
    for (const id of todos.keys()) {
      if (ids.has(id)) continue
      todos.delete(id)
      readUpTo.delete(id)
      for (const what of ['status', 'todos', 'input']) told.delete(`${what} ${id}`)
    }
  }

  return {
    /** Takes in the todos of runs that are followed from now on, as `read` gives them. */
    async begin(
      runs: readonly FollowedRun[],
      read: (run: FollowedRun) => Promise<Pick<Patch, 'todos'>[]>,
    ): Promise<void> {
      for (const run of runs) {
        const { view, range } = run
        if (todos.has(view.id)) continue
        const byId = new Map<string, Todo>()
        if (range.first_seq !== null) for (const patch of await read(run)) merge(byId, patch)
        todos.set(view.id, byId)
        readUpTo.set(view.id, range.next_seq ?? 0)
      }
    },
    /** Takes in the next action, and tells of the todos it changed. Replayed ones change nothing any more. */
    *follow({ seq, run_id, turn, patch }: EventRow): Generator<RunEvent> {
      const byId = todos.get(run_id)
      if (!patch || !byId || seq < (readUpTo.get(run_id) ?? 0)) return
      merge(byId, patch)
      const list = [...byId.values()]
      if (isNew(`todos ${run_id}`, list))
        yield { event: 'todos', id: seq, data: { run_id, turn, todos: list } }
    },
    /**
     * Snapshots that are news. `id` is that of the latest action this follower was given: a client that leaves after
     * one and comes back with its id misses nothing.
     */
    *news(runs: readonly FollowedRun[], id: number): Generator<RunEvent> {
      forgetAllBut(runs)
      for (const { view } of runs) {
        const { id: run_id, turn, status, input_request } = view
        if (isNew(`status ${run_id}`, status)) yield { event: 'status', id, data: { run_id, turn, status } }
        const list = [...(todos.get(run_id)?.values() ?? [])]
        if (list.length > 0 && isNew(`todos ${run_id}`, list))
          yield { event: 'todos', id, data: { run_id, turn, todos: list } }
        if (input_request && isNew(`input ${run_id}`, input_request.id))
          yield { event: 'input_required', id, data: { run_id, ...input_request } }
      }
    },
  }
}

const merge = (byId: Map<string, Todo>, patch: Pick<Patch, 'todos'>): void => {
  for (const todo of patch.todos ?? []) byId.set(todo.id, todo)
}
