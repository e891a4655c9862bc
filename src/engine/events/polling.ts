import type { Database } from '../../infra/database/database.ts'
import { createPermits } from '../../infra/lib/permits.ts'
import type { Patch } from '../../state/patch.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { RunEvent, RunView } from '../../state/run-view.ts'
import { type FollowedRun, readCurrentRuns, readRun, readTodoPatches } from '../runs/run-queries.ts'
import { type EventRow, readActionsAfter, toActionEvent } from '../sessions/action-queries.ts'
import { type ChangedRun, readChanges, startChanges } from './change-queries.ts'

/** Actions that one poll reads at most. */
const actionPageSize = 200

/** A session, or one run of it. */
export type EventScope = { business_id: string; session_id: string; run_id?: string }

/** An action with its event, which all followers share. */
type PolledRow = EventRow & { event: Extract<RunEvent, { event: 'action' }> }

/** Concurrent polls of a process: fewer than connections, so that many followers leave some for other work. */
const maxPolls = 6
/** See `createPollPermits`. */
export type PollPermits = ReturnType<typeof createPermits>
/** The permits for polls, shared by all businesses of a process. */
export const createPollPermits = (): PollPermits => createPermits(maxPolls)

/**
 * Polls the database for one business. Equal polls that have not been sent yet share one result: a commit wakes all
 * followers of a session at once, and costs one query however many they are.
 */
export const createPoller = (database: Database, businessId: string, permits: PollPermits) => {
  const pending = new Map<string, Promise<unknown>>()

  const runPoll = async <T>(key: string, query: (sql: Sql) => Promise<T>): Promise<T> => {
    await new Promise<void>((resolve) => setImmediate(resolve))
    await using _permit = await permits.take()
    pending.delete(key)
    return await database.asBusiness(businessId, query, { pipelined: true })
  }

  const shareRead = <T>(key: string, query: (sql: Sql) => Promise<T>): Promise<T> => {
    const shared = pending.get(key)
    if (shared) return shared as Promise<T>
    const read = runPoll(key, query)
    pending.set(key, read)
    return read
  }

  return {
    /** A run as `GET /v1/runs/:id` returns it, or null. */
    readRun: (runId: string): Promise<RunView | null> =>
      shareRead(`run ${runId}`, (sql) => readRun(sql, businessId, runId)),
    /** The followed runs and the next actions after an id; `more`: there are more. */
    readAfter: (source: EventScope, after: number) =>
      shareRead(`at ${source.session_id} ${source.run_id ?? ''} ${after}`, async (sql) => {
        // runs before actions: if a run has ended here, the actions that follow include its last
        const reading = readCurrentRuns(sql, source)
        const [runs, page] = await Promise.all([reading, readPage(sql, source, after)])
        return { runs, ...page }
      }),
    /** The next actions alone: of a commit that changed no status. */
    readActions: (source: EventScope, after: number) =>
      shareRead(`actions ${source.session_id} ${source.run_id ?? ''} ${after}`, async (sql) => ({
        runs: null,
        ...(await readPage(sql, source, after)),
      })),
    /** Where a stream of changes begins that was at `after`, and the changes after a position. */
    startChanges: (after: number | null) =>
      shareRead(`start ${after}`, (sql) => startChanges(sql, businessId, after)),
    readChanges: (after: number): Promise<ChangedRun[]> =>
      shareRead(`changes ${after}`, (sql) => readChanges(sql, businessId, after)),
    /** The changes of todos in the actions of a run so far. */
    readTodos: (sessionId: string, { view, range }: FollowedRun): Promise<Pick<Patch, 'todos'>[]> =>
      shareRead(`todos ${view.id} ${range.next_seq}`, (sql) =>
        readTodoPatches(sql, businessId, sessionId, range),
      ),
  }
}

/** See `createPoller`. */
export type Poller = ReturnType<typeof createPoller>

const readPage = async (sql: Sql, source: EventScope, after: number) => {
  const { rows, more } = await readActionsAfter(sql, source, after, actionPageSize)
  return { rows: rows.map(toPolledRow), more }
}

const toPolledRow = (row: EventRow): PolledRow => ({
  ...row,
  event: { event: 'action', id: row.seq, data: toActionEvent(row) },
})
