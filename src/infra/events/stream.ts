import type { Delta, RunEvent, RunView } from '../../state/run-view.ts'
import type { Feed } from './feed.ts'
import { type EventSource, type Looks, pageSize } from './looks.ts'
import { createSnapshots } from './snapshots.ts'

/**
 * The events of a run (until `done`) or of a session, after one action: subscribe first, then replay, then live; ids
 * only grow, so each action comes exactly once. Snapshots come first and whenever they changed. A session's stream tells
 * `done` of each run that ends while it is followed, and goes on. Ends without `done` when the session is deleted.
 */
export async function* streamEvents(
  looks: Looks,
  feed: Feed,
  source: EventSource,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<RunEvent> {
  const inbox = openInbox(feed, source, signal)
  const snapshots = createSnapshots()
  let last = after
  let first = true
  try {
    while (!signal.aborted) {
      const { changed, deltas } = await inbox.next()
      if (signal.aborted) return
      for (const delta of deltas) yield { event: 'delta', data: delta }
      if (!changed) continue
      for (;;) {
        const { runs, rows } = await looks.at(source, last)
        await snapshots.begin(runs, (run) => looks.todosOf(source.session_id, run))
        if (first) yield* snapshots.news(runs, last)
        first = false
        for (const row of rows) {
          yield row.event
          last = row.seq
          yield* snapshots.follow(row)
          if (!source.run_id && row.body.node === 'end') yield* doneOf(looks, row.run_id)
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
async function* doneOf(looks: Looks, runId: string): AsyncGenerator<RunEvent> {
  const run = await looks.run(runId)
  if (run) yield { event: 'done', data: run }
}

/**
 * Resolves with the run once it has ended or waits for a person; null when it is gone. One that was admitted just now
 * need not be looked at before something is said of it.
 */
export const waitForRun = async (
  looks: Looks,
  feed: Feed,
  source: EventSource & { run_id: string },
  options: { admittedNow: boolean },
  signal: AbortSignal,
): Promise<RunView | null> => {
  const inbox = openInbox(feed, source, signal, { statusOnly: true, changed: !options.admittedNow })
  try {
    for (;;) {
      const { changed } = await inbox.next()
      signal.throwIfAborted()
      if (!changed) continue
      const run = await looks.run(source.run_id)
      if (!run || isEnded(run) || run.status === 'input_required') return run
    }
  } finally {
    inbox.close()
  }
}

const isEnded = (run: RunView): boolean =>
  run.status === 'completed' || run.status === 'failed' || run.status === 'cancelled'

/** What the feed brought since it was last asked; the first look counts as a change unless `changed` is false. */
const openInbox = (
  feed: Feed,
  source: EventSource,
  signal: AbortSignal,
  { statusOnly = false, changed = true } = {},
) => {
  let deltas: Delta[] = []
  let wake: () => void = () => {}
  const stop = feed.follow(source.tenant, source.session_id, {
    onChange(change) {
      if (statusOnly && change !== 'status') return
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
