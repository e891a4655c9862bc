import { describe, expect, test } from 'vitest'
import { hashText, type JsonObject } from '../../../../../src/features/payments/mandates/tokens/encoding.ts'
import { conceal, issueSdJwt } from '../../../../../src/features/payments/mandates/tokens/issue.ts'
import { signJws } from '../../../../../src/features/payments/mandates/tokens/jws.ts'
import { discloseClaims, parseSdJwt } from '../../../../../src/features/payments/mandates/tokens/sd-jwt.ts'
import { TokenError } from '../../../../../src/features/payments/mandates/tokens/token-error.ts'
import { createParty } from '../../../../support/mandate-parties.ts'

const { signing } = createParty('key-1')
const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const read = (token: string) => discloseClaims(parseSdJwt(token, 'token'))
const make = async (claims: JsonObject, ...disclosures: string[]): Promise<string> =>
  [await signJws(claims, signing), ...disclosures, ''].join('~')
const codeOf = (token: string): string => {
  try {
    read(token)
  } catch (error) {
    if (error instanceof TokenError) return error.violation.code
    throw error
  }
  return 'none'
}
const claim = encode(['salt', 'name', 'value'])
const entry = encode(['salt', 'value'])

describe('an SD-JWT', () => {
  test('gives back what was concealed, at every depth, and without a disclosure what is left', async () => {
    const token = await issueSdJwt(
      { a: conceal({ b: conceal(1), c: [conceal('x'), 'y'] }), list: [conceal([conceal(2)])], plain: null },
      signing,
    )
    expect(read(token)).toEqual({
      claims: { a: { b: 1, c: ['x', 'y'] }, list: [[2]], plain: null },
      concealed: [],
    })
    const [jwt] = token.split('~')
    const { claims, concealed } = read(`${jwt}~`)
    expect(claims).toEqual({ list: [{ '...': expect.any(String) }], plain: null })
    expect(concealed).toEqual(['token.payload'])
  })

  test('keeps a claim named __proto__ as data', async () => {
    const disclosure = Buffer.from('["salt","__proto__",{"admin":true}]').toString('base64url')
    const { claims } = read(await make({ _sd: [hashText(disclosure)] }, disclosure))
    expect(Object.getPrototypeOf(claims)).toBe(Object.prototype)
    expect(Object.keys(claims)).toEqual(['__proto__'])
  })

  const nested = encode(['salt', 'outer', { _sd: [hashText(claim)] }])
  const reserved = encode(['salt', '_sd', 'value'])
  const dots = encode(['salt', '...', 'value'])
  const deep = JSON.parse(`${'['.repeat(150)}${']'.repeat(150)}`)
  test.for([
    ['unused_disclosure', { a: 1 }, [claim]],
    ['duplicate_disclosure', { _sd: [hashText(claim)] }, [claim, claim]],
    ['duplicate_digest', { _sd: [hashText(claim), hashText(claim)] }, [claim]],
    ['duplicate_digest', { _sd: [hashText(nested), hashText(claim)] }, [nested, claim]],
    ['duplicate_digest', { _sd: ['a'], b: { _sd: ['a'] } }, []],
    ['misplaced_disclosure', { _sd: [hashText(entry)] }, [entry]],
    ['misplaced_disclosure', { list: [{ '...': hashText(claim) }] }, [claim]],
    ['duplicate_claim', { name: 1, _sd: [hashText(claim)] }, [claim]],
    ['reserved_name', { _sd: [hashText(reserved)] }, [reserved]],
    ['reserved_name', { _sd: [hashText(dots)] }, [dots]],
    ['reserved_name', { a: { '...': 'x', b: 1 } }, []],
    ['malformed_digest', { _sd: 'x' }, []],
    ['malformed_digest', { _sd: [1] }, []],
    ['malformed_disclosure', { a: 1 }, [encode({ a: 1 })]],
    ['malformed_disclosure', { a: 1 }, [encode(['salt'])]],
    ['malformed_json', { a: 1 }, ['AAAA']],
    ['malformed_base64url', { a: 1 }, ['a b']],
    ['digest_algorithm', { _sd_alg: 'md5' }, []],
    ['too_deep', { deep }, []],
    ['too_many_disclosures', {}, Array.from({ length: 201 }, (_, i) => encode([`salt ${i}`, i]))],
  ] as const)('is refused as %s', async ([code, claims, disclosures]) => {
    expect(codeOf(await make(claims, ...disclosures))).toBe(code)
  })
})
