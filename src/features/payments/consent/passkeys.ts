import { createHash } from 'node:crypto'
import type { PublicKeyCredentialCreationOptionsJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import { ensureBusiness } from '../../../accounts/businesses.ts'
import { type Database, hasRow, queryOne } from '../../../infra/database/database.ts'
import { MasonError } from '../../../state/errors.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import { hashText } from '../mandates/tokens/encoding.ts'
import { createLink, findLink, useLink } from './links.ts'

/** The library is loaded for the first passkey, so that no start pays for it. */
export const loadWebAuthn = () => import('@simplewebauthn/server')

/** Milliseconds for which a link to enrol is good. */
const enrolmentMs = 15 * 60_000
const maxPasskeys = 10

/** ES256, EdDSA and RS256, which every authenticator has one of. */
const algorithms = [-7, -8, -257]

/** The site that passkeys belong to. `url` is where its pages are, `rpId` its host. Throws `not_found` where this server has no public address. */
export const toSite = (publicUrl: string | null): { url: string; origin: string; rpId: string } => {
  if (publicUrl)
    return { url: publicUrl, origin: new URL(publicUrl).origin, rpId: new URL(publicUrl).hostname }
  throw new MasonError('not_found', 'this server has no public address, so no user can open its pages', {
    remedy: 'set MASON_PUBLIC_URL, for example to https://mason.example.com',
  })
}

/** The refusal of a link. It says nothing of why: the caller may not be who got the link. */
export const linkError = (): MasonError =>
  new MasonError('not_found', 'this link was used, has expired, or is none', {
    remedy: 'ask where you got it for a new one',
  })

const hash = (text: string): Uint8Array<ArrayBuffer> =>
  new Uint8Array(createHash('sha256').update(text).digest())

/** What the challenge is the hash of: the link is random and good once, and so is this. */
const toChallenge = (link: string): string => `enrol ${link}`

/** The ids of the passkeys of a user. */
export const listCredentials = async (
  sql: Sql,
  tenant: string,
  userId: string,
): Promise<{ id: string }[]> => {
  const statement = 'SELECT credential_id AS id FROM passkeys WHERE tenant = $1 AND user_id = $2'
  return (await sql.query<{ id: string }>(statement, [tenant, userId])).rows
}

/**
 * The passkeys of users (WebAuthn, Level 3). A user enrols one on a page of this origin, by a one-time link that their
 * business's proxy asks for. `database` is the API's.
 */
export const createPasskeys = (
  database: Pick<Database, 'query' | 'transaction'>,
  publicUrl: string | null,
) => ({
  /** A link to the page where a user enrols a passkey; good once, for 15 minutes. Hand it to this user alone. */
  async createLink(businessId: string, userId: string): Promise<{ url: string; expires_at: string }> {
    const { url } = toSite(publicUrl)
    await ensureBusiness(database, businessId)
    // by the clock that ends it, which that of this process may not agree with
    const { expires_at } = (await queryOne(
      database,
      `SELECT clock_timestamp() + $1::int * interval '1 millisecond' AS expires_at`,
      [enrolmentMs],
    )) as { expires_at: Date }
    const bound = { tenant: businessId, user_id: userId, ref_id: null, expires_at }
    const link = await createLink(database, 'enrol', bound)
    return { url: `${url}/passkeys/${link}`, expires_at: expires_at.toISOString() }
  },
  /** What the page needs to enrol. Throws `not_found` for a link that is not good. */
  async open(link: string): Promise<{ user_id: string; options: PublicKeyCredentialCreationOptionsJSON }> {
    const { rpId } = toSite(publicUrl)
    const bound = await findLink(database, 'enrol', link)
    if (!bound) throw linkError()
    const { tenant, user_id } = bound
    const { generateRegistrationOptions } = await loadWebAuthn()
    const options = await generateRegistrationOptions({
      rpName: 'Mason',
      rpID: rpId,
      userName: user_id,
      attestationType: 'none',
      userID: hash(JSON.stringify([tenant, user_id])),
      challenge: hash(toChallenge(link)),
      excludeCredentials: await listCredentials(database, tenant, user_id),
      authenticatorSelection: { residentKey: 'preferred', userVerification: 'required' },
      supportedAlgorithmIDs: algorithms,
    })
    return { user_id, options }
  },
  /**
   * Stores the passkey that the page got, and uses the link up. `invalid_request` where it does not verify, which leaves the
   * link open; `already_exists` for a passkey that is enrolled.
   */
  async enrol(link: string, response: RegistrationResponseJSON): Promise<void> {
    const { origin, rpId } = toSite(publicUrl)
    if (!(await findLink(database, 'enrol', link))) throw linkError()
    const { verifyRegistrationResponse } = await loadWebAuthn()
    const { registrationInfo } = await verifyRegistrationResponse({
      response,
      expectedChallenge: hashText(toChallenge(link)),
      expectedOrigin: origin,
      expectedRPID: rpId,
      requireUserVerification: true,
      supportedAlgorithmIDs: algorithms,
    }).catch((cause: unknown) => {
      throw invalidPasskey(cause)
    })
    if (!registrationInfo) throw invalidPasskey(null)
    const { id, publicKey, counter, transports = [] } = registrationInfo.credential
    await database.transaction(async (sql) => {
      const bound = await useLink(sql, 'enrol', link)
      if (!bound) throw linkError()
      const { tenant, user_id } = bound
      // or two at once would each count without the other
      await sql.query('SELECT pg_advisory_xact_lock(hashtext($1))', [`passkeys ${tenant} ${user_id}`])
      if ((await listCredentials(sql, tenant, user_id)).length >= maxPasskeys)
        throw new MasonError('already_exists', `the user has ${maxPasskeys} passkeys, which is the most`, {
          remedy: 'delete the user’s passkeys, then enrol again',
        })
      const row = await queryOne(
        sql,
        `INSERT INTO passkeys (credential_id, tenant, user_id, public_key, counter, transports)
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING RETURNING credential_id`,
        [id, tenant, user_id, publicKey, counter, JSON.stringify(transports)],
      )
      if (!row)
        throw new MasonError('already_exists', 'this passkey is enrolled already', {
          remedy: 'use it, or choose another device',
        })
    })
  },
  /** See `deletePasskeys`. */
  remove: (businessId: string, userId: string) => deletePasskeys(database, businessId, userId),
})

/**
 * Deletes the open links and passkeys of a user, in this order: a link that is being used has its passkey stored by then. Safe to
 * repeat. Whether there was a passkey: a link is nothing that a caller would look for.
 */
export const deletePasskeys = async (sql: Sql, businessId: string, userId: string): Promise<boolean> => {
  const ofUser = 'WHERE tenant = $1 AND user_id = $2'
  await sql.query(`DELETE FROM consent_links ${ofUser}`, [businessId, userId])
  return hasRow(sql, `DELETE FROM passkeys ${ofUser} RETURNING 1`, [businessId, userId])
}

/** See `createPasskeys`. */
export type Passkeys = ReturnType<typeof createPasskeys>

const invalidPasskey = (cause: unknown): MasonError =>
  new MasonError('invalid_request', 'the passkey could not be verified', {
    remedy: 'open the link again on this site, with a device that asks for your fingerprint, face or PIN',
    detail: { errors: [{ pointer: '', detail: (cause as Error | null)?.message ?? 'is no passkey' }] },
    cause,
  })
