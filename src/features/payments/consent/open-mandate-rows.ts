import { z } from 'zod'
import { queryOne } from '../../../infra/database/database.ts'
import { type Dated, toIsoTimes } from '../../../infra/database/row-times.ts'
import { MasonError } from '../../../state/errors.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import { readOpenMandates } from '../mandates/v2/open-mandates.ts'
import { limitSchema } from '../ports/limit-schema.ts'
import type { UsableMandate } from '../ports/run-mandates.ref.ts'
import { parseContent } from './content.ts'
import { describeLimits } from './proposals.ts'

/** An open mandate as its business sees it: never its tokens, nor what is charged. */
export const openMandateSchema = z.strictObject({
  id: z.string(),
  user_id: z.string(),
  run_id: z.string().describe('The run that asked for it'),
  status: z
    .enum(['proposed', 'active', 'refused', 'expired', 'failed', 'revoked'])
    .describe('expired: not signed in time, or over'),
  provider_id: z.string(),
  limits: z.array(limitSchema).describe('In plain words, from the bytes that the user signed'),
  payments: z.int().describe('Payments under it that were made or may still be'),
  paid_minor: z.int().describe('Their sum, in minor units'),
  created_at: z.string(),
  expires_at: z.string(),
  revoked_at: z.string().nullable(),
})
/** See `openMandateSchema`. */
export type OpenMandateView = z.infer<typeof openMandateSchema>

type Row = Dated<Omit<OpenMandateView, 'limits'>> & { content: string | null }

const isPaid = `status IN ('reserved', 'sent', 'succeeded', 'unknown')`
/** More than a person signs in years: five proposals an hour are the most. */
const maxListed = 200

const statement = (where: string): string => `
  SELECT m.mandate_id AS id, m.user_id, m.run_id, m.provider_id, m.created_at, m.expires_at, m.revoked_at, c.content,
    CASE WHEN m.revoked_at IS NOT NULL THEN 'revoked'
      WHEN m.status = 'active' AND m.expires_at <= clock_timestamp() THEN 'expired' ELSE m.status END AS status,
    (SELECT count(*)::int FROM payments p WHERE p.open_mandate_id = m.mandate_id AND ${isPaid}) AS payments,
    (SELECT COALESCE(sum(amount_minor), 0)::float8 FROM payments p WHERE p.open_mandate_id = m.mandate_id AND ${isPaid}) AS paid_minor
  FROM open_mandates m LEFT JOIN consents c ON c.tenant = m.tenant AND c.payment_id = m.mandate_id
  WHERE ${where} ORDER BY m.created_at DESC, m.mandate_id DESC LIMIT ${maxListed}`

/** What the user was asked to sign; null: a row without it. */
const readSigned = ({ content }: Row) => {
  const signed = content === null ? null : parseContent(content)
  const limits = signed?.version === '0.2-open' ? readOpenMandates(signed) : null
  const wallet = (signed?.version === '0.2-open' && signed.wallet) || null
  return limits && { ...limits, wallet, lines: describeLimits(limits, wallet) }
}

const toView = (whole: Row): OpenMandateView => {
  const { content: _, ...row } = whole
  return { ...toIsoTimes(row), limits: readSigned(whole)?.lines ?? [] }
}

const isOf = 'm.tenant = $1 AND m.user_id = $2'
const isUsable = `m.status = 'active' AND m.revoked_at IS NULL AND m.expires_at > clock_timestamp()`

/** The open mandates of a user that are neither revoked nor over, the latest first. */
export const listUsableMandates = async (
  sql: Sql,
  tenant: string,
  userId: string,
): Promise<UsableMandate[]> => {
  const { rows } = await sql.query<Row>(statement(`${isOf} AND ${isUsable}`), [tenant, userId])
  return rows.flatMap((row) => {
    const signed = readSigned(row)
    if (!signed) return []
    const { lines: limits, items, instrument, wallet } = signed
    return [{ id: row.id, provider_id: row.provider_id, limits, items, instrument: instrument.id, wallet }]
  })
}

const revokeOpenMandate = async (sql: Sql, tenant: string, id: string): Promise<OpenMandateView> => {
  await sql.query(
    `UPDATE open_mandates SET revoked_at = clock_timestamp() WHERE tenant = $1 AND mandate_id = $2 AND revoked_at IS NULL`,
    [tenant, id],
  )
  const row = await queryOne<Row>(sql, statement('m.tenant = $1 AND m.mandate_id = $2'), [tenant, id])
  if (!row) throw new MasonError('not_found', `there is no open mandate "${id}"`)
  return toView(row)
}

/**
 * Adds an open mandate that a user is asked for. `sealed`: what is charged, encrypted to the executor as the answer to `question`.
 * `expiresAt` in seconds.
 */
export const addOpenMandate = async (
  sql: Sql,
  row: { id: string; tenant: string; user_id: string; run_id: string; provider_id: string },
  { sealed, question }: { sealed: string | null; question: string },
  expiresAt: number,
): Promise<void> =>
  void (await sql.query(
    `INSERT INTO open_mandates (mandate_id, tenant, user_id, run_id, provider_id, sealed, question, expires_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, to_timestamp($8))`,
    [row.id, row.tenant, row.user_id, row.run_id, row.provider_id, sealed, question, expiresAt],
  ))

/** The open mandates of users, for proxies. */
export const createOpenMandateStore = (database: Sql) => ({
  /** All of a user, the latest first. */
  async list(businessId: string, userId: string): Promise<OpenMandateView[]> {
    const { rows } = await database.query<Row>(statement(isOf), [businessId, userId])
    return rows.map(toView)
  },
  /** Takes one back, once and for all: it pays nothing that was not sent yet. Throws `not_found`. */
  revoke: (businessId: string, id: string) => revokeOpenMandate(database, businessId, id),
})

/** See `createOpenMandateStore`. */
export type OpenMandateStore = ReturnType<typeof createOpenMandateStore>
