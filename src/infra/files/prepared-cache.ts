import type { Sql } from '../../state/ports.ts'
import { one } from '../database/database.ts'
import type { Found } from './child/protocol.ts'

/** Raised with every change that finds something else in the same bytes. */
const version = 1

/** What was found in a file, its text and entries kept as blobs. */
export type Kept = Omit<Found, 'document' | 'unpacked'> & {
  document?: Omit<NonNullable<Found['document']>, 'text'> & { text: { blob: string; bytes: number } | null }
  unpacked?: { name: string; blob: string }[]
  /** False: nothing can be read of it. */
  readable: boolean
}

/** Same bytes, same claim of what they are, same business: what was found before, or null. */
export const createPreparedCache = (sql: Sql, tenant: string) => ({
  async find(sha256: string, openedAs: string): Promise<Kept | null> {
    const row = await one<{ found: Kept; blobs: string[] }>(
      sql,
      'SELECT found, blobs FROM prepared_files WHERE tenant = $1 AND sha256 = $2 AND opened_as = $3',
      [tenant, sha256, `${version}:${openedAs}`],
    )
    if (!row || row.blobs.length === 0) return row?.found ?? null
    // young again, so that none is swept before the run's session holds it
    const { rows } = await sql.query(
      'UPDATE blobs SET created_at = clock_timestamp() WHERE tenant = $1 AND sha256 = ANY($2) RETURNING 1',
      [tenant, row.blobs],
    )
    return rows.length === new Set(row.blobs).size ? row.found : null
  },
  async keep(sha256: string, openedAs: string, kept: Kept): Promise<void> {
    const blobs = [kept.document?.text?.blob, ...(kept.unpacked ?? []).map(({ blob }) => blob)].filter(
      (blob) => blob !== undefined,
    )
    await sql.query(
      `INSERT INTO prepared_files (tenant, sha256, opened_as, found, blobs) VALUES ($1, $2, $3, $4, $5)
       ON CONFLICT (tenant, sha256, opened_as) DO UPDATE SET found = excluded.found, blobs = excluded.blobs`,
      [tenant, sha256, `${version}:${openedAs}`, JSON.stringify(kept), blobs],
    )
  },
})

export type PreparedCache = ReturnType<typeof createPreparedCache>
