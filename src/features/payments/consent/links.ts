import { randomBytes } from 'node:crypto'
import { hasRow, queryOne } from '../../../infra/database/database.ts'
import { sha256 } from '../../../infra/lib/ids.ts'
import type { Sql } from '../../../state/ports/sql.ts'

/** What a link is good for: enrolling a passkey, or answering one consent. */
export type LinkPurpose = 'enrol' | 'consent'

/** What a link is bound to. `ref_id` is the consent; null for an enrolment. */
export type BoundLink = { tenant: string; user_id: string; ref_id: string | null; expires_at: Date }

const columns = 'tenant, user_id, ref_id, expires_at'
const open = 'link_hash = $1 AND purpose = $2 AND used_at IS NULL AND expires_at > clock_timestamp()'

/** The bytes of a link, which no one guesses. */
const linkBytes = 32

/** A link that is good once and for one purpose, until then. Only its hash is stored. */
export const createLink = async (
  sql: Sql,
  purpose: LinkPurpose,
  { tenant, user_id, ref_id, expires_at }: BoundLink,
): Promise<string> => {
  const link = randomBytes(linkBytes).toString('base64url')
  await sql.query(`DELETE FROM consent_links WHERE expires_at < clock_timestamp() - interval '1 day'`)
  await sql.query(
    `INSERT INTO consent_links (link_hash, tenant, user_id, purpose, ref_id, expires_at) VALUES ($1, $2, $3, $4, $5, $6)`,
    [sha256(link), tenant, user_id, purpose, ref_id, expires_at],
  )
  return link
}

/** What a link is bound to; null where it was used, has expired, is for another purpose or never was. Looking uses nothing up. */
export const findLink = (sql: Sql, purpose: LinkPurpose, link: string): Promise<BoundLink | null> =>
  queryOne(sql, `SELECT ${columns} FROM consent_links WHERE ${open}`, [sha256(link), purpose])

/** Uses a link up: of several calls at the same time one gets it, the others null. */
export const useLink = (sql: Sql, purpose: LinkPurpose, link: string): Promise<BoundLink | null> =>
  queryOne(sql, `UPDATE consent_links SET used_at = clock_timestamp() WHERE ${open} RETURNING ${columns}`, [
    sha256(link),
    purpose,
  ])

/** Whether a link was good for this purpose and has been used. */
export const isUsed = (sql: Sql, purpose: LinkPurpose, link: string): Promise<boolean> =>
  hasRow(sql, 'SELECT FROM consent_links WHERE link_hash = $1 AND used_at IS NOT NULL AND purpose = $2', [
    sha256(link),
    purpose,
  ])
