import { createHmac } from 'node:crypto'
import { CompactSign, compactVerify, generateKeyPair } from 'jose'
import { describe, expect, test } from 'vitest'
import { parseJws, signJws, verifyJws } from '../../../../../src/features/payments/mandates/tokens/jws.ts'
import { TokenError } from '../../../../../src/features/payments/mandates/tokens/token-error.ts'
import { createParty, importKey } from '../../../../support/mandate-parties.ts'

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const codeOf = (work: () => unknown): string => {
  try {
    work()
  } catch (error) {
    if (error instanceof TokenError) return error.violation.code
    throw error
  }
  return 'none'
}
const party = createParty('key-1')
const key = importKey(party.jwk, 'key')
const signature = Buffer.alloc(64).toString('base64url')

describe('a token', () => {
  test('that is signed here is accepted here and by jose, and one of jose here', async () => {
    const token = await signJws({ a: 1 }, party.signing)
    const { payload, protectedHeader } = await compactVerify(token, key.object)
    expect([JSON.parse(Buffer.from(payload).toString()), protectedHeader]).toEqual([
      { a: 1 },
      { alg: 'ES256', kid: 'key-1' },
    ])
    expect(verifyJws(parseJws(token, 'token'), key)).toBe(true)
    const { privateKey } = await generateKeyPair('ES256')
    const other = new CompactSign(Buffer.from('{}')).setProtectedHeader({ alg: 'ES256' })
    expect(verifyJws(parseJws(await other.sign(privateKey), 'token'), key)).toBe(false)
  })

  test.for([
    ['algorithm_none', { alg: 'none' }],
    ['algorithm_symmetric', { alg: 'HS256' }],
    ['algorithm_not_es256', { alg: 'RS256' }],
    ['algorithm_not_es256', { alg: 'ES384' }],
    ['algorithm_not_es256', { alg: ['ES256'] }],
    ['algorithm_not_es256', { alg: { toString: 1 } }],
    ['algorithm_not_es256', {}],
    ['header_jku', { alg: 'ES256', jku: 'https://keys.example/jwks' }],
    ['header_x5u', { alg: 'ES256', x5u: 'https://keys.example/cert' }],
    ['header_x5c', { alg: 'ES256', x5c: [] }],
    ['header_jwk', { alg: 'ES256', jwk: party.jwk }],
    ['header_crit', { alg: 'ES256', crit: ['b64'], b64: false }],
  ] as const)('is refused as %s, by its header alone: %j', ([code, header]) => {
    expect(codeOf(() => parseJws(`${encode(header)}.${encode({})}.${signature}`, 'token'))).toBe(code)
  })

  test('that is signed with the public key as the secret of HS256 is refused', () => {
    const text = `${encode({ alg: 'HS256' })}.${encode({})}`
    const secret = key.object.export({ format: 'pem', type: 'spki' })
    const mac = createHmac('sha256', secret).update(text).digest('base64url')
    expect(codeOf(() => parseJws(`${text}.${mac}`, 'token'))).toBe('algorithm_symmetric')
  })

  test('that two readers could read differently is refused by name', async () => {
    const token = await signJws({ a: 1 }, party.signing)
    const [head = '', body = '', made = ''] = token.split('.')
    const loose = `${made.slice(0, -1)}${String.fromCharCode(made.charCodeAt(85) + 1)}`
    expect(Buffer.from(loose, 'base64url')).toEqual(Buffer.from(made, 'base64url'))
    const codes = [
      `${head}.${body}.${loose}`,
      `${head}.${body}.${made}==`,
      `${head}.${body}\n.${made}`,
      `${head}.${body}`,
      `${token}.x`,
      `${head}.${body}.${Buffer.alloc(63).toString('base64url')}`,
      `${encode([])}.${body}.${made}`,
      `${head}.${Buffer.from('{"a":').toString('base64url')}.${made}`,
      `${head}.${Buffer.from([0x22, 0xff, 0x22]).toString('base64url')}.${made}`,
      `${head}.${'A'.repeat(300_000)}.${made}`,
    ].map((text) => codeOf(() => parseJws(text, 'token')))
    expect(codes).toEqual([
      ...[
        'malformed_base64url',
        'malformed_base64url',
        'malformed_base64url',
        'malformed_token',
        'malformed_token',
      ],
      ...['malformed_signature', 'malformed_token', 'malformed_json', 'malformed_utf8', 'token_too_large'],
    ])
  })
})

test('a key that is no point on P-256 is refused, and the same point is imported once', () => {
  expect(importKey({ ...party.jwk, kid: 'another' }, 'key')).toBe(key)
  const { x, y } = party.jwk
  for (const jwk of [
    null,
    { ...party.jwk, crv: 'P-384' },
    { ...party.jwk, kty: 'RSA' },
    { kty: 'EC', crv: 'P-256', x: y, y: x },
    { kty: 'EC', crv: 'P-256', x, y: 'AAAA' },
  ])
    expect(codeOf(() => importKey(jwk, 'key'))).toBe('key_not_p256')
})
