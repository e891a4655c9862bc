import { maxTokenDepth } from '../../../canonical-json.ts'
import { checkLength, decodeJson, hashText, isObject, type JsonObject } from './encoding.ts'
import { type Jws, parseJws } from './jws.ts'
import { TokenError } from './token-error.ts'

/** A token with more disclosures is refused. */
export const maxDisclosures = 200

/** An SD-JWT (RFC 9901), read but not verified. */
export type SdJwt = {
  jws: Jws
  disclosures: string[]
  /** With its disclosures and the last "~": what `sd_hash` is made of. */
  text: string
  /** What follows the last "~", if anything: a key-binding JWT. */
  keyBinding: string
}

/** Claims with their disclosures in place. Entries of lists that were not disclosed stay as `{"...": digest}`. */
export type DisclosedClaims = {
  claims: JsonObject
  /** Where claims were not disclosed: the field paths of the objects that have them. */
  concealed: string[]
}

/** Reads `<JWT>~<disclosure>~…~[<key-binding JWT>]`. */
export const parseSdJwt = (text: string, field: string): SdJwt => {
  checkLength(text, field)
  const end = text.lastIndexOf('~') + 1
  if (end === 0) throw new TokenError('malformed_token', field, 'is no SD-JWT: it has no "~"')
  const [jwt = '', ...disclosures] = text.slice(0, end - 1).split('~')
  if (disclosures.length > maxDisclosures)
    throw new TokenError(
      'too_many_disclosures',
      field,
      `has ${disclosures.length} disclosures: send at most ${maxDisclosures}`,
    )
  return { jws: parseJws(jwt, field), disclosures, text: text.slice(0, end), keyBinding: text.slice(end) }
}

const isConcealedEntry = (value: unknown): value is { '...': string } =>
  isObject(value) && '...' in value && typeof value['...'] === 'string' && Object.keys(value).length === 1

const setClaim = (claims: JsonObject, name: string, value: unknown): void => {
  if (name !== '__proto__') claims[name] = value
  else Object.defineProperty(claims, name, { value, enumerable: true, configurable: true, writable: true })
}

/** Puts the disclosures into the claims. Throws a `TokenError` for every disclosure that is not in exactly one place. */
export const discloseClaims = ({ jws, disclosures }: SdJwt): DisclosedClaims => {
  const at = (field: string): string => `${jws.field}.${field}`
  const left = new Map<string, { field: string; parts: unknown[] }>()
  for (const [i, text] of disclosures.entries()) {
    const field = at(`disclosures[${i}]`)
    const parts = decodeJson(text, field)
    if (!Array.isArray(parts) || typeof parts[0] !== 'string' || parts.length < 2 || parts.length > 3)
      throw new TokenError('malformed_disclosure', field, 'is not [salt, value] or [salt, name, value]')
    const digest = hashText(text)
    if (left.has(digest)) throw new TokenError('duplicate_disclosure', field, 'is there twice: send it once')
    left.set(digest, { field, parts })
  }
  const { _sd_alg: algorithm = 'sha-256' } = jws.payload
  if (algorithm !== 'sha-256')
    throw new TokenError('digest_algorithm', at('payload._sd_alg'), 'is not sha-256, the one of AP2')

  const seen = new Set<string>()
  const concealed: string[] = []
  const take = (digest: unknown, length: number, field: string) => {
    if (typeof digest !== 'string')
      throw new TokenError('malformed_digest', field, 'has a digest that is no text')
    if (seen.has(digest)) throw new TokenError('duplicate_digest', field, 'has a digest that is there twice')
    seen.add(digest)
    const found = left.get(digest)
    left.delete(digest)
    if (found && found.parts.length !== length)
      throw new TokenError(
        'misplaced_disclosure',
        found.field,
        length === 3 ? 'is an entry in the place of a claim' : 'is a claim in the place of an entry',
      )
    return found
  }
  const resolve = (value: unknown, field: string, depth: number): unknown => {
    if (depth > maxTokenDepth)
      throw new TokenError('too_deep', at('payload'), `is nested deeper than ${maxTokenDepth} levels`)
    if (Array.isArray(value)) return value.map((item, i) => resolveEntry(item, `${field}[${i}]`, depth + 1))
    return isObject(value) ? resolveObject(value, field, depth) : value
  }
  const resolveEntry = (item: unknown, field: string, depth: number): unknown => {
    if (!isConcealedEntry(item)) return resolve(item, field, depth)
    const found = take(item['...'], 2, field)
    return found ? resolve(found.parts[1], field, depth) : item
  }
  const resolveObject = (value: JsonObject, field: string, depth: number): JsonObject => {
    const claims: JsonObject = {}
    for (const name of Object.keys(value)) {
      if (name === '_sd' || (name === '_sd_alg' && depth === 0)) continue
      if (name === '...') throw new TokenError('reserved_name', field, 'has a member "..." beside others')
      setClaim(claims, name, resolve(value[name], `${field}.${name}`, depth + 1))
    }
    const { _sd: digests } = value
    if (digests === undefined) return claims
    if (!Array.isArray(digests)) throw new TokenError('malformed_digest', field, 'has an _sd that is no list')
    for (const digest of digests) {
      const found = take(digest, 3, field)
      const name = found?.parts[1]
      if (!found) concealed.push(field)
      else if (typeof name !== 'string' || name === '_sd' || name === '...')
        throw new TokenError('reserved_name', found.field, 'discloses a claim named _sd or "..."')
      else if (Object.hasOwn(claims, name))
        throw new TokenError(
          'duplicate_claim',
          found.field,
          `discloses ${name.slice(0, 50)}, which is there already`,
        )
      else setClaim(claims, name, resolve(found.parts[2], `${field}.${name}`, depth + 1))
    }
    return claims
  }
  const claims = resolveObject(jws.payload, at('payload'), 0)
  for (const { field } of left.values())
    throw new TokenError('unused_disclosure', field, 'belongs to no digest of the token: leave it out')
  return { claims, concealed }
}
