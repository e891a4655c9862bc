import { LRUCache } from 'lru-cache'
import { type ActionRow, foldActions } from '../../state/fold.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { emptyState, type RuntimeState } from '../../state/runtime-state.ts'
import { readActionRows } from './run-queries.ts'

/** A session as this process last read it: the fold of its rows through `seq`, whose attempt identifies the row. */
type LatestPosition = { state: RuntimeState; seq: number; attemptId: string; bytes: number }
type StoredRow = ActionRow & { attempt_id: string; bytes: number }

/** Limits of the cache, in bytes of the JSON it was read from; a larger session is read in full each time. */
const maxBytes = 32 * 1024 * 1024
const maxBytesEach = 8 * 1024 * 1024

const actionColumns =
  'seq, turn, body, patch, attempt_id, octet_length(body::text) + octet_length(patch::text) AS bytes'

/**
 * Loads sessions; of one that this process has read before only the rows since then. Rows never change, so a cached
 * position is valid while its last row exists: that row is read along, and if it is another one (the session was deleted
 * and created again), all rows are read. Only a cache: any other process reads the rows.
 */
export const createLatestPositions = () => {
  const positions = new LRUCache<string, LatestPosition>({
    maxSize: maxBytes,
    maxEntrySize: maxBytesEach,
    sizeCalculation: ({ bytes }) => bytes,
  })
  return {
    /** The state of a session through a turn, as its rows say. */
    async load(sql: Sql, businessId: string, sessionId: string, turn: number): Promise<RuntimeState> {
      const key = JSON.stringify([businessId, sessionId])
      const cached = positions.get(key)
      const read = (from: number) =>
        readActionRows<StoredRow>(sql, businessId, sessionId, turn, { from, columns: actionColumns })
      const since = cached ? await read(cached.seq) : []
      const [first] = since
      const base =
        cached && first?.seq === cached.seq && first.attempt_id === cached.attemptId ? cached : null
      const rows = base ? since.slice(1) : await read(1)
      const state = foldActions(rows, base?.state ?? emptyState)
      const last = rows.at(-1) ?? (base ? first : undefined)
      const bytes = rows.reduce((sum, row) => sum + row.bytes, base?.bytes ?? 0)
      if (last) positions.set(key, { state, seq: last.seq, attemptId: last.attempt_id, bytes })
      else positions.delete(key)
      return state
    },
  }
}
