import type { AloneTools } from '../../command-definition.ts'
import { parseChain, readContent } from '../mandates/tokens/chain.ts'
import { decodeJson, hashText, isObject, toShortText } from '../mandates/tokens/encoding.ts'
import { parseJws } from '../mandates/tokens/jws.ts'
import { unwrapToken } from '../mandates/tokens/key-binding.ts'
import { discloseClaims, type SdJwt } from '../mandates/tokens/sd-jwt.ts'
import { TokenError } from '../mandates/tokens/token-error.ts'

const timeNames = ['iat', 'nbf', 'exp'] as const

const formatJson = (value: unknown): string => JSON.stringify(value, null, 2).replaceAll('\n', '\n  ')

const formatTimes = (claims: unknown): string[] =>
  timeNames.flatMap((name) => {
    const value = isObject(claims) ? claims[name] : undefined
    if (typeof value !== 'number') return []
    const date = new Date(value * 1000)
    return [`  ${name}: ${Number.isNaN(date.getTime()) ? value : date.toISOString()}`]
  })

/** The token of a field, where it can be read: a checkout is a token within a token. */
const formatInner = (name: string, text: unknown): string[] => {
  if (typeof text !== 'string') return []
  const { header, payload } = parseJws(text, name)
  return [
    `  ${name} header: ${formatJson(header)}`,
    `  ${name} payload: ${formatJson(payload)}`,
    ...formatTimes(payload),
  ]
}

const formatHop = (hop: SdJwt, i: number, count: number): string[] => {
  const { jws, disclosures, text, keyBinding } = hop
  const { claims, concealed } = discloseClaims(hop)
  const content = readContent(claims, jws.field, i === 0)
  const checkout = content.checkout_jwt
  const names = disclosures.map((disclosure, n) => {
    const parts = decodeJson(disclosure, `${jws.field}.disclosures[${n}]`) as unknown[]
    return parts.length === 3 ? toShortText(parts[1]) : 'an entry of a list'
  })
  return [
    `hop ${i + 1} of ${count}: ${toShortText(content.vct ?? 'no vct')}`,
    `  header: ${formatJson(jws.header)}`,
    `  payload: ${formatJson(claims)}`,
    ...formatTimes(claims),
    ...(content === claims ? [] : formatTimes(content)),
    `  disclosed: ${names.length === 0 ? 'nothing' : names.join(', ')}`,
    ...(concealed.length === 0 ? [] : [`  not disclosed: claims of ${[...new Set(concealed)].join(', ')}`]),
    `  hash with disclosures (sd_hash): ${hashText(text)}`,
    `  hash of the JWT (issuer_jwt_hash): ${hashText(jws.text)}`,
    ...(typeof checkout === 'string' ? [`  hash of checkout_jwt: ${hashText(checkout)}`] : []),
    ...formatInner('checkout_jwt', checkout),
    ...formatInner('key_binding', keyBinding === '' ? undefined : keyBinding),
  ]
}

/** A chain, an SD-JWT or a JWT, as lines for people. Nothing of it is verified. */
export const formatToken = (text: string): string => {
  const token = unwrapToken(text.trim())
  const lines = token.includes('~')
    ? parseChain(token).flatMap((hop, i, hops) => formatHop(hop, i, hops.length))
    : formatInner('token', token)
  return ['Nothing of this token is verified: for that, use mason ap2 verify.', ...lines].join('\n')
}

/** `mason ap2 inspect`: prints a token for people. */
export const inspectToken = async (token: string, { toPrintable, refuse }: AloneTools): Promise<boolean> => {
  try {
    process.stdout.write(`${toPrintable(formatToken(token))}\n`)
  } catch (error) {
    if (!(error instanceof TokenError)) throw error
    refuse(error.message, 'pass a chain, an SD-JWT or a JWT of AP2')
  }
  return true
}
