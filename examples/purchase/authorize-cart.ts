import { hashJson } from '../../src/features/payments/mandates/tokens/authorizations.ts'
import type { JsonObject } from '../../src/features/payments/mandates/tokens/encoding.ts'
import { signJws } from '../../src/features/payments/mandates/tokens/jws.ts'
import type { SigningKey } from '../../src/features/payments/mandates/tokens/keys.ts'

/** Who signs a cart, for whom, and when. Times are in seconds. */
export type CartClaims = {
  issuer: string
  subject: string
  /** Who will verify it, such as the payment processor. */
  audience: string
  iat: number
  /** Unique, against a second use. */
  jti: string
  lifetime?: number
}

/** The merchant's signature of a cart, `merchant_authorization`: of its contents as they are on the wire. */
export const authorizeCart = (
  contents: JsonObject,
  { issuer, subject, audience, iat, jti, lifetime = 600 }: CartClaims,
  key: SigningKey,
): Promise<string> => {
  const claims = { iss: issuer, sub: subject, aud: audience, iat, exp: iat + lifetime, jti }
  return signJws({ ...claims, cart_hash: hashJson(contents) }, key, { typ: 'JWT' })
}
