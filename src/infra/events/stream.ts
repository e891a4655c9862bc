import type { Sql } from '../../state/ports.ts'
import type { Delta, RunEvent, RunView } from '../../state/run-view.ts'
import type { Database } from '../database/database.ts'
import { type EventRow, eventOf, readActions, readFollowed, readRun } from '../runs/read.ts'
import type { Feed } from './feed.ts'
import { createSnapshots, type FollowedRun } from './snapshots.ts'

const pageSize = 200

export type EventSource = { tenant: string; session_id: string; run_id?: string }

/**
 * The events of a run (until `done`) or of a session, after one action: subscribe first, then replay, then live; ids
 * only grow, so each action comes exactly once. Snapshots come first and whenever they changed. A session's stream tells
 * `done` of each run that ends while it is followed, and goes on. Ends without `done` when the session is deleted.
 */
export async function* streamEvents(
  database: Database,
  feed: Feed,
  source: EventSource,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<RunEvent> {
  const inbox = openInbox(feed, source, signal)
  const snapshots = createSnapshots(source.tenant, source.session_id)
  let last = after
  let first = true
  try {
    while (!signal.aborted) {
      const { changed, deltas } = await inbox.next()
      if (signal.aborted) return
      for (const delta of deltas) yield { event: 'delta', data: delta }
      if (!changed) continue
      for (;;) {
        const { runs, rows } = await database.asBusiness(source.tenant, async (sql) => {
          // the run is read before its actions: when it is ended here, all its actions are in what is read next
          const runs = await currentRuns(sql, source)
          await snapshots.begin(sql, runs)
          return { runs, rows: await readRows(sql, source, runs, last) }
        })
        if (first) yield* snapshots.news(runs, last)
        first = false
        for (const row of rows) {
          yield { event: 'action', id: row.seq, data: eventOf(row) }
          last = row.seq
          yield* snapshots.follow(row)
          if (!source.run_id && row.body.node === 'end') yield* doneOf(database, source.tenant, row.run_id)
        }
        if (rows.length === pageSize) continue
        yield* snapshots.news(runs, last)
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

/** What a session's stream tells after the `end` action of a run: that action and the run's end are one commit. */
async function* doneOf(database: Database, tenant: string, runId: string): AsyncGenerator<RunEvent> {
  const run = await database.asBusiness(tenant, (sql) => readRun(sql, tenant, runId))
  if (run) yield { event: 'done', data: run }
}

/** Resolves with the run once it has ended or waits for a person; null when it is gone. */
export const waitForRun = async (
  database: Database,
  feed: Feed,
  source: EventSource & { run_id: string },
  signal: AbortSignal,
): Promise<RunView | null> => {
  const inbox = openInbox(feed, source, signal, { statusOnly: true })
  try {
    for (;;) {
      const { changed } = await inbox.next()
      signal.throwIfAborted()
      if (!changed) continue
      const run = await database.asBusiness(source.tenant, (sql) =>
        readRun(sql, source.tenant, source.run_id),
      )
      if (!run || isEnded(run) || run.status === 'input_required') return run
    }
  } finally {
    inbox.close()
  }
}

const isEnded = (run: RunView): boolean =>
  run.status === 'completed' || run.status === 'failed' || run.status === 'cancelled'

/** What the feed brought since it was last asked; the first look always counts as a change. */
const openInbox = (
  feed: Feed,
  source: EventSource,
  signal: AbortSignal,
  { statusOnly } = { statusOnly: false },
) => {
  let changed = true
  let deltas: Delta[] = []
  let wake: () => void = () => {}
  const stop = feed.follow(source.tenant, source.session_id, {
    onChange(change) {
      if (statusOnly && change === 'action') return
      changed = true
      wake()
    },
    onDelta(delta) {
      if (statusOnly || (source.run_id && delta.run_id !== source.run_id)) return
      deltas.push(delta)
      // best effort: whoever reads too slowly loses the oldest
      if (deltas.length > 10_000) deltas = deltas.slice(-5_000)
      wake()
    },
  })
  const onAbort = (): void => wake()
  signal.addEventListener('abort', onAbort, { once: true })
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
    close(): void {
      signal.removeEventListener('abort', onAbort)
      stop()
    },
  }
}

const readRows = async (
  sql: Sql,
  { tenant, session_id, run_id }: EventSource,
  runs: readonly FollowedRun[],
  after: number,
): Promise<EventRow[]> => {
  const range = run_id ? runs[0]?.range : null
  return range === undefined ? [] : readActions(sql, tenant, session_id, range, after, pageSize)
}

/** The run that is followed; of a session the one whose turn it is, after the one that came before. */
const currentRuns = async (sql: Sql, source: EventSource): Promise<FollowedRun[]> => {
  const ids = source.run_id ? [source.run_id] : await currentIds(sql, source)
  const runs: FollowedRun[] = []
  for (const id of ids) {
    const run = await readFollowed(sql, source.tenant, id)
    if (run) runs.push(run)
  }
  return runs
}

const currentIds = async (sql: Sql, { tenant, session_id }: EventSource): Promise<string[]> => {
  const { rows } = await sql.query<{ run_id: string }>(
    `(SELECT run_id, turn FROM runs WHERE tenant = $1 AND session_id = $2 AND status NOT IN ('queued', 'running', 'input_required')
       ORDER BY turn DESC LIMIT 1)
     UNION ALL
     (SELECT run_id, turn FROM runs WHERE tenant = $1 AND session_id = $2 AND status IN ('queued', 'running', 'input_required')
       ORDER BY turn LIMIT 1) ORDER BY turn`,
    [tenant, session_id],
  )
  return rows.map(({ run_id }) => run_id)
}
