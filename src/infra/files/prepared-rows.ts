import type { Sql } from '../../state/ports.ts'
import { one } from '../database/database.ts'

/** What was found in the same bytes of a business, opened the same way, and the blobs it needs. */
type PreparedRow<Found> = { found: Found; blobs: string[] }

export const readPrepared = <Found>(
  sql: Sql,
  tenant: string,
  sha256: string,
  openedAs: string,
): Promise<PreparedRow<Found> | null> =>
  one(sql, 'SELECT found, blobs FROM prepared_files WHERE tenant = $1 AND sha256 = $2 AND opened_as = $3', [
    tenant,
    sha256,
    openedAs,
  ])

/** Takes the place of what was found before. `found` is JSON. */
export const writePrepared = async (
  sql: Sql,
  tenant: string,
  sha256: string,
  openedAs: string,
  { found, blobs }: PreparedRow<string>,
): Promise<void> => {
  await sql.query(
    `INSERT INTO prepared_files (tenant, sha256, opened_as, found, blobs) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (tenant, sha256, opened_as) DO UPDATE SET found = excluded.found, blobs = excluded.blobs`,
    [tenant, sha256, openedAs, found, blobs],
  )
}
