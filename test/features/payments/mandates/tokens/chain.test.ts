import { describe, expect, test } from 'vitest'
import {
  type MandateKind,
  parseChain,
  verifyHops,
} from '../../../../../src/features/payments/mandates/tokens/chain.ts'
import { hashText, type JsonObject } from '../../../../../src/features/payments/mandates/tokens/encoding.ts'
import { appendMandate, issueMandate } from '../../../../../src/features/payments/mandates/tokens/issue.ts'
import { signJws } from '../../../../../src/features/payments/mandates/tokens/jws.ts'
import { issueCredential } from '../../../../../src/features/payments/mandates/tokens/key-binding.ts'
import {
  closedPayment,
  createParty,
  editHop,
  expected,
  hop,
  issueCheckoutChain,
  issuePaymentChain,
  issueThreeHops,
  mandateTime,
  mirrorSignature,
  openPayment,
  parties,
} from '../../../../support/mandate-parties.ts'
import ap2 from '../../ap2-tokens.json' with { type: 'json' }

const verify = (token: string, changes: Partial<typeof expected> = {}, kind: MandateKind = 'payment') =>
  verifyHops(token, kind, { ...expected, ...changes })
const codesOf = (token: string, changes?: Partial<typeof expected>, kind?: MandateKind): string[] =>
  verify(token, changes, kind).violations.map(({ code }) => code)
const [{ surface, agent, helper }, stranger] = [parties, createParty('surface-1')]

/** A hop with these claims, signed whatever they are. */
const append = async (chain: string, change: (claims: JsonObject) => JsonObject, typ = 'kb+sd-jwt') => {
  const { text } = parseChain(chain).at(-1) ?? { text: '' }
  const { audience: aud, ...rest } = hop
  const claims = { delegate_payload: [closedPayment()], aud, ...rest, sd_hash: hashText(text) }
  return `${chain.replace(/~$/, '')}~~${await signJws(change(claims), agent.signing, { typ })}~`
}
const root = await issueMandate(openPayment(agent.jwk), surface.signing)

describe('a chain', () => {
  test('of one to three hops is verified, each hop by the key in the one before', async () => {
    const direct = await issueMandate(closedPayment(), surface.signing, {
      aud: hop.audience,
      nonce: hop.nonce,
    })
    const credential = await issueCredential({ vct: 'com.example.card' }, agent.jwk, surface.signing)
    for (const token of [
      direct,
      await issuePaymentChain(),
      await issueThreeHops(),
      await appendMandate(credential, closedPayment(), agent.signing, hop),
      await appendMandate(root, closedPayment(), agent.signing, { ...hop, binding: 'issuer_jwt_hash' }),
    ])
      expect(verify(token).violations).toEqual([])
    expect(codesOf((await issueCheckoutChain()).chain, {}, 'checkout')).toEqual([])
  })

  test('of another key, or with an unknown key, is refused', async () => {
    const other = await issueMandate(openPayment(agent.jwk), stranger.signing)
    expect(codesOf(await appendMandate(other, closedPayment(), agent.signing, hop))).toEqual([
      'wrong_signature',
    ])
    expect(codesOf(await appendMandate(root, closedPayment(), helper.signing, hop))).toEqual([
      'wrong_signature',
    ])
    expect(codesOf(await issuePaymentChain(), { findKeys: () => [] })).toEqual(['unknown_key'])
  })

  test.for([
    ['wrong_aud', { audience: 'another' }],
    ['wrong_nonce', { nonce: 'old' }],
    ['issued_in_future', { now: mandateTime - 400 }],
    ['expired', { now: mandateTime + 3901 }],
  ] as const)('is refused as %s', async ([code, changes]) => {
    expect([...new Set(codesOf(await issuePaymentChain(), changes))]).toEqual([code])
  })

  test('is taken within 300 s of its end', async () => {
    expect(codesOf(await issuePaymentChain(), { now: mandateTime + 3900 })).toEqual([])
  })

  test.for<[string, (claims: JsonObject) => JsonObject]>([
    ['missing_aud', ({ aud: _, ...rest }) => rest],
    ['missing_nonce', (claims) => ({ ...claims, nonce: '' })],
    ['missing_iat', ({ iat: _, ...rest }) => rest],
    ['malformed_time', (claims) => ({ ...claims, exp: 'tomorrow' })],
    ['malformed_time', (claims) => ({ ...claims, exp: [mandateTime + 60] })],
    ['malformed_time', (claims) => ({ ...claims, exp: { toString: 1, valueOf: 1, toJSON: 1 } })],
    ['wrong_vct', (claims) => ({ ...claims, delegate_payload: [closedPayment({ vct: { toString: 1 } })] })],
    ['not_yet_valid', (claims) => ({ ...claims, nbf: mandateTime + 301 })],
    ['sd_hash', (claims) => ({ ...claims, sd_hash: hashText('another') })],
    ['missing_binding', ({ sd_hash: _, ...rest }) => rest],
    ['issuer_jwt_hash', ({ sd_hash, ...rest }) => ({ ...rest, issuer_jwt_hash: sd_hash })],
    ['delegate_payload', (claims) => ({ ...claims, delegate_payload: [closedPayment(), closedPayment()] })],
    ['delegate_payload', ({ delegate_payload: _, ...rest }) => ({ ...rest, ...closedPayment() })],
    ['mandate_not_disclosed', (claims) => ({ ...claims, delegate_payload: [{ '...': 'digest' }] })],
    [
      'unexpected_cnf',
      (claims) => ({ ...claims, delegate_payload: [closedPayment({ cnf: { jwk: agent.jwk } })] }),
    ],
    [
      'wrong_vct',
      (claims) => ({ ...claims, delegate_payload: [closedPayment({ vct: 'mandate.payment.2' })] }),
    ],
    [
      'wrong_vct',
      (claims) => ({ ...claims, delegate_payload: [closedPayment({ vct: 'mandate.checkout.1' })] }),
    ],
  ])('whose last hop is signed so is refused as %s', async ([code, change]) => {
    expect(codesOf(await append(root, change))).toEqual([code])
  })

  test('with both bindings, or hops of the wrong type, is refused', async () => {
    const { jws } = parseChain(root)[0] ?? { jws: { text: '' } }
    expect(
      codesOf(await append(root, (claims) => ({ ...claims, issuer_jwt_hash: hashText(jws.text) }))),
    ).toEqual(['missing_binding'])
    expect(codesOf(await append(root, (claims) => claims, 'kb+sd-jwt+kb'))).toEqual(['wrong_typ'])
    expect(codesOf(await append(root, (claims) => claims, { toString: 1 } as never))).toEqual(['wrong_typ'])
    expect(codesOf(await append(root, (claims) => claims, 'kb-sd-jwt'))).toEqual([])
  })

  test('whose intermediate hop has no audience or nonce, or no key for the next, is refused (row 21)', async () => {
    const second = await append(
      root,
      ({ aud: _, ...rest }) => ({ ...rest, nonce: '', delegate_payload: [openPayment(helper.jwk)] }),
      'kb+sd-jwt+kb',
    )
    const leaf = (chain: string) => appendMandate(chain, closedPayment(), helper.signing, hop)
    expect(codesOf(await leaf(second))).toEqual(['missing_aud', 'missing_nonce'])
    const { cnf: _, ...keyless } = openPayment(helper.jwk)
    const third = await append(root, (claims) => ({ ...claims, delegate_payload: [keyless] }), 'kb+sd-jwt+kb')
    expect(codesOf(await leaf(third))).toEqual(['missing_cnf'])
  })

  test('whose intermediate hop is for another audience is verified (row 21)', async () => {
    const second = await appendMandate(root, openPayment(helper.jwk), agent.signing, {
      ...hop,
      audience: 'helper',
    })
    expect(codesOf(await appendMandate(second, closedPayment(), helper.signing, hop))).toEqual([])
  })

  test('whose root is a credential cannot pass limits as a credential of another type', async () => {
    for (const claims of [
      { vct: 'mandate.payment.open.2' },
      { vct: 'com.example.card', constraints: [{ type: 'payment.amount_range', max: 1, currency: 'USD' }] },
      {},
    ]) {
      const credential = await issueCredential(claims, agent.jwk, surface.signing)
      expect(codesOf(await appendMandate(credential, closedPayment(), agent.signing, hop))).toEqual([
        'wrong_vct',
      ])
    }
  })

  test('that is malformed, too long, or ends with a key-binding JWT is refused by name', async () => {
    const chain = await issuePaymentChain()
    const jwt = await signJws({}, agent.signing)
    expect(codesOf('')).toEqual(['malformed_token'])
    expect(codesOf('a~~~b~')).toEqual(['malformed_token'])
    expect(codesOf(chain.replace(/~$/, ''))).not.toEqual([])
    expect(codesOf(chain + jwt)).toEqual(['trailing_key_binding'])
    expect(codesOf(`${'a~~'.repeat(9)}a~`)).toEqual(['too_many_hops'])
    expect(codesOf(`${'a~'.repeat(300)}~${'a~'.repeat(300)}`)).toEqual(['too_many_disclosures'])
    expect(codesOf('~'.repeat(262_145))).toEqual(['token_too_large'])
  })

  test('names every violation of every hop at once, with field and message', async () => {
    const { violations } = verify(await issuePaymentChain(), {
      audience: 'x',
      nonce: 'y',
      now: mandateTime + 4000,
    })
    expect(violations.map(({ field, code }) => `${field} ${code}`)).toEqual([
      'hops[0].exp expired',
      'hops[1].payload.aud wrong_aud',
      'hops[1].payload.nonce wrong_nonce',
      'hops[1].exp expired',
    ])
    expect(violations[1]).toEqual({
      code: 'wrong_aud',
      error: 'invalid_credential',
      field: 'hops[1].payload.aud',
      message: 'hops[1].payload.aud is "merchant" in place of "x"',
    })
  })
})

describe('the identity of a chain', () => {
  const identityOf = (token: string, changes?: Partial<typeof expected>): string | undefined => {
    const { hops, violations } = verify(token, changes)
    return violations.length === 0 ? hops.at(-1)?.identity : undefined
  }

  test('is the same with the mirrored signature of its last hop, whose text is another', async () => {
    const chain = await issuePaymentChain()
    const mirrored = editHop(chain, -1, mirrorSignature)
    expect(mirrored).not.toBe(chain)
    expect(identityOf(mirrored)).toBe(identityOf(chain))
    expect(identityOf(chain)).toMatch(/^[\w-]{43}\.[\w-]{43}$/)
    // the hash in the next hop covers the signature
    expect(codesOf(editHop(chain, 0, mirrorSignature))).toEqual(['sd_hash'])
  })

  test('is the same without disclosures that the last hop does not need', async () => {
    const chain = await appendMandate(root, closedPayment(), agent.signing, {
      ...hop,
      binding: 'issuer_jwt_hash',
    })
    const [first = '', last] = chain.split('~~')
    const [jwt, one, two, mandate] = first.split('~')
    for (const kept of [[one, mandate], [two, mandate], [mandate]])
      expect(identityOf(`${[jwt, ...kept].join('~')}~~${last}`)).toBe(identityOf(chain))
  })

  test('is another for each mandate', async () => {
    expect(identityOf(await issuePaymentChain())).not.toBe(identityOf(await issuePaymentChain()))
  })
})

describe('the encoded tokens of the AP2 documents', () => {
  const { checkout, payment, now } = ap2
  const golden = {
    checkout: { audience: 'merchant', nonce: 'b9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4' },
    payment: { audience: 'credential-provider', nonce: 'a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3' },
  }

  test.for(['checkout', 'payment'] as const)(
    'verify as a %s but for the root, whose key is not published (row 23)',
    (kind) => {
      const { hops, violations } = verify(ap2[kind].chain, { now, ...golden[kind] }, kind)
      expect(violations.map(({ field, code }) => `${field} ${code}`)).toEqual([
        'hops[0].header.kid unknown_key',
      ])
      expect(hops.map(({ content }) => content.vct)).toEqual([`mandate.${kind}.open.1`, `mandate.${kind}.1`])
      const [open = '', closed = ''] = ap2[kind].chain.split('~~')
      expect([`${open}~`, closed]).toEqual([ap2[kind].open, ap2[kind].closed])
    },
  )

  test('have the hashes of the documents', () => {
    const [open, closed] = verify(checkout.chain, { now, ...golden.checkout }, 'checkout').hops
    const [openPay, pay] = verify(payment.chain, { now, ...golden.payment }).hops
    expect(hashText(String(closed?.content.checkout_jwt))).toBe('NivWhuqfzcvZNapvIEJ2-3tsdQLkiuIcye2g46WVgX8')
    expect([closed?.content.checkout_hash, pay?.content.transaction_id]).toEqual(
      Array(2).fill('NivWhuqfzcvZNapvIEJ2-3tsdQLkiuIcye2g46WVgX8'),
    )
    const reference = 'FzLoxbbtgQGYZxoSM2NJYJtkFTSsdfUBoVEQ12k7JN8'
    expect(hashText(open?.sdJwt.text ?? '')).toBe(reference)
    expect(openPay?.content.constraints).toContainEqual({
      type: 'payment.reference',
      conditional_transaction_id: reference,
    })
  })

  test('are refused with another audience, another nonce, or at another time', () => {
    const { chain } = ap2.payment
    const codes = (changes: Partial<typeof expected>) =>
      codesOf(chain, { now, ...golden.payment, ...changes }).filter((code) => code !== 'unknown_key')
    expect(codes({ audience: 'merchant' })).toEqual(['wrong_aud'])
    expect(codes({ nonce: 'another' })).toEqual(['wrong_nonce'])
    expect(codes({ now: now + 86_400 })).toEqual(['expired'])
  })
})
