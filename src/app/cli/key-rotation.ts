import type { SealedTable } from '../../features/keys-definition.ts'
import { rewrapKey } from '../../infra/secrets/envelope.ts'
import type { MasterKeys } from '../../infra/secrets/master-keys.ts'
import { isMasonError } from '../../state/errors.ts'
import type { Sql } from '../../state/ports/sql.ts'

/** The result of a rotation. */
export type KeyRotation = {
  rewrapped: number
  /** Rows that could not be rewrapped. */
  unreadable: { row_id: string; reason: string; remedy: string }[]
  /** False: another process still writes under another master key, so more rows may follow. */
  settled: boolean
}

type RotationPass = Omit<KeyRotation, 'settled'> & { overtaken: number }

type SealedRow = {
  row_id: string
  vendor_id: string
  business_id: string | null
  master_key: string
  wrapped_key: Uint8Array
}

/** What of the core is under the master key. */
export const coreSealedTables = [
  { name: 'vendor_keys', id: 'key_id', owner: 'vendor_id, NULL AS business_id', purpose: 'secret' },
  { name: 'endpoints', id: 'endpoint_id', owner: 'vendor_id, NULL AS business_id', purpose: 'headers' },
  {
    name: 'business_secrets',
    id: 'tenant',
    owner: "'' AS vendor_id, tenant AS business_id",
    purpose: 'business',
  },
] as const satisfies readonly SealedTable[]

const pageSize = 100
const maxPasses = 20

/**
 * Rewraps the data key of every row under the current master key, one small statement per row, while others read and
 * write. It may be stopped at any point and called again: each row is readable before and after. It repeats until no row
 * is left, at most `maxPasses` times, so that it covers rows written meanwhile.
 */
export const rewrapRows = async (
  sql: Sql,
  keys: MasterKeys,
  signal: AbortSignal,
  tables: readonly SealedTable[] = coreSealedTables,
): Promise<KeyRotation> => {
  let rewrapped = 0
  for (let pass = 1; ; pass++) {
    const parts: RotationPass[] = []
    for (const table of tables) parts.push(await rewrapTable(sql, table, keys, signal))
    rewrapped += parts.reduce((sum, part) => sum + part.rewrapped, 0)
    const settled = parts.every((part) => part.rewrapped === 0 && part.overtaken === 0)
    if (settled || pass === maxPasses)
      return { rewrapped, unreadable: parts.flatMap((part) => part.unreadable), settled }
  }
}

const rewrapTable = async (
  sql: Sql,
  table: SealedTable,
  keys: MasterKeys,
  signal: AbortSignal,
): Promise<RotationPass> => {
  const pass: RotationPass = { rewrapped: 0, overtaken: 0, unreadable: [] }
  for (let after = '', full = true; full; ) {
    signal.throwIfAborted()
    const { rows } = await sql.query<SealedRow>(
      `SELECT ${table.id} AS row_id, ${table.owner}, master_key, wrapped_key FROM ${table.name}
       WHERE master_key <> $1 AND ${table.id} > $2 ORDER BY ${table.id} LIMIT ${pageSize}`,
      [keys.current().name, after],
    )
    for (const row of rows) {
      signal.throwIfAborted()
      const { row_id, vendor_id, business_id } = row
      const binding = { purpose: table.purpose, vendor_id, row_id, ...(business_id && { business_id }) }
      try {
        const to = rewrapKey(row, binding, keys)
        // the secret may have been replaced meanwhile under the same master key, with another data key
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
