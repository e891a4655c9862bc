import { randomBytes } from 'node:crypto'
import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialRequestOptionsJSON,
} from '@simplewebauthn/server'
import { type Database, queryOne } from '../../../infra/database/database.ts'
import { MasonError } from '../../../state/errors.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import { hashText, maxTokenLength } from '../mandates/tokens/encoding.ts'
import { newConsentId } from '../ports/ids.ts'
import { type ConsentContent, type ConsentFacts, type ConsentRequest, parseContent } from './content.ts'
import { createLink, findLink, isUsed, useLink } from './links.ts'
import { readConsent } from './offers.ts'
import { linkError, listCredentials, toSite } from './passkeys.ts'

/** So many consents a user is asked for in an hour. */
const maxAnHour = 5
const hourMs = 3_600_000
/** Characters of a signature beside its payload. */
const maxEnvelope = 4_096

/** Whom a consent is asked of, for which payment of which run, for which verifier, and for how long at most (milliseconds). */
export type ConsentBinding = {
  tenant: string
  user_id: string
  run_id: string
  payment_id: string
  audience: string
  lifetimeMs: number
}

/**
 * Asks a user to sign a payment, or open mandates. Call it in the transaction that starts the wait of kind `payment` for `payment_id`. The link
 * comes from the proxy alone (`createLink`), so it is in no state. It ends with the cart at the latest. Throws `invalid_request` for mandates that do not fit
 * and for an offer that no trusted merchant signed,
 * `in_use` while another consent of the run is open, and `too_many_requests` beyond 5 an hour. `known`: the facts of an
 * offer that the caller has just verified; the page of the consent and the executor do so again.
 */
export const askConsent = async (
  sql: Sql,
  request: ConsentRequest,
  { tenant, user_id, run_id, payment_id, audience, lifetimeMs }: ConsentBinding,
  known: Pick<ConsentFacts, 'offer_ends'> | null = null,
): Promise<{ consent_id: string; payment_id: string }> => {
  const { offer_ends } = known ?? (await readConsent(sql, tenant, request, audience))
  await sql.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`consent ${tenant} ${user_id}`])
  const row = await queryOne<{ asked: number; retry_after_s: number; expires_at: Date; open: boolean }>(
    sql,
    `SELECT count(*) FILTER (WHERE user_id = $2)::int AS asked,
       ceil(extract(epoch FROM min(created_at) FILTER (WHERE user_id = $2) + interval '1 hour' - clock_timestamp()))::int AS retry_after_s,
       LEAST(clock_timestamp() + $4::int * interval '1 millisecond', $5::timestamptz) AS expires_at,
       EXISTS (SELECT FROM consents WHERE tenant = $1 AND run_id = $3 AND status = 'open') AS open
     FROM consents WHERE tenant = $1 AND user_id = $2 AND created_at > clock_timestamp() - interval '1 hour'`,
    [tenant, user_id, run_id, Math.min(lifetimeMs, hourMs), offer_ends],
  )
  if (!row || row.open)
    throw new MasonError('in_use', 'the run waits for a consent already', {
      remedy: 'wait until it was answered or has expired',
    })
  if (row.asked >= maxAnHour)
    throw new MasonError('too_many_requests', `the user was asked to sign ${maxAnHour} times in an hour`, {
      remedy: 'ask again later',
      detail: { retry_after_s: row.retry_after_s },
    })
  const bound = { consent_id: newConsentId(), payment_id }
  const nonce = randomBytes(24).toString('base64url')
  const content: ConsentContent = {
    type: 'mason.consent.1',
    ...bound,
    audience,
    nonce,
    expires_at: row.expires_at.toISOString(),
    ...request,
  }
  const bytes = JSON.stringify(content)
  // a surface signs the bytes in base64url, with a header and a signature around them
  if (Math.ceil((Buffer.byteLength(bytes) * 4) / 3) + maxEnvelope > maxTokenLength)
    throw new MasonError('invalid_request', 'the texts of this payment are too long to be signed', {
      remedy: 'ask the merchant for a smaller cart, or buy fewer things at a time',
    })
  await sql.query(
    `INSERT INTO consents (consent_id, tenant, user_id, run_id, payment_id, content, nonce, expires_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
    [bound.consent_id, tenant, user_id, run_id, bound.payment_id, bytes, nonce, row.expires_at],
  )
  return bound
}

type Row = {
  consent_id: string
  tenant: string
  user_id: string
  content: string
  expires_at: Date
  is_open: boolean
}

/** A run that has ended or was deleted asks for nothing more. */
const openSql = `status = 'open' AND expires_at > clock_timestamp()
  AND EXISTS (SELECT FROM runs r WHERE r.tenant = consents.tenant AND r.run_id = consents.run_id AND r.ended_at IS NULL)`
const columns = `consent_id, tenant, user_id, content, expires_at, ${openSql} AS is_open`

const answeredError = (): MasonError =>
  new MasonError(
    'input_answered',
    'this payment was approved or refused before, or the time for it is over',
    { remedy: 'close this page' },
  )

/** What the page of a consent sends: an assertion, or a refusal. */
export type ConsentAnswer = { approve: AuthenticationResponseJSON } | { refuse: true }
/** What a surface of the business sends: a compact JWS over the bytes of the consent, or a refusal. */
export type SurfaceAnswer = { signature: string } | { refuse: true }
/** A consent that can be answered: the bytes to sign, and what they say. */
export type OpenConsent = { content: string; facts: ConsentFacts; expires_at: string }

const findOpen = async (sql: Sql, businessId: string, paymentId: string): Promise<Row> => {
  const row = await queryOne<Row>(
    sql,
    `SELECT ${columns} FROM consents WHERE tenant = $1 AND payment_id = $2`,
    [businessId, paymentId],
  )
  if (!row) throw new MasonError('not_found', `no consent is asked for payment "${paymentId}"`)
  if (!row.is_open) throw answeredError()
  return row
}

const showConsent = async (sql: Sql, { tenant, content: text }: Row): Promise<OpenConsent> => {
  const content = parseContent(text)
  const facts = await readConsent(sql, tenant, content, content.audience)
  return { content: text, facts, expires_at: content.expires_at }
}

/** Stores what was signed, or with null a refusal; once, and in time. */
const storeAnswer = async (
  sql: Sql,
  consentId: string,
  signed: AuthenticationResponseJSON | string | null,
): Promise<void> => {
  const row = await queryOne(
    sql,
    `UPDATE consents SET status = $2, answer = $3::json, answered_at = clock_timestamp()
     WHERE consent_id = $1 AND ${openSql} RETURNING consent_id`,
    [consentId, signed === null ? 'refused' : 'signed', signed && JSON.stringify(signed)],
  )
  if (!row) throw answeredError()
}

/** The consents of the API, which shows them, stores what comes back, and wakes the executor, which verifies it. */
export const createConsents = (
  database: Pick<Database, 'query' | 'transaction'>,
  publicUrl: string | null,
  wakeExecutor = () => {},
) => ({
  /** A link to the page of an open consent, good until it expires. A new one ends those before. `not_found`, `input_answered`. */
  async createLink(businessId: string, paymentId: string): Promise<{ url: string; expires_at: string }> {
    const { url } = toSite(publicUrl)
    const row = await findOpen(database, businessId, paymentId)
    const { tenant, user_id, consent_id: ref_id, expires_at } = row
    const link = await database.transaction(async (sql) => {
      // of several at once each ends those before it
      await sql.query('SELECT FROM consents WHERE consent_id = $1 FOR NO KEY UPDATE', [ref_id])
      await sql.query('DELETE FROM consent_links WHERE ref_id = $1', [ref_id])
      return createLink(sql, 'consent', { tenant, user_id, ref_id, expires_at })
    })
    return { url: `${url}/consent/${link}`, expires_at: expires_at.toISOString() }
  },
  /** What a surface of the business shows, and the bytes that it signs. Throws as `createLink`, and as `readConsent`. */
  async read(businessId: string, paymentId: string): Promise<OpenConsent> {
    return showConsent(database, await findOpen(database, businessId, paymentId))
  },
  /** Stores what a surface of the business signed, or the person's refusal. `not_found`, `input_answered` for a second one. */
  async sign(businessId: string, paymentId: string, answer: SurfaceAnswer): Promise<void> {
    const { consent_id } = await findOpen(database, businessId, paymentId)
    await storeAnswer(database, consent_id, 'signature' in answer ? answer.signature : null)
    wakeExecutor()
  },
  /** What the page shows and asks the passkey for. Throws `not_found` for a link that is not good, and as `readConsent`. */
  async open(link: string): Promise<OpenConsent & { options: PublicKeyCredentialRequestOptionsJSON }> {
    const { rpId } = toSite(publicUrl)
    const bound = await findLink(database, 'consent', link)
    const row =
      bound &&
      (await queryOne<Row>(database, `SELECT ${columns} FROM consents WHERE consent_id = $1`, [bound.ref_id]))
    if (!row?.is_open) throw linkError()
    const keys = await listCredentials(database, row.tenant, row.user_id)
    const options = {
      rpId,
      // the bytes that are shown
      challenge: hashText(row.content),
      userVerification: 'required' as const,
      timeout: 300_000,
      allowCredentials: keys.map(({ id }) => ({ id, type: 'public-key' as const })),
    }
    return { ...(await showConsent(database, row)), options }
  },
  /** Stores the person's answer and uses the link up. `input_answered` for a second one, `not_found` for a link that is none. */
  async answer(link: string, answer: ConsentAnswer): Promise<void> {
    await database.transaction(async (sql) => {
      const bound = await useLink(sql, 'consent', link)
      if (!bound) throw (await isUsed(sql, 'consent', link)) ? answeredError() : linkError()
      await storeAnswer(sql, bound.ref_id ?? '', 'approve' in answer ? answer.approve : null)
    })
    wakeExecutor()
  },
})

/** See `createConsents`. */
export type Consents = ReturnType<typeof createConsents>
