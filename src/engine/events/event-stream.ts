import type { Patch } from '../../state/patch.ts'
import type { RunEvent, RunView, TextDelta } from '../../state/run-view.ts'
import type { Todo } from '../../state/runtime-state.ts'
import type { FollowedRun } from '../runs/run-queries.ts'
import type { EventRow } from '../sessions/action-queries.ts'
import type { Feed } from './feed.ts'
import type { EventScope, Poller } from './polling.ts'

/**
 * The events of a run (until `done`) or of a session, after an action: subscribe first, then replay, then live; ids only
 * grow, so each action is sent exactly once. Snapshots come first and whenever they change. A stream of a session sends
 * `done` for each run that ends meanwhile, and goes on. Ends without `done` when the session is deleted.
 */
export async function* streamRunEvents(
  poller: Poller,
  feed: Feed,
  source: EventScope,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<RunEvent> {
  const inbox = openInbox(feed, source, signal)
  const snapshots = createSnapshotFilter()
  let last = after
  let first = true
  try {
    while (!signal.aborted) {
      const { changed, deltas } = await inbox.next()
      if (signal.aborted) return
      for (const delta of deltas) yield { event: 'delta', data: delta }
      if (changed === 'nothing') continue
      for (let isWhole = changed === 'all'; ; ) {
        const { runs, rows, more } = await (isWhole
          ? poller.readAfter(source, last)
          : poller.readActions(source, last))
        if (runs) await snapshots.addRuns(runs, (run) => poller.readTodos(source.session_id, run))
        if (runs && first) yield* snapshots.changedSnapshots(runs, last)
        first = false
        for (const row of rows) {
          yield row.event
          last = row.seq
          yield* snapshots.applyAction(row)
          // the run ended in the commit of this action
          const ended = source.run_id || row.body.node !== 'end' ? null : await poller.readRun(row.run_id)
          if (ended) yield { event: 'done', data: ended }
        }
        if (more) continue
        if (!runs) {
          // the run ended in the commit of this action
          isWhole = rows.some(({ body }) => body.node === 'end')
          if (isWhole) continue
          break
        }
        yield* snapshots.changedSnapshots(runs, last)
        const run = runs.at(-1)?.view
        if (!run) return
        if (source.run_id && isEnded(run)) {
          yield { event: 'done', data: run }
          return
        }
        break
      }
    }
  } finally {
    inbox.close()
  }
}

/**
 * Resolves with the run once it has ended or waits for a person; null when it was deleted. A run that was admitted just
 * now is not read before its first change.
 */
export const waitForRun = async (
  poller: Poller,
  feed: Feed,
  source: EventScope & { run_id: string },
  options: { admittedNow: boolean },
  signal: AbortSignal,
): Promise<RunView | null> => {
  const inbox = openInbox(feed, source, signal, { statusOnly: true, isChanged: !options.admittedNow })
  try {
    for (;;) {
      const { changed } = await inbox.next()
      signal.throwIfAborted()
      if (changed === 'nothing') continue
      const run = await poller.readRun(source.run_id)
      if (!run || isEnded(run) || run.status === 'input_required' || run.consent_request) return run
    }
  } finally {
    inbox.close()
  }
}

const isEnded = (run: RunView): boolean =>
  run.status === 'completed' || run.status === 'failed' || run.status === 'cancelled'

/** What a follower reads again: actions alone, where nothing but actions was committed. */
type Changed = 'nothing' | 'actions' | 'all'

/** Collects what the feed publishes between two calls of `next`; the first call reports a change unless `isChanged` is false. */
const openInbox = (
  feed: Feed,
  source: EventScope,
  signal: AbortSignal,
  { statusOnly = false, isChanged = true } = {},
) => {
  let changed: Changed = isChanged ? 'all' : 'nothing'
  let deltas: TextDelta[] = []
  let wake: () => void = () => {}
  const stop = feed.follow(source.business_id, source.session_id, {
    statusOnly,
    onChange(change) {
      if (statusOnly && change !== 'status') return
      changed = change === 'action' && changed !== 'all' ? 'actions' : 'all'
      wake()
    },
    onDelta(delta) {
      if (statusOnly || (source.run_id && delta.run_id !== source.run_id)) return
      deltas.push(delta)
      // best effort: a slow reader loses the oldest
      if (deltas.length > 10_000) deltas = deltas.slice(-5_000)
      wake()
    },
  })
  const onAbort = (): void => wake()
  signal.addEventListener('abort', onAbort, { once: true })
  return {
    async next(): Promise<{ changed: Changed; deltas: TextDelta[] }> {
      if (changed === 'nothing' && deltas.length === 0 && !signal.aborted)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      const batch = { changed, deltas }
      changed = 'nothing'
      deltas = []
      return batch
    },
    close(): void {
      signal.removeEventListener('abort', onAbort)
      stop()
    },
  }
}

/** A followed run: the snapshots of it that were sent, and its todos by their ids. */
type Followed = {
  sent: Map<string, string>
  todos: Map<string, Todo>
  /** Up to where the todos were read when it was first followed. */
  readUpTo: number
}

/**
 * Remembers the snapshots that were sent to one follower, so that only changes are sent. Todos are read once for each run
 * and then updated from its actions: the cost of a follower does not grow with the history.
 */
export const createSnapshotFilter = () => {
  const followed = new Map<string, Followed>()

  const isNew = ({ sent }: Followed, kind: string, value: unknown): boolean => {
    const text = JSON.stringify(value)
    if (sent.get(kind) === text) return false
    sent.set(kind, text)
    return true
  }

  return {
    /** Starts to follow runs, with the todos that `read` returns. */
    async addRuns(
      runs: readonly FollowedRun[],
      read: (run: FollowedRun) => Promise<Pick<Patch, 'todos'>[]>,
    ): Promise<void> {
      for (const run of runs) {
        const { view, range } = run
        if (followed.has(view.id)) continue
        const todos = new Map<string, Todo>()
        if (range.first_seq !== null) for (const patch of await read(run)) mergeTodos(todos, patch)
        followed.set(view.id, { sent: new Map(), todos, readUpTo: range.next_seq ?? 0 })
      }
    },
    /** Applies the next action, and yields the todos if it changed them. Replayed actions change nothing. */
    *applyAction({ seq, run_id, turn, patch }: EventRow): Generator<RunEvent> {
      const run = followed.get(run_id)
      if (!patch?.todos?.length || !run || seq < run.readUpTo) return
      mergeTodos(run.todos, patch)
      const todos = [...run.todos.values()]
      if (isNew(run, 'todos', todos)) yield { event: 'todos', id: seq, data: { run_id, turn, todos } }
    },
    /**
     * Snapshots that have changed. `id` is the id of the latest action that was sent: a client that reconnects with it
     * misses nothing.
     */
    *changedSnapshots(runs: readonly FollowedRun[], id: number): Generator<RunEvent> {
      // a session may go on for years: earlier runs are dropped
      const ids = new Set(runs.map(({ view }) => view.id))
      for (const run_id of followed.keys()) if (!ids.has(run_id)) followed.delete(run_id)
      for (const { view } of runs) {
        const { id: run_id, turn, status, input_request, consent_request, operator_request } = view
        const { retry_at, retry_reason } = view
        const run = followed.get(run_id)
        if (!run) continue
        const snapshot = {
          run_id,
          turn,
          status,
          ...(retry_at && { retry_at, retry_reason }),
          ...(operator_request && { operator_request }),
        }
        if (isNew(run, 'status', snapshot)) yield { event: 'status', id, data: snapshot }
        const todos = [...run.todos.values()]
        // after the first time, what changes them sends them
        if (todos.length > 0 && !run.sent.has('todos') && isNew(run, 'todos', todos))
          yield { event: 'todos', id, data: { run_id, turn, todos } }
        if (input_request && isNew(run, 'input', input_request.id))
          yield { event: 'input_required', id, data: { run_id, ...input_request } }
        if (consent_request && isNew(run, 'consent', consent_request.payment_id))
          yield { event: 'consent_required', id, data: { run_id, ...consent_request } }
      }
    },
  }
}

const mergeTodos = (byId: Map<string, Todo>, patch: Pick<Patch, 'todos'>): void => {
  for (const todo of patch.todos ?? []) byId.set(todo.id, todo)
}
