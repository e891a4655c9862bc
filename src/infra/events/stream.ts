import type { Delta, RunEvent, RunView } from '../../state/run-view.ts'
import { todoSchema } from '../../state/runtime-state.ts'
import { type Database, one } from '../database/database.ts'
import { eventOf, readActions, readRun } from '../runs/read.ts'
import type { Feed } from './feed.ts'

const pageSize = 200

export type EventSource = { tenant: string; session_id: string; run_id?: string }

/**
 * The events of a run (until `done`) or of a session, after one action: subscribe first, then replay, then live; ids
 * only grow, so each action comes exactly once. Snapshots come first and whenever they changed.
 */
export async function* streamEvents(
  database: Database,
  feed: Feed,
  source: EventSource,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<RunEvent> {
  const inbox = openInbox(feed, source, signal)
  try {
    let last = after
    const told = createTold()
    while (!signal.aborted) {
      const { changed, deltas } = await inbox.next()
      if (signal.aborted) return
      for (const delta of deltas) yield { event: 'delta', data: delta }
      if (!changed) continue
      // the run is read before its actions: when it is ended here, all its actions are in what is read next
      const runs = await currentRuns(database, source)
      if (told.isFirst()) yield* told.snapshots(database, source, runs, last)
      for (;;) {
        const rows = await readActions(database, source.tenant, source, last, pageSize)
        for (const row of rows) {
          yield { event: 'action', id: row.seq, data: eventOf(row) }
          last = row.seq
        }
        if (rows.length < pageSize) break
      }
      yield* told.snapshots(database, source, runs, last)
      const run = runs.at(-1)
      if (source.run_id && run && isEnded(run)) {
        yield { event: 'done', data: run }
        return
      }
    }
  } finally {
    inbox.close()
  }
}

/** Resolves with the run once it has ended or waits for a person; null when it is gone. */
export const waitForRun = async (
  database: Database,
  feed: Feed,
  source: EventSource & { run_id: string },
  signal: AbortSignal,
): Promise<RunView | null> => {
  const inbox = openInbox(feed, source, signal)
  try {
    for (;;) {
      const { changed } = await inbox.next()
      signal.throwIfAborted()
      if (!changed) continue
      const run = await readRun(database, source.tenant, source.run_id)
      if (!run || isEnded(run) || run.status === 'input_required') return run
    }
  } finally {
    inbox.close()
  }
}

const isEnded = (run: RunView): boolean =>
  run.status === 'completed' || run.status === 'failed' || run.status === 'cancelled'

/** What the feed brought since it was last asked; the first look always counts as a change. */
const openInbox = (feed: Feed, source: EventSource, signal: AbortSignal) => {
  let changed = true
  let deltas: Delta[] = []
  let wake: () => void = () => {}
  const stop = feed.follow(source.tenant, source.session_id, {
    onChange() {
      changed = true
      wake()
    },
    onDelta(delta) {
      if (source.run_id && delta.run_id !== source.run_id) return
      deltas.push(delta)
      // best effort: whoever reads too slowly loses the oldest
      if (deltas.length > 10_000) deltas = deltas.slice(-5_000)
      wake()
    },
  })
  signal.addEventListener('abort', () => wake(), { once: true })
  return {
    async next(): Promise<{ changed: boolean; deltas: Delta[] }> {
      if (!changed && deltas.length === 0 && !signal.aborted)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      const taken = { changed, deltas }
      changed = false
      deltas = []
      return taken
    },
    close: stop,
  }
}

/** The run that is followed; of a session the one whose turn it is, after the one that came before. */
const currentRuns = async (database: Database, source: EventSource): Promise<RunView[]> => {
  if (source.run_id) {
    const run = await readRun(database, source.tenant, source.run_id)
    return run ? [run] : []
  }
  const { rows } = await database.query<{ run_id: string }>(
    `(SELECT run_id, turn FROM runs WHERE tenant = $1 AND session_id = $2 AND status NOT IN ('queued', 'running', 'input_required')
       ORDER BY turn DESC LIMIT 1)
     UNION ALL
     (SELECT run_id, turn FROM runs WHERE tenant = $1 AND session_id = $2 AND status IN ('queued', 'running', 'input_required')
       ORDER BY turn LIMIT 1) ORDER BY turn`,
    [source.tenant, source.session_id],
  )
  const runs = await Promise.all(rows.map(({ run_id }) => readRun(database, source.tenant, run_id)))
  return runs.filter((run) => run !== null)
}

/** Which snapshots the follower has been shown, so that only news are told. */
const createTold = () => {
  const told = new Map<string, string>()
  let first = true
  const isNew = (key: string, value: unknown): boolean => {
    const text = JSON.stringify(value)
    if (told.get(key) === text) return false
    told.set(key, text)
    return true
  }
  return {
    isFirst(): boolean {
      const was = first
      first = false
      return was
    },
    /**
     * Snapshots that are news. Their id is that of the latest action this follower was given: a client that leaves
     * after one and comes back with its id misses nothing.
     */
    async *snapshots(
      database: Database,
      source: EventSource,
      runs: readonly RunView[],
      id: number,
    ): AsyncGenerator<RunEvent> {
      for (const run of runs) {
        const { id: run_id, turn, status, input_request } = run
        if (isNew(`status ${run_id}`, status)) yield { event: 'status', id, data: { run_id, turn, status } }
        const todos = await readTodos(database, source, turn)
        if (todos.length > 0 && isNew(`todos ${run_id}`, todos))
          yield { event: 'todos', id, data: { run_id, turn, todos } }
        if (input_request && isNew(`input ${run_id}`, input_request.id))
          yield { event: 'input_required', id, data: { run_id, ...input_request } }
      }
    },
  }
}

const todosSchema = todoSchema.array()

/** The todos of a turn as its patches leave them. */
const readTodos = async (database: Database, source: EventSource, turn: number) => {
  const row = await one<{ patches: unknown[] | null }>(
    database,
    `SELECT json_agg(patch->'todos' ORDER BY seq) AS patches FROM actions
     WHERE tenant = $1 AND session_id = $2 AND turn = $3 AND patch->'todos' IS NOT NULL`,
    [source.tenant, source.session_id, turn],
  )
  const byId = new Map<string, ReturnType<typeof todosSchema.parse>[number]>()
  for (const patch of row?.patches ?? []) for (const todo of todosSchema.parse(patch)) byId.set(todo.id, todo)
  return [...byId.values()]
}
