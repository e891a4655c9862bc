import type { JWK } from 'jose'
import { calculateJwkThumbprint } from 'jose/jwk/thumbprint'
import { exportJWK } from 'jose/key/export'
import { generateKeyPair } from 'jose/key/generate/keypair'
import { type Database, queryOne } from '../../../infra/database/database.ts'
import {
  openSealedText,
  type SealBinding,
  type SealedText,
  sealText,
} from '../../../infra/secrets/envelope.ts'
import type { MasterKeys } from '../../../infra/secrets/master-keys.ts'
import { isObject, type JsonObject } from '../mandates/tokens/encoding.ts'
import type { SigningKey } from '../mandates/tokens/keys.ts'
import { unsealText } from './sealed-texts.ts'

/**
 * What a key pair is for: opening texts that the API sealed, signing receipts and what a person approved, or closing open mandates
 * as the agent that they name.
 */
type KeyPurpose = 'sealing' | 'signing' | 'agent'

type PairRow = SealedText & { kid: string }

const toBinding = (kid: string): SealBinding => ({ purpose: 'payment', vendor_id: '', row_id: kid })

const columns = 'kid, master_key, wrapped_key, sealed_private AS sealed'

const readPair = (sql: Pick<Database, 'query'>, purpose: KeyPurpose): Promise<PairRow | null> =>
  queryOne<PairRow>(sql, `SELECT ${columns} FROM payment_keys WHERE purpose = $1 AND ended_at IS NULL`, [
    purpose,
  ])

const open = (row: PairRow, keys: MasterKeys): JWK =>
  JSON.parse(openSealedText(row, toBinding(row.kid), keys).reveal()) as JWK

/** Adds a pair. Where another executor has added one at the same moment, that one stays. */
const addPair = async (
  sql: Pick<Database, 'query'>,
  purpose: KeyPurpose,
  keys: MasterKeys,
): Promise<void> => {
  const pair = await generateKeyPair('ES256', { extractable: true })
  const { kty, crv, x, y, d } = await exportJWK(pair.privateKey)
  const kid = await calculateJwkThumbprint({ kty, crv, x, y } as JWK)
  const { master_key, wrapped_key, sealed } = sealText(
    JSON.stringify({ kty, crv, x, y, d }),
    toBinding(kid),
    keys,
  )
  await sql.query(
    `INSERT INTO payment_keys (kid, purpose, x, y, master_key, wrapped_key, sealed_private)
     VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (purpose) WHERE ended_at IS NULL DO NOTHING`,
    [kid, purpose, x, y, master_key, wrapped_key, sealed],
  )
}

/** How many of the pairs in use there are. Throws `secret_unreadable` for one that these keys do not open. */
export const checkKeyPairs = async (sql: Pick<Database, 'query'>, keys: MasterKeys): Promise<number> => {
  const { rows } = await sql.query<PairRow>(`SELECT ${columns} FROM payment_keys WHERE ended_at IS NULL`)
  for (const row of rows) open(row, keys)
  return rows.length
}

const purposes: readonly KeyPurpose[] = ['sealing', 'signing', 'agent']
const maxAgeMs = 5_000

/**
 * The executor's keys, made at its first start. Throws `secret_unreadable` where those in use cannot be opened. Only the
 * executor's role can read them. Another process may replace them meanwhile: they are looked up again after 5 s.
 */
export const openPaymentKeys = async (
  database: Pick<Database, 'query'>,
  keys: MasterKeys,
  nowMs: () => number = Date.now,
) => {
  for (const purpose of purposes)
    if (!(await readPair(database, purpose))) await addPair(database, purpose, keys)
  await checkKeyPairs(database, keys)
  let signing: { key: SigningKey; readAtMs: number } | null = null
  return {
    /** The key that receipts are signed with now. */
    async signingKey(): Promise<SigningKey> {
      if (signing && nowMs() - signing.readAtMs < maxAgeMs) return signing.key
      const row = (await readPair(database, 'signing')) as PairRow
      const key = signing?.key.kid === row.kid ? signing.key : { key: open(row, keys), kid: row.kid }
      signing = { key, readAtMs: nowMs() }
      return key
    },
    /** The public key that open mandates name as their agent's, as a JWK. */
    async agentJwk(): Promise<JsonObject> {
      const { kty, crv, x, y } = open((await readPair(database, 'agent')) as PairRow, keys)
      return { kty, crv, x, y }
    },
    /** The private key of a public one that open mandates name, also after it has ended; null: it is not the agent's of Mason. */
    async agentKey(jwk: unknown): Promise<SigningKey | null> {
      if (!isObject(jwk)) return null
      const row = await queryOne<PairRow>(
        database,
        `SELECT ${columns} FROM payment_keys WHERE x = $1 AND y = $2 AND purpose = 'agent'`,
        [String(jwk.x), String(jwk.y)],
      )
      return row && { key: open(row, keys) }
    },
    /** Opens what `sealForExecutor` made for this purpose, also under a key that has ended. Throws `secret_unreadable`. */
    unseal: (jwe: string, purpose: string): Promise<string> =>
      unsealText(jwe, purpose, async (kid) => {
        const row = await queryOne<PairRow>(
          database,
          `SELECT ${columns} FROM payment_keys WHERE kid = $1 AND purpose = 'sealing'`,
          [kid],
        )
        return row && open(row, keys)
      }),
  }
}

/** See `openPaymentKeys`. */
export type PaymentKeys = Awaited<ReturnType<typeof openPaymentKeys>>

/**
 * Ends the pairs that are under another key than the current one and puts new ones in their place, since a leaked key opens
 * them; also those whose key is lost. Returns how many. Safe to repeat.
 */
export const replacePairs = (database: Database, keys: MasterKeys): Promise<number> =>
  database.transaction(async (sql) => {
    const { rows } = await sql.query<{ purpose: KeyPurpose }>(
      `UPDATE payment_keys SET ended_at = clock_timestamp()
       WHERE ended_at IS NULL AND master_key <> $1 RETURNING purpose`,
      [keys.current().name],
    )
    for (const { purpose } of rows) await addPair(sql, purpose, keys)
    return rows.length
  })
