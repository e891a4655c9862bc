import { isMasonError } from '../../state/errors.ts'
import type { Sql } from '../../state/ports.ts'
import { rewrap, type SealedPlace } from './envelope.ts'
import type { MasterKeys } from './master-keys.ts'

/** What a rotation did. */
export type Rotation = {
  rewrapped: number
  /** Rows that stay as they are, and why. */
  unreadable: { row_id: string; reason: string; remedy: string }[]
  /** False: somebody went on writing under another master key, so that there may be more to do. */
  settled: boolean
}

type Pass = Omit<Rotation, 'settled'> & { overtaken: number }

type Row = { row_id: string; vendor_id: string; master_key: string; wrapped_key: Uint8Array }

const tables = [
  { name: 'vendor_keys', id: 'key_id', purpose: 'secret' },
  { name: 'endpoints', id: 'endpoint_id', purpose: 'headers' },
] as const satisfies readonly { name: string; id: string; purpose: SealedPlace['purpose'] }[]

const pageSize = 100
const mostPasses = 20

/**
 * Puts the data key of every row under the current master key, one small statement a row, while others read and write.
 * May be stopped at any point and called again: each row is readable before and after. Goes over the rows until it finds
 * none to do, so that rows which came in meanwhile under another master key are done too, but not for ever.
 */
export const rewrapRows = async (sql: Sql, keys: MasterKeys, signal: AbortSignal): Promise<Rotation> => {
  let rewrapped = 0
  for (let pass = 1; ; pass++) {
    const parts: Pass[] = []
    for (const table of tables) parts.push(await rewrapTable(sql, table, keys, signal))
    rewrapped += parts.reduce((sum, part) => sum + part.rewrapped, 0)
    const settled = parts.every((part) => part.rewrapped === 0 && part.overtaken === 0)
    if (settled || pass === mostPasses)
      return { rewrapped, unreadable: parts.flatMap((part) => part.unreadable), settled }
  }
}

const rewrapTable = async (
  sql: Sql,
  table: (typeof tables)[number],
  keys: MasterKeys,
  signal: AbortSignal,
): Promise<Pass> => {
  const pass: Pass = { rewrapped: 0, overtaken: 0, unreadable: [] }
  for (let after = '', full = true; full; ) {
    signal.throwIfAborted()
    const { rows } = await sql.query<Row>(
      `SELECT ${table.id} AS row_id, vendor_id, master_key, wrapped_key FROM ${table.name}
       WHERE master_key <> $1 AND ${table.id} > $2 ORDER BY ${table.id} LIMIT ${pageSize}`,
      [keys.current().name, after],
    )
    for (const row of rows) {
      signal.throwIfAborted()
      const { row_id, vendor_id } = row
      try {
        const to = rewrap(row, { purpose: table.purpose, vendor_id, row_id }, keys)
        // under the same master key the secret itself may have been changed since: another data key is then in its place
        const { rows: done } = await sql.query(
          `UPDATE ${table.name} SET master_key = $1, wrapped_key = $2
           WHERE ${table.id} = $3 AND master_key = $4 AND wrapped_key = $5 RETURNING 1`,
          [to.master_key, to.wrapped_key, row_id, row.master_key, row.wrapped_key],
        )
        if (done.length === 1) pass.rewrapped++
        else pass.overtaken++
      } catch (error) {
        if (!isMasonError(error, 'secret_unreadable')) throw error
        pass.unreadable.push({ row_id, reason: error.message, remedy: error.remedy ?? '' })
      }
    }
    full = rows.length === pageSize
    after = rows.at(-1)?.row_id ?? after
  }
  return pass
}
