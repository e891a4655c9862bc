import { type ActionRow, fold } from '../../state/fold.ts'
import type { Sql } from '../../state/ports.ts'
import { emptyState, type RuntimeState } from '../../state/runtime-state.ts'
import { readRows } from './run-log.ts'

/** A session as this process read it last: the fold of its rows up to one of them, told by its attempt. */
type Head = { state: RuntimeState; seq: number; attemptId: string; bytes: number }
type StoredRow = ActionRow & { attempt_id: string; bytes: number }

/** What heads take at most, in bytes of the JSON they were read from; a larger session is read anew each time. */
const maxBytes = 32 * 1024 * 1024
const maxBytesOfOne = 8 * 1024 * 1024

const columns =
  'seq, turn, body, patch, attempt_id, octet_length(body::text) + octet_length(patch::text) AS bytes'

type SessionHeads = {
  /** The state of a session up to and with a turn, as its rows say. */
  load(sql: Sql, tenant: string, sessionId: string, turn: number): Promise<RuntimeState>
}

/**
 * Loads sessions; of one that this process has seen before only what came since. Rows never change, so a head stays
 * good as long as its last row is there: that row is read along, and where it is another (the session was deleted and
 * begun anew), all rows are read. A head is a cache and nothing more; any other process reads the rows.
 */
export const createSessionHeads = (): SessionHeads => {
  const heads = new Map<string, Head>()
  let held = 0

  const forget = (key: string): void => {
    held -= heads.get(key)?.bytes ?? 0
    heads.delete(key)
  }
  const keep = (key: string, head: Head): void => {
    forget(key)
    if (head.bytes > maxBytesOfOne) return
    heads.set(key, head)
    held += head.bytes
    // the least lately used first
    for (const oldest of heads.keys()) {
      if (held <= maxBytes) return
      forget(oldest)
    }
  }

  return {
    async load(sql, tenant, sessionId, turn) {
      const key = JSON.stringify([tenant, sessionId])
      const head = heads.get(key)
      const read = (from: number) => readRows<StoredRow>(sql, tenant, sessionId, turn, { from, columns })
      const since = head ? await read(head.seq) : []
      const isGood =
        head !== undefined && since[0]?.seq === head.seq && since[0].attempt_id === head.attemptId
      const rows = isGood ? since.slice(1) : await read(1)
      const state = fold(rows, isGood ? head.state : emptyState)
      const last = rows.at(-1) ?? (isGood ? since[0] : undefined)
      const bytes = rows.reduce((sum, row) => sum + row.bytes, isGood ? head.bytes : 0)
      if (last) keep(key, { state, seq: last.seq, attemptId: last.attempt_id, bytes })
      else forget(key)
      return state
    },
  }
}
