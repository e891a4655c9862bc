import { createPublicKey, type KeyObject } from 'node:crypto'
import type { CryptoKey, JWK } from 'jose'
import { exportJWK } from 'jose/key/export'
import { LRUCache } from 'lru-cache'
import { decodeBase64Url, hashText, isObject, type JsonObject } from './encoding.ts'
import { TokenError } from './token-error.ts'

/** A public key on P-256. `thumbprint` is that of RFC 7638. */
export type PublicKey = { object: KeyObject; thumbprint: string }

/** A private key on P-256 and the name that its tokens carry. */
export type SigningKey = { key: CryptoKey | KeyObject | JWK; kid?: string }

/** The public key of a private one, as a JWK. */
export const toPublicJwk = async ({ key }: SigningKey): Promise<JsonObject> => {
  const { kty, crv, x, y } = (key as JWK).kty ? (key as JWK) : await exportJWK(key as CryptoKey)
  return { kty, crv, x, y }
}

/** What a signature is about, and so who must have made it: AP2's roles, and the surface on which a user signs. */
export type SignerRole = 'trusted-surface' | 'merchant' | 'payment-processor'

/** The trusted keys that may have made a signature: by its role and by what the token says of its key. */
export type FindKeys = (wanted: { role: SignerRole; kid?: string; issuer?: string }) => readonly PublicKey[]

/** Makes a key of a JWK that `field` had. Throws a `TokenError` for what is no point on P-256. */
export type KeyImporter = (jwk: unknown, field: string) => PublicKey

/** So many keys stay imported: importing one costs what a signature does, and agents sign often with one key. */
const maxImported = 1000

/** A `KeyImporter` that remembers the keys it made. One for a process is enough. */
export const createKeyImporter = (): KeyImporter => {
  const imported = new LRUCache<string, PublicKey>({ max: maxImported })
  return (jwk, field) => {
    const { kty, crv, x, y } = isObject(jwk) ? jwk : {}
    if (kty !== 'EC' || crv !== 'P-256' || typeof x !== 'string' || typeof y !== 'string')
      throw new TokenError('key_not_p256', field, 'is no public key on P-256 (kty EC, crv P-256, x, y)')
    const point = `${x}.${y}`
    const known = imported.get(point)
    if (known) return known
    const key = { object: importPoint(x, y, field), thumbprint: toThumbprint(x, y) }
    imported.set(point, key)
    return key
  }
}

/** The key of a point on P-256, each coordinate 32 bytes in base64url. Throws a `TokenError` for what is none. */
export const importPoint = (x: string, y: string, field: string): KeyObject => {
  for (const part of [x, y])
    if (decodeBase64Url(part, field).length !== 32)
      throw new TokenError('key_not_p256', field, 'has an x or y that is not 32 bytes long')
  try {
    return createPublicKey({ key: { kty: 'EC', crv: 'P-256', x, y }, format: 'jwk' })
  } catch {
    throw new TokenError('key_not_p256', field, 'has x and y that are no point on P-256')
  }
}

const toThumbprint = (x: string, y: string): string =>
  hashText(`{"crv":"P-256","kty":"EC","x":"${x}","y":"${y}"}`)

/** Keys of a list that have every role. A token finds its key by `kid`; keys without one may belong to any token. */
export const trustForEveryRole = (jwks: readonly unknown[], importKey: KeyImporter): FindKeys => {
  const keys = jwks.map((jwk, i) => ({
    kid: isObject(jwk) ? jwk.kid : undefined,
    key: importKey(jwk, `trust.keys[${i}]`),
  }))
  return ({ kid }) =>
    keys
      .filter((entry) => kid === undefined || entry.kid === undefined || entry.kid === kid)
      .map(({ key }) => key)
}
