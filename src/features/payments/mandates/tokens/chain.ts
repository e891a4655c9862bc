import type { Violation } from '../violations.ts'
import { checkAudience, checkTimes } from './claims.ts'
import { checkLength, hashText, isObject, type JsonObject, toShortText } from './encoding.ts'
import { type Jws, verifyJws } from './jws.ts'
import type { FindKeys, KeyImporter, PublicKey, SignerRole } from './keys.ts'
import { discloseClaims, maxDisclosures, parseSdJwt, type SdJwt } from './sd-jwt.ts'
import { attempt, type Refuse, TokenError, toRefuse } from './token-error.ts'

/** What a verifier knows and expects. */
export type Verification = {
  findKeys: FindKeys
  importKey: KeyImporter
  /** Seconds since 1970. */
  now: number
  audience: string
  nonce: string
  /** The demo profile is on: it takes the placeholders of the samples of AP2 0.1, and lists here which checks that left out. */
  skipped?: string[]
}

/** A hop of a chain that was verified, or an unverified one beside its violations. */
export type Hop = {
  sdJwt: SdJwt
  claims: JsonObject
  /** The mandate: the one item of `delegate_payload`, or the claims of a root without it. */
  content: JsonObject
  /** Where its content has claims that were not disclosed. */
  concealed: string[]
  /** What must be unique: see `identify`. */
  identity: string
}

/** The kinds of mandates of AP2 0.2. */
export type MandateKind = 'checkout' | 'payment'

/** Hops of one chain. Each costs a signature to verify. */
const maxHops = 8

const types = { terminal: ['kb+sd-jwt', 'kb-sd-jwt'], intermediate: ['kb+sd-jwt+kb', 'kb-sd-jwt+kb'] }

/**
 * What a token is, whatever its text: the key that signed it and the hash of what it signed. ES256 accepts (r, n-s) beside (r, s),
 * and disclosures can be left out, so the text of a token, and its hash, is not unique.
 */
export const identify = (jws: Jws, key: PublicKey): string =>
  `${key.thumbprint}.${hashText(jws.signingInput)}`

/** Reads the hops of a chain, without verifying them. Joining hops by "~~" takes the last "~" of each but the last. */
export const parseChain = (token: string): SdJwt[] => {
  checkLength(token, 'token')
  const texts = token.split('~~')
  if (texts.length > maxHops)
    throw new TokenError('too_many_hops', 'token', `has ${texts.length} hops: send at most ${maxHops}`)
  const count = token.split('~').length - texts.length
  if (count > maxDisclosures + texts.length)
    throw new TokenError(
      'too_many_disclosures',
      'token',
      `has over ${maxDisclosures} disclosures: send fewer`,
    )
  return texts.map((text, i) => parseSdJwt(i < texts.length - 1 ? `${text}~` : text, `hops[${i}]`))
}

/** The mandate of a hop: the one item of `delegate_payload`. A root may have it in its claims. */
export const readContent = (claims: JsonObject, field: string, isRoot: boolean): JsonObject => {
  const { delegate_payload: items } = claims
  if (items === undefined && isRoot) return claims
  if (!Array.isArray(items) || items.length !== 1 || !isObject(items[0]))
    throw new TokenError(
      'delegate_payload',
      `${field}.payload.delegate_payload`,
      'is not a list of one mandate',
    )
  if ('...' in items[0])
    throw new TokenError(
      'mandate_not_disclosed',
      `${field}.payload.delegate_payload[0]`,
      'is not disclosed: send it',
    )
  return items[0]
}

/** A look-up of any other text is refused by the database, and with it those of all who ask by the same statement. */
const isStorable = (text: string): boolean => text.isWellFormed() && !text.includes('\0')

/** The trusted key that made this signature. */
export const findSigner = (jws: Jws, role: SignerRole, findKeys: FindKeys): PublicKey => {
  const { kid } = jws.header
  const { iss } = jws.payload
  if (kid !== undefined && typeof kid !== 'string')
    throw new TokenError('malformed_token', `${jws.field}.header.kid`, 'is no text')
  for (const [field, text] of Object.entries({ 'header.kid': kid, 'payload.iss': iss }))
    if (typeof text === 'string' && !isStorable(text))
      throw new TokenError(
        'malformed_token',
        `${jws.field}.${field}`,
        'has characters that no trusted key has',
      )
  const keys = findKeys({
    role,
    ...(kid === undefined ? {} : { kid }),
    ...(typeof iss === 'string' ? { issuer: iss } : {}),
  })
  if (keys.length === 0)
    throw new TokenError(
      'unknown_key',
      `${jws.field}.header.kid`,
      `names no trusted key of a ${role} (${String(kid).slice(0, 100)}): add the issuer's key, if you trust it`,
    )
  const key = keys.find((candidate) => verifyJws(jws, candidate))
  if (!key)
    throw new TokenError('wrong_signature', `${jws.field}.signature`, 'was not made by the trusted key')
  return key
}

/**
 * Verifies every hop of a chain: signatures (the root's by a trusted key, each other by the `cnf` of the hop before), hashes,
 * disclosures, `typ`, audience, nonce, times and `vct`. Lists all violations; without any, the hops are what their signers wrote.
 */
export const verifyHops = (
  token: string,
  kind: MandateKind,
  known: Verification,
): { hops: Hop[]; violations: Violation[] } => {
  const violations: Violation[] = []
  const parsed = attempt(violations, () => parseChain(token)) ?? []
  const hops: Hop[] = []
  for (const [i, sdJwt] of parsed.entries()) {
    const hop = readHop(sdJwt, i === 0, violations)
    if (!hop) break
    hops.push(hop)
  }
  // one after another, so that the tables of the curve stay in the processor's cache; the first that cannot be read too
  for (const [i, { jws }] of parsed.slice(0, hops.length + 1).entries()) {
    const signer = attempt(violations, () => verifySigner(jws, hops[i - 1], known))
    if (signer && hops[i]) hops[i].identity = identify(jws, signer)
  }
  for (const [i, hop] of hops.entries())
    checkHop(hop, hops[i - 1], { kind, isLast: i === parsed.length - 1, ...known }, violations)
  return { hops, violations }
}

const readHop = (sdJwt: SdJwt, isRoot: boolean, violations: Violation[]): Hop | undefined =>
  attempt(violations, () => {
    const { claims, concealed } = discloseClaims(sdJwt)
    const content = readContent(claims, sdJwt.jws.field, isRoot)
    return { sdJwt, claims, content, concealed, identity: '' }
  })

const verifySigner = (jws: Jws, before: Hop | undefined, known: Verification): PublicKey => {
  if (!before) return findSigner(jws, 'trusted-surface', known.findKeys)
  const { cnf } = before.content
  const place = `${before.sdJwt.jws.field}.cnf`
  if (!isObject(cnf))
    throw new TokenError('missing_cnf', place, 'is missing: it must name the key of the next hop')
  const key = known.importKey(cnf.jwk, `${place}.jwk`)
  if (!verifyJws(jws, key))
    throw new TokenError('wrong_signature', `${jws.field}.signature`, `was not made by the key of ${place}`)
  return key
}

const checkHop = (
  { sdJwt, claims, content }: Hop,
  before: Hop | undefined,
  { kind, isLast, ...known }: Verification & { kind: MandateKind; isLast: boolean },
  violations: Violation[],
): void => {
  const { jws } = sdJwt
  const { field } = jws
  const refuse = toRefuse(violations, field)
  if (sdJwt.keyBinding) refuse('trailing_key_binding', 'text', 'ends with a key-binding JWT: end it with "~"')
  if (before) {
    checkBinding(sdJwt, before.sdJwt, refuse)
    if (jws.payload.iat === undefined) refuse('missing_iat', 'payload.iat', 'is missing: add it')
    if (!types[isLast ? 'terminal' : 'intermediate'].includes(jws.header.typ as string))
      refuse('wrong_typ', 'header.typ', `is not ${types[isLast ? 'terminal' : 'intermediate'][0]}`)
  }
  if (before || isLast) checkAudience(jws.payload, isLast ? known : undefined, refuse)
  checkTimes(claims, known.now, toRefuse(violations, `${field}.payload`))
  if (content !== claims) checkTimes(content, known.now, refuse)
  if (before && isLast && 'cnf' in content)
    refuse('unexpected_cnf', 'cnf', 'is in a closed mandate: leave it out')
  checkType(content, { kind, isLast, isCredential: !before && content === claims }, refuse)
}

const checkBinding = ({ jws }: SdJwt, before: SdJwt, refuse: Refuse): void => {
  const { sd_hash: whole, issuer_jwt_hash: jwt } = jws.payload
  if ((whole === undefined) === (jwt === undefined))
    refuse('missing_binding', 'payload.sd_hash', 'or issuer_jwt_hash must bind the hop before: exactly one')
  if (whole !== undefined && whole !== hashText(before.text))
    refuse('sd_hash', 'payload.sd_hash', 'is not the hash of the hop before with its disclosures')
  if (jwt !== undefined && jwt !== hashText(before.jws.text))
    refuse('issuer_jwt_hash', 'payload.issuer_jwt_hash', 'is not the hash of the JWT of the hop before')
}

/** A root whose claims are no mandate is a user's credential: its key signs mandates, and it limits nothing itself. */
const checkType = (
  content: JsonObject,
  { kind, isLast, isCredential }: { kind: MandateKind; isLast: boolean; isCredential: boolean },
  refuse: Refuse,
): void => {
  const expected = isLast ? `mandate.${kind}.1` : `mandate.${kind}.open.1`
  const { vct } = content
  if (vct === expected) return
  const isOther =
    typeof vct === 'string' && vct !== '' && !/^mandate\b/i.test(vct) && !('constraints' in content)
  if (isCredential && !isLast && isOther) return
  refuse('wrong_vct', 'vct', `is ${toShortText(vct)} in place of ${expected}`)
}
