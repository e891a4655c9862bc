import type { AuthenticationResponseJSON } from '@simplewebauthn/server'
import { type Database, hasRow, queryOne, type RunKey } from '../../../infra/database/database.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import { toDelayMs } from '../ledger/delays.ts'
import type { MandatePair, PaymentRequest } from '../ledger/orders.ts'
import { authorizePayment } from '../mandates/tokens/authorizations.ts'
import { findSigner } from '../mandates/tokens/chain.ts'
import { hashText, type JsonObject } from '../mandates/tokens/encoding.ts'
import { conceal, issueMandate } from '../mandates/tokens/issue.ts'
import { parseJws } from '../mandates/tokens/jws.ts'
import { issueCredential } from '../mandates/tokens/key-binding.ts'
import { type SigningKey, toPublicJwk } from '../mandates/tokens/keys.ts'
import { attempt } from '../mandates/tokens/token-error.ts'
import { type OpenMandatePair, readOpenMandates, signOpenMandates } from '../mandates/v2/open-mandates.ts'
import type { Violation } from '../mandates/violations.ts'
import { createSigners } from '../trust/signers.ts'
import { createTrust } from '../trust/trust.ts'
import { type ConsentContent, parseContent } from './content.ts'
import { loadWebAuthn, toSite } from './passkeys.ts'

/** What the executor decides consents with. `database` is under its own role. */
export type ConsentServices = {
  database: Database
  /** `agentJwk`: the public key that open mandates name. */
  signer: { issuer: string; signingKey(): Promise<SigningKey>; agentJwk(): Promise<JsonObject> }
  publicUrl: string | null
  /** Called for the run of a consent that was decided. */
  wake?(run: RunKey): void
}

/** What became of a consent, for the run that waits for it. `message` is for the person. */
export type ConsentOutcome = {
  consent_id: string
  payment_id: string
  status: 'verified' | 'refused' | 'expired' | 'failed'
  message: string
}

/** The mandates of a consent and the nonce that they have: with a provider, they are an order to pay. */
export type IssuedMandates = MandatePair & Pick<PaymentRequest, 'nonce'>

type Row = {
  consent_id: string
  tenant: string
  user_id: string
  run_id: string | null
  payment_id: string
  content: string
  nonce: string
  status: 'open' | 'signed' | 'refused'
  /** What a browser sent, or the JWS of a surface of the business. */
  answer: AuthenticationResponseJSON | string | null
  /** How often its decision has thrown. */
  tries: number
  /** By the clock of the database, which mandates count by. */
  now: Date
}

const undecidedSql = `decided_at IS NULL AND next_at <= clock_timestamp() AND (status <> 'open' OR expires_at <= clock_timestamp())`
const takeStatement = `
  SELECT consent_id, tenant, user_id, run_id, payment_id, content, nonce, status, answer, tries, clock_timestamp() AS now FROM consents WHERE ${undecidedSql}
  ORDER BY next_at LIMIT 1 FOR UPDATE SKIP LOCKED`

const messages: Record<ConsentOutcome['status'], string> = {
  verified: 'The payment was approved.',
  refused: 'The payment was refused. Nothing is paid; ask before you offer it again.',
  expired: 'No one approved the payment in time. Nothing is paid; ask again.',
  failed: 'The approval could not be verified. Nothing is paid; ask again.',
}

const openMessages: Record<ConsentOutcome['status'], string> = {
  verified: 'The user signed the open mandate.',
  refused: 'The user refused the open mandate. Nothing will be bought; ask before you propose it again.',
  expired: 'No one signed the open mandate in time. Nothing will be bought; propose it again.',
  failed: 'The signature could not be verified. Nothing will be bought; propose it again.',
}

/** A page that is framed by another site says so in what the passkey signs; the library leaves that to the caller. */
const isFramed = ({ response }: AuthenticationResponseJSON): boolean => {
  const data = JSON.parse(Buffer.from(response.clientDataJSON, 'base64url').toString()) as JsonObject
  return data.crossOrigin === true || data.topOrigin !== undefined
}

/** What signed the bytes of a consent (the thumbprint of a key, or the id of a passkey), or why nothing did. */
type Verdict = { key: string } | { problem: string }

/** By a surface that the business trusts now. */
const verifySurface = async (sql: Sql, { tenant, content }: Row, signature: string): Promise<Verdict> => {
  if (signature.split('.')[1] !== Buffer.from(content).toString('base64url'))
    return { problem: 'the signature is of other bytes' }
  return createSigners(createTrust(sql)).withTrust(tenant, (findKeys) => {
    const violations: Violation[] = []
    const read = () => findSigner(parseJws(signature, 'signature'), 'trusted-surface', findKeys)
    const key = attempt(violations, read)
    return key ? { key: key.thumbprint } : { problem: violations[0]?.message ?? '' }
  })
}

/**
 * By a passkey of this user, on this site, after it verified the person. The counter of the passkey must go up where it has
 * one.
 */
const verifyPasskey = async (
  sql: Sql,
  { tenant, user_id, content }: Row,
  answer: AuthenticationResponseJSON,
  publicUrl: string | null,
): Promise<Verdict> => {
  const passkey = await queryOne<{ public_key: Uint8Array; counter: number }>(
    sql,
    `SELECT public_key, counter::int8 AS counter FROM passkeys
     WHERE credential_id = $1 AND tenant = $2 AND user_id = $3 FOR UPDATE`,
    [String(answer.id), tenant, user_id],
  )
  if (!passkey) return { problem: 'the passkey is not one of this user' }
  try {
    const { origin, rpId } = toSite(publicUrl)
    const { verifyAuthenticationResponse } = await loadWebAuthn()
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response: answer,
      expectedChallenge: hashText(content),
      expectedOrigin: origin,
      expectedRPID: rpId,
      requireUserVerification: true,
      credential: {
        id: answer.id,
        publicKey: new Uint8Array(passkey.public_key),
        counter: Number(passkey.counter),
      },
    })
    if (!verified) return { problem: 'the signature is not of this passkey' }
    if (isFramed(answer)) return { problem: 'the page was inside another one' }
    await sql.query(
      'UPDATE passkeys SET counter = $2, last_used_at = clock_timestamp() WHERE credential_id = $1',
      [answer.id, authenticationInfo.newCounter],
    )
    return { key: answer.id }
  } catch (error) {
    return { problem: (error as Error).message }
  }
}

const verifyAnswer = async (sql: Sql, row: Row, publicUrl: string | null): Promise<Verdict> => {
  const { answer } = row
  if (answer === null) return { problem: 'there is no answer' }
  return typeof answer === 'string'
    ? verifySurface(sql, row, answer)
    : verifyPasskey(sql, row, answer, publicUrl)
}

/** How long the mandates are good once they are signed, in seconds: the payment follows at once. */
const lifetimeS = 3600

/** The bytes of a consent, parsed; null for others, which no page has shown: a page shows all of what it reads. */
const readContent = (text: string): ConsentContent | null => {
  try {
    const content = parseContent(text)
    return content.version === '0.2-open' && !readOpenMandates(content) ? null : content
  } catch {
    return null
  }
}

/** Stores open mandates that were signed, which makes them usable; with null, the person did not approve them. */
const decideOpenMandates = async (
  sql: Sql,
  { tenant, user_id, payment_id }: Row,
  status: ConsentOutcome['status'],
  signed: OpenMandatePair | null,
): Promise<void> =>
  void (await sql.query(
    `UPDATE open_mandates SET status = $2, checkout = $3, payment = $4, decided_at = clock_timestamp(),
       sealed = CASE WHEN $2 = 'active' THEN sealed END
     WHERE mandate_id = $1 AND tenant = $5 AND user_id = $6 AND status = 'proposed'`,
    [
      payment_id,
      signed ? 'active' : status,
      signed?.checkout ?? null,
      signed?.payment ?? null,
      tenant,
      user_id,
    ],
  ))

/** Signs the mandates that a person approved with the executor's key, which businesses trust as a trusted surface. */
const issueMandates = async (
  consent: Exclude<ConsentContent, { version: '0.2-open' }>,
  { issuer }: ConsentServices['signer'],
  now: Date,
  key: SigningKey,
): Promise<IssuedMandates> => {
  const { audience, nonce, payment, consent_id } = consent
  const iat = Math.floor(now.getTime() / 1000)
  const exp = iat + lifetimeS
  if (consent.version === '0.1') {
    const contents = JSON.parse(payment) as JsonObject
    const claims = { iss: issuer, vct: 'mason.consent.1', consent_id, iat, exp }
    const credential = await issueCredential(claims, await toPublicJwk(key), key)
    const binding = { audience, nonce, iat }
    const cart = JSON.parse(consent.cart) as JsonObject
    const user_authorization = await authorizePayment(cart, contents, credential, key, binding)
    const mandate = JSON.stringify({ payment_mandate_contents: contents, user_authorization })
    return { version: '0.1', cart: consent.cart, payment: mandate, nonce }
  }
  const closed = JSON.parse(payment) as JsonObject
  const claims = { iss: issuer, iat, aud: audience, nonce }
  const checkout = {
    vct: 'mandate.checkout.1',
    checkout_jwt: conceal(consent.checkout),
    checkout_hash: hashText(consent.checkout),
    iat,
    exp,
  }
  const [paymentToken, checkoutToken] = await Promise.all([
    issueMandate({ ...closed, exp: closed.exp ?? exp }, key, claims),
    issueMandate(checkout, key, claims),
  ])
  return { version: '0.2', payment: paymentToken, checkout: checkoutToken, nonce }
}

/** A decision may throw so often. Then the consent has failed, and nothing but its end is written. */
const maxTries = 5

/** A consent whose decision threw is decided again later, and the others meanwhile. */
const retrySql = `UPDATE consents SET tries = tries + 1, next_at = clock_timestamp() + $2::int * interval '1 millisecond'
  WHERE consent_id = $1 AND decided_at IS NULL`

/**
 * Decides one consent that was answered or has expired: verifies what the API stored, issues the mandates, and ends the run's
 * wait, in one transaction. Null where none is there. Any number of executors may call it at the same time.
 */
export const decideConsent = async (services: ConsentServices): Promise<ConsentOutcome | null> => {
  const decided = await decideNext(services)
  if (decided?.run_id) services.wake?.({ tenant: decided.tenant, run_id: decided.run_id })
  return decided?.outcome ?? null
}

const decideNext = async ({ database, ...services }: ConsentServices) => {
  if (!(await hasRow(database, `SELECT FROM consents WHERE ${undecidedSql} LIMIT 1`, []))) return null
  // PGlite has one session: what is read inside the transaction is read by it alone
  const [key, agent] = [await services.signer.signingKey(), await services.signer.agentJwk()]
  let taken = null as Row | null
  const decide = async (sql: Sql) => {
    const row = await queryOne<Row>(sql, takeStatement, [])
    if (!row) return null
    taken = row
    const content = readContent(row.content)
    const isOpen = content?.version === '0.2-open'
    const isGivenUp = row.tries >= maxTries
    const answered =
      row.status !== 'signed'
        ? null
        : isGivenUp
          ? { problem: `its decision failed ${maxTries} times` }
          : await verifyAnswer(sql, row, services.publicUrl)
    const verdict = answered && !content ? { problem: 'these are not the bytes of a consent' } : answered
    const status =
      row.status === 'open' ? 'expired' : !verdict ? 'refused' : 'key' in verdict ? 'verified' : 'failed'
    const { consent_id, payment_id, tenant, run_id, nonce } = row
    const isVerified = status === 'verified'
    const issued =
      isVerified && content && !isOpen ? await issueMandates(content, services.signer, row.now, key) : null
    if (isOpen) {
      const signing = { issuer: services.signer.issuer, iat: Math.floor(row.now.getTime() / 1000) }
      const signed = isVerified ? await signOpenMandates(content, agent, signing, key) : null
      await decideOpenMandates(sql, row, status, signed)
    }
    const message = (isOpen ? openMessages : messages)[status]
    const outcome: ConsentOutcome = { consent_id, payment_id, status, message }
    const detail = JSON.stringify({ consent_id, ...verdict })
    // one round trip
    await Promise.all([
      sql.query(
        `UPDATE consents SET status = $2, decided_at = clock_timestamp(), outcome = $3, issued = $4 WHERE consent_id = $1`,
        [consent_id, status, JSON.stringify(outcome), issued && JSON.stringify(issued)],
      ),
      issued &&
        sql.query(
          `INSERT INTO payment_nonces (nonce, tenant, expires_at) VALUES ($1, $2, clock_timestamp() + $3::int * interval '1 second')`,
          [nonce, tenant, lifetimeS],
        ),
      sql.query('INSERT INTO payment_events (tenant, payment_id, kind, detail) VALUES ($1, $2, $3, $4)', [
        tenant,
        payment_id,
        `consent_${status}`,
        detail,
      ]),
      sql.query(`SELECT end_wait($1, 'payment', $2, $3)`, [tenant, payment_id, JSON.stringify(outcome)]),
    ])
    return { outcome, tenant, run_id }
  }
  try {
    return await database.transaction(decide)
  } catch (error) {
    if (taken !== null) await database.query(retrySql, [taken.consent_id, toDelayMs(taken.tries)])
    throw error
  }
}
