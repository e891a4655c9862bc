import { toCanonicalJson } from '../../../canonical-json.ts'
import { hashText, type JsonObject } from './encoding.ts'
import { bindToTransaction } from './key-binding.ts'
import type { SigningKey } from './keys.ts'

/** How AP2 0.1 is signed and hashed. It leaves hash, canonical form and encoding open: we write one, and accept what else is likely. */

/** The hash of a JSON value: SHA-256 over its canonical form without nulls, in base64url. */
export const hashJson = (value: unknown): string => hashText(toCanonicalJson(value, { withoutNulls: true }))

/** Whether a hash is that of a JSON value, with its nulls or without, in base64url or hex. Throws as `toCanonicalJson`. */
export const isHashOf = (hash: unknown, value: unknown): boolean =>
  typeof hash === 'string' &&
  [hashJson(value), hashText(toCanonicalJson(value))].some(
    (made) => hash === made || hash.toLowerCase() === Buffer.from(made, 'base64url').toString('hex'),
  )

/** The user's signature of a payment, `user_authorization`: of the whole signed cart and the payment's contents, as on the wire. */
export const authorizePayment = (
  cart: JsonObject,
  contents: JsonObject,
  credential: string,
  key: SigningKey,
  binding: { audience: string; nonce: string; iat: number },
): Promise<string> =>
  bindToTransaction(credential, key, { ...binding, hashes: [hashJson(cart), hashJson(contents)] })
