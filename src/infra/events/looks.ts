import type { Patch } from '../../state/patch.ts'
import type { RunEvent, RunView } from '../../state/run-view.ts'
import type { Database } from '../database/database.ts'
import {
  type EventRow,
  eventOf,
  type FollowedRun,
  readActions,
  readCurrentRuns,
  readRun,
  readTodoPatches,
} from '../runs/read.ts'
import { createSlots } from '../slots.ts'

export const pageSize = 200

export type EventSource = { tenant: string; session_id: string; run_id?: string }

/** An action with the event that tells of it, which all who follow it share. */
export type SeenRow = EventRow & { event: Extract<RunEvent, { event: 'action' }> }

export type Look = { runs: readonly FollowedRun[]; rows: readonly SeenRow[] }

/** How many looks are under way in a process: fewer than connections, so that a crowd of followers keeps nobody else out. */
const maxLooks = 6
export type LookPlaces = ReturnType<typeof createSlots>
export const createLookPlaces = (): LookPlaces => createSlots(maxLooks)

/**
 * Looks at the database on behalf of one business. Whoever asks for the same before it was sent shares one answer: a
 * commit wakes all followers of a session at once, and costs one look however many they are.
 */
export const createLooks = (database: Database, tenant: string, places: LookPlaces) => {
  const asked = new Map<string, Promise<unknown>>()

  const inTurn = async <T>(key: string, ask: () => Promise<T>): Promise<T> => {
    await new Promise<void>((resolve) => setImmediate(resolve))
    await using _place = await places.take()
    asked.delete(key)
    return await ask()
  }

  const shared = <T>(key: string, ask: () => Promise<T>): Promise<T> => {
    const known = asked.get(key)
    if (known) return known as Promise<T>
    const answer = inTurn(key, ask)
    asked.set(key, answer)
    return answer
  }

  return {
    /** A run as `GET` shows it, or null. */
    run: (runId: string): Promise<RunView | null> =>
      shared(`run ${runId}`, () =>
        database.asBusiness(tenant, (sql) => readRun(sql, tenant, runId), { atOnce: true }),
      ),
    /** The runs whose turn it is and the actions after one, at most `pageSize`. */
    at: (source: EventSource, after: number): Promise<Look> =>
      shared(`at ${source.session_id} ${source.run_id ?? ''} ${after}`, async () => {
        const read = database.asBusiness(
          tenant,
          // the runs are read before the actions: when one is ended here, all its actions are in what is read next
          (sql) => Promise.all([readCurrentRuns(sql, source), readActions(sql, source, after, pageSize)]),
          { atOnce: true },
        )
        const [runs, rows] = await read
        return { runs, rows: rows.map(seen) }
      }),
    /** What the actions of a run have done to its todos so far. */
    todosOf: (sessionId: string, { view, range }: FollowedRun): Promise<Pick<Patch, 'todos'>[]> =>
      shared(`todos ${view.id} ${range.next_seq}`, () =>
        database.asBusiness(tenant, (sql) => readTodoPatches(sql, tenant, sessionId, range), {
          atOnce: true,
        }),
      ),
  }
}

export type Looks = ReturnType<typeof createLooks>

const seen = (row: EventRow): SeenRow => ({
  ...row,
  event: { event: 'action', id: row.seq, data: eventOf(row) },
})
