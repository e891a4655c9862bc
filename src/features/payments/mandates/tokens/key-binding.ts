import { hashText, type JsonObject } from './encoding.ts'
import { issueSdJwt } from './issue.ts'
import { type Jws, parseJws, signJws } from './jws.ts'
import type { SigningKey } from './keys.ts'
import { parseSdJwt, type SdJwt } from './sd-jwt.ts'
import { TokenError } from './token-error.ts'

/** `user_authorization` of AP2 0.1: a credential with the user's key, and what that key signed. */
export type KeyBound = { credential: SdJwt; binding: Jws }

/** Some peers encode a whole token in base64url once more. A text without "." is decoded once. */
export const unwrapToken = (text: string): string =>
  text.includes('.') ? text : Buffer.from(text, 'base64url').toString()

/** Reads an SD-JWT with key binding. */
export const parseKeyBound = (text: string, field: string): KeyBound => {
  const credential = parseSdJwt(unwrapToken(text), field)
  if (!credential.keyBinding)
    throw new TokenError('missing_key_binding', field, 'has no key-binding JWT after its last "~"')
  return { credential, binding: parseJws(credential.keyBinding, `${field}.key_binding`) }
}

/** Binds an SD-JWT to a purpose: the holder's key signs for whom, when, and over which hashes. */
export const bindToTransaction = async (
  credential: string,
  key: SigningKey,
  {
    audience,
    nonce,
    iat,
    hashes,
  }: { audience: string; nonce: string; iat: number; hashes: readonly string[] },
): Promise<string> => {
  const claims = {
    iat,
    aud: audience,
    nonce,
    sd_hash: hashText(credential),
    // AP2's name, and OpenID4VP's
    transaction_data: hashes,
    transaction_data_hashes: hashes,
    transaction_data_hashes_alg: 'sha-256',
  }
  return credential + (await signJws(claims, key, { typ: 'kb+jwt' }))
}

/** Issues a credential of a user: the holder's key signs for the user. */
export const issueCredential = (claims: JsonObject, holder: JsonObject, key: SigningKey): Promise<string> =>
  issueSdJwt({ ...claims, cnf: { jwk: holder } }, key)
