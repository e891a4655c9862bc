import type { CryptoKey, JWK } from 'jose'
import { decodeProtectedHeader } from 'jose/decode/protected_header'
import { compactDecrypt } from 'jose/jwe/compact/decrypt'
import { CompactEncrypt } from 'jose/jwe/compact/encrypt'
import { queryOne } from '../../../infra/database/database.ts'
import { MasonError } from '../../../state/errors.ts'
import type { Sql } from '../../../state/ports/sql.ts'

/**
 * Texts that one process encrypts and only the executor of payments can read: compact JWE (RFC 7516) by ECDH-ES with
 * A256KW (RFC 7518) and A256GCM. The header says what the text is for, and is authenticated with it.
 */

const algorithm = 'ECDH-ES+A256KW'
const encryption = 'A256GCM'

/** The public key that texts are encrypted to. */
type SealingKey = { kid: string; jwk: JWK }

/** The executor's sealing key in use. Throws `secret_unreadable` where no executor has ever started. */
export const readSealingKey = async (sql: Sql): Promise<SealingKey> => {
  const row = await queryOne<{ kid: string; x: string; y: string }>(
    sql,
    "SELECT kid, x, y FROM payment_keys WHERE purpose = 'sealing' AND ended_at IS NULL",
    [],
  )
  if (row) return { kid: row.kid, jwk: { kty: 'EC', crv: 'P-256', x: row.x, y: row.y } }
  throw new MasonError('secret_unreadable', 'no executor of payments has started on this database yet', {
    remedy: 'start `mason payments`, which publishes the key that secrets are encrypted to; then try again',
  })
}

/**
 * Encrypts a text to the executor's public key: this process cannot read it again. `purpose` says which row and use it is
 * for; the executor reads it for no other. Throws `secret_unreadable` without a published key.
 */
export const sealForExecutor = async (sql: Sql, text: string, purpose: string): Promise<string> => {
  const { kid, jwk } = await readSealingKey(sql)
  return new CompactEncrypt(Buffer.from(text))
    .setProtectedHeader({ alg: algorithm, enc: encryption, kid, use: purpose })
    .encrypt(jwk)
}

/** Decrypts what `sealForExecutor` made for this purpose. Throws `secret_unreadable` for anything else. */
export const unsealText = async (
  jwe: string,
  purpose: string,
  findKey: (kid: string) => Promise<CryptoKey | JWK | null>,
): Promise<string> => {
  const refuse = (reason: string, cause?: unknown): never => {
    throw new MasonError('secret_unreadable', `the sealed ${purpose} cannot be read: ${reason}`, {
      remedy: 'enter it again',
      cause,
    })
  }
  const key = await findKey(readKid(jwe))
  if (!key) return refuse('it is encrypted to a key that this executor does not have')
  const { plaintext, protectedHeader } = await compactDecrypt(jwe, key, {
    keyManagementAlgorithms: [algorithm],
    contentEncryptionAlgorithms: [encryption],
  }).catch((error: unknown) => refuse('it was changed, or is no sealed text', error))
  if (protectedHeader.use !== purpose) return refuse('it was made for another row or another use')
  return Buffer.from(plaintext).toString()
}

const readKid = (jwe: string): string => {
  try {
    return decodeProtectedHeader(jwe).kid ?? ''
  } catch {
    return ''
  }
}

/** What the answer to a secret question is for. `question`: see `toQuestion`. */
export type AnswerUse = { business_id: string; user_id: string; payment_id: string; question: string }

/** The question of a call, as answers are encrypted for it. */
export const toQuestion = (runId: string | null, planSeq: number | null, callIndex: number | null): string =>
  `${runId}/${planSeq}/${callIndex}`

/** The purpose of the answer to a secret question. */
export const toAnswerPurpose = ({ business_id, user_id, payment_id, question }: AnswerUse): string =>
  `payment-answer ${JSON.stringify([business_id, user_id, payment_id, question])}`
