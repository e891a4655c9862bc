import { randomBytes } from 'node:crypto'
import { parseChain } from './chain.ts'
import { hashText, isObject, type JsonObject } from './encoding.ts'
import { signJws } from './jws.ts'
import type { SigningKey } from './keys.ts'

/** A value that the token has as a digest, with a disclosure of its own. */
class Concealed {
  readonly value: unknown

  constructor(value: unknown) {
    this.value = value
  }
}

/** Makes a claim, or an entry of a list, selectively disclosable. */
export const conceal = (value: unknown): unknown => new Concealed(value)

/** The claims with digests in place of what is concealed, and its disclosures. */
const pack = (claims: JsonObject): { payload: JsonObject; disclosures: string[] } => {
  const disclosures: string[] = []
  const disclose = (...parts: unknown[]): string => {
    const text = Buffer.from(JSON.stringify([randomBytes(16).toString('base64url'), ...parts])).toString(
      'base64url',
    )
    disclosures.push(text)
    return hashText(text)
  }
  const packValue = (value: unknown): unknown => {
    if (Array.isArray(value))
      return value.map((item) =>
        item instanceof Concealed ? { '...': disclose(packValue(item.value)) } : packValue(item),
      )
    return isObject(value) ? packObject(value) : value
  }
  const packObject = (value: JsonObject): JsonObject => {
    const digests: string[] = []
    const members: [string, unknown][] = []
    for (const [name, member] of Object.entries(value))
      if (member instanceof Concealed) digests.push(disclose(name, packValue(member.value)))
      else members.push([name, packValue(member)])
    // sorted, so that their order says nothing about the claims
    return Object.fromEntries(digests.length > 0 ? [['_sd', digests.sort()], ...members] : members)
  }
  return { payload: { ...packObject(claims), _sd_alg: 'sha-256' }, disclosures }
}

/** Signs an SD-JWT with the disclosures of everything that is concealed. */
export const issueSdJwt = async (claims: JsonObject, key: SigningKey, typ = 'dc+sd-jwt'): Promise<string> => {
  const { payload, disclosures } = pack(claims)
  return [await signJws(payload, key, { typ }), ...disclosures, ''].join('~')
}

/** Signs a mandate as the root of a chain: open for an agent, or closed by a person who is present. */
export const issueMandate = (
  content: JsonObject,
  key: SigningKey,
  claims: JsonObject = {},
): Promise<string> => issueSdJwt({ ...claims, delegate_payload: [conceal(content)] }, key)

/** For whom a hop is, and how it binds the hop before: with its disclosures, or its JWT alone so that some can be left out. */
export type HopOptions = {
  audience: string
  nonce: string
  /** Seconds since 1970. */
  iat: number
  binding?: 'sd_hash' | 'issuer_jwt_hash'
}

/** Adds a hop, signed by the key in the `cnf` of the chain's last hop. A mandate with `cnf` delegates further. */
export const appendMandate = async (
  chain: string,
  content: JsonObject,
  key: SigningKey,
  { audience, nonce, iat, binding = 'sd_hash' }: HopOptions,
): Promise<string> => {
  const last = parseChain(chain).at(-1)
  const hash = hashText((binding === 'sd_hash' ? last?.text : last?.jws.text) ?? '')
  const claims = { delegate_payload: [conceal(content)], iat, aud: audience, nonce, [binding]: hash }
  const hop = await issueSdJwt(claims, key, 'cnf' in content ? 'kb+sd-jwt+kb' : 'kb+sd-jwt')
  return `${chain.replace(/~$/, '')}~~${hop}`
}
