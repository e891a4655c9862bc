import { verify } from 'node:crypto'
import { CompactSign } from 'jose/jws/compact/sign'
import {
  checkLength,
  decodeBase64Url,
  decodeJson,
  isObject,
  type JsonObject,
  toShortText,
} from './encoding.ts'
import type { PublicKey, SigningKey } from './keys.ts'
import { TokenError } from './token-error.ts'

/** A signed JWT in compact form, read but not verified. */
export type Jws = {
  /** Where it is in what was received, for messages. */
  field: string
  text: string
  header: JsonObject
  payload: JsonObject
  /** `header.payload`, what the signature covers: the content's identity, which the whole text is not. */
  signingInput: string
  signature: Buffer
}

/** Headers that name or bring a key, or change how a token is read. A signer could choose its own key by them. */
const refusedHeaders = ['jku', 'x5u', 'x5c', 'jwk', 'crit'] as const

const decodeObject = (text: string, field: string): JsonObject => {
  const value = decodeJson(text, field)
  if (!isObject(value)) throw new TokenError('malformed_token', field, 'is no JSON object')
  return value
}

/** Reads a compact JWS of ES256. Throws a `TokenError` for every other algorithm and for headers that bring a key. */
export const parseJws = (text: string, field: string): Jws => {
  checkLength(text, field)
  const parts = text.split('.', 4)
  const [head = '', body = '', signature = ''] = parts
  if (parts.length !== 3)
    throw new TokenError(
      'malformed_token',
      field,
      'is no compact JWS: it needs header, payload and signature',
    )
  const header = decodeObject(head, `${field}.header`)
  const { alg } = header
  if (alg === 'none')
    throw new TokenError('algorithm_none', `${field}.header.alg`, 'is "none": sign it with ES256')
  if (alg !== 'ES256') {
    const name = toShortText(alg)
    const code = /^HS/.test(name) ? 'algorithm_symmetric' : 'algorithm_not_es256'
    throw new TokenError(code, `${field}.header.alg`, `is ${name}: sign it with ES256`)
  }
  for (const name of refusedHeaders)
    if (name in header)
      throw new TokenError(
        `header_${name}`,
        `${field}.header.${name}`,
        'is refused, keys come from the trusted ones alone: leave it out',
      )
  const payload = decodeObject(body, `${field}.payload`)
  const bytes = decodeBase64Url(signature, `${field}.signature`)
  if (bytes.length !== 64)
    throw new TokenError(
      'malformed_signature',
      `${field}.signature`,
      `has ${bytes.length} bytes in place of 64`,
    )
  return {
    field,
    text,
    header,
    payload,
    signingInput: text.slice(0, text.lastIndexOf('.')),
    signature: bytes,
  }
}

/** Whether this key made the signature. By node:crypto: with jose it takes twice as long. */
export const verifyJws = ({ signingInput, signature }: Jws, { object }: PublicKey): boolean =>
  verify('sha256', Buffer.from(signingInput), { key: object, dsaEncoding: 'ieee-p1363' }, signature)

/** Signs claims with ES256. `kid` is in the header where the key has one. */
export const signJws = (
  payload: JsonObject,
  { key, kid }: SigningKey,
  header: { typ?: string } = {},
): Promise<string> =>
  new CompactSign(Buffer.from(JSON.stringify(payload)))
    .setProtectedHeader({ alg: 'ES256', ...header, ...(kid === undefined ? {} : { kid }) })
    .sign(key)
