import { describe, expect, test } from 'vitest'
import { hashText, type JsonObject } from '../../../../../src/features/payments/mandates/tokens/encoding.ts'
import {
  appendMandate,
  conceal,
  issueMandate,
} from '../../../../../src/features/payments/mandates/tokens/issue.ts'
import { signJws } from '../../../../../src/features/payments/mandates/tokens/jws.ts'
import {
  verifyCheckoutChain,
  verifyPaymentChain,
} from '../../../../../src/features/payments/mandates/verify/chains.ts'
import {
  checkout,
  closedPayment,
  createParty,
  editHop,
  expected,
  hop,
  issueCheckoutChain,
  issuePaymentChain,
  issueThreeHops,
  mandateTime,
  openPayment,
  parties,
  shop,
} from '../../../../support/mandate-parties.ts'
import ap2 from '../../ap2-tokens.json' with { type: 'json' }

const { surface, agent, merchant } = parties
const facts = { transactionId: 'checkout-1', openCheckoutHash: 'open-checkout' }
/** Stage, protocol code and each violation of a verdict. */
const outline = ({
  ok,
  stage,
  code,
  violations,
}: ReturnType<typeof verifyPaymentChain | typeof verifyCheckoutChain>) =>
  ok ? 'ok' : [stage, code, ...violations.map((violation) => `${violation.field} ${violation.code}`)]
const pay = (token: string, more: object = facts, known = expected) =>
  outline(verifyPaymentChain(token, known, more))
const buy = (token: string, more: object = {}, known = expected) =>
  outline(verifyCheckoutChain(token, known, more))

describe('a payment chain', () => {
  test('is ok with the facts that its constraints need', async () => {
    expect(pay(await issuePaymentChain())).toBe('ok')
    expect(pay(await issueThreeHops())).toBe('ok')
    const direct = await issueMandate(closedPayment(), surface.signing, {
      aud: hop.audience,
      nonce: hop.nonce,
    })
    expect(pay(direct, { transactionId: 'checkout-1' })).toBe('ok')
  })

  test.for<[string, JsonObject, string[]]>([
    [
      'amount',
      { payment_amount: { amount: 20001, currency: 'USD' } },
      ['constraints[0].max amount_above_max'],
    ],
    [
      'currency',
      { payment_amount: { amount: 1, currency: 'EUR' } },
      ['constraints[0].currency currency_mismatch'],
    ],
    ['payee', { payee: { ...shop, id: 'another' } }, ['constraints[1] payee_not_allowed']],
  ])('that pays beyond a constraint is refused: %s', async ([, changes, codes]) => {
    const fields = codes.map((text) => `hops[0].${text}`)
    expect(pay(await issuePaymentChain(changes))).toEqual(['constraints', 'unresolved_constraint', ...fields])
  })

  test('of another checkout, or without the hash of its open checkout mandate, is refused', async () => {
    const chain = await issuePaymentChain()
    expect(pay(chain, { ...facts, transactionId: 'checkout-2' })).toEqual([
      ...['constraints', 'invalid_mandate', 'hops[1].transaction_id transaction_id_mismatch'],
    ])
    expect(pay(chain, {})).toEqual([
      ...['constraints', 'unresolved_constraint', 'hops[0].constraints[2] checkout_unknown'],
    ])
    expect(pay(chain, { ...facts, openCheckoutHash: 'x' })).toEqual([
      ...['constraints', 'unresolved_constraint', 'hops[0].constraints[2] reference_mismatch'],
    ])
  })

  test('whose field is missing or of another type is refused, with all of them named', async () => {
    const { payee: _, ...rest } = closedPayment({ payment_amount: { amount: 1.5, currency: 'USD' } })
    const root = await issueMandate(openPayment(agent.jwk), surface.signing)
    const [stage, code, ...fields] = pay(await appendMandate(root, rest, agent.signing, hop)) as string[]
    expect([stage, code, fields.map((text) => text.split(' ')[0])]).toEqual([
      ...['constraints', 'invalid_mandate'],
      ['hops[1].payee', 'hops[1].payment_amount.amount'],
    ])
  })

  test('whose every open mandate limits it is refused by each of them', async () => {
    const limit = (max: number) => [
      { type: 'payment.amount_range', currency: 'USD', max, min: 0 },
      { type: 'payment.reference', conditional_transaction_id: 'open-checkout' },
    ]
    const root = await issueMandate(openPayment(agent.jwk, { constraints: limit(100) }), surface.signing)
    const wider = openPayment(parties.helper.jwk, { constraints: limit(1_000_000) })
    const second = await appendMandate(root, wider, agent.signing, hop)
    const chain = await appendMandate(second, closedPayment(), parties.helper.signing, hop)
    expect(pay(chain)).toEqual([
      ...['constraints', 'unresolved_constraint', 'hops[0].constraints[0].max amount_above_max'],
    ])
  })

  test('that hides a constraint, or a claim that may be one, is refused; entries of lists may be hidden', async () => {
    const limit = { type: 'payment.amount_range', currency: 'USD', max: 1, min: 0 }
    const reference = { type: 'payment.reference', conditional_transaction_id: 'open-checkout' }
    const issue = async (changes: JsonObject, ...hidden: string[]) => {
      const root = await issueMandate(openPayment(agent.jwk, changes), surface.signing)
      const disclosed = root.split('~').filter((text) => {
        const plain = Buffer.from(text, 'base64url').toString()
        return !hidden.some((part) => plain.includes(part)) || plain.includes('"vct"')
      })
      return appendMandate(disclosed.join('~'), closedPayment(), agent.signing, hop)
    }
    const entry = await issue({ constraints: [conceal(limit), reference] }, 'amount_range')
    expect(pay(entry)).toEqual([
      ...['constraints', 'unresolved_constraint', 'hops[0].constraints[0] unknown_constraint'],
    ])
    const preset = await issue(
      { payee: conceal({ id: 'x', name: 'X' }), constraints: [reference] },
      '"payee"',
    )
    expect(pay(preset)).toEqual([
      ...['constraints', 'unresolved_constraint', 'hops[0].payload.delegate_payload[0] concealed_claim'],
    ])
    expect(pay(await issue({}, 'merchant_2'))).toBe('ok')
    expect(pay(await issue({}, 'merchant_1'))).toEqual([
      ...['constraints', 'unresolved_constraint', 'hops[0].constraints[1] payee_not_allowed'],
    ])
  })

  test('whose allowed payee hides its id allows nothing by it, also to who has its name and website', async () => {
    const { name, website } = shop
    const reference = { type: 'payment.reference', conditional_transaction_id: 'open-checkout' }
    const another = { id: conceal('another'), name, website }
    const issue = async (isHidden: boolean) => {
      const constraints = [{ type: 'payment.allowed_payees', allowed: [conceal(another), shop] }, reference]
      const only = [{ type: 'payment.allowed_payees', allowed: [conceal(another)] }, reference]
      const root = await issueMandate(
        openPayment(agent.jwk, { constraints: isHidden ? only : constraints }),
        surface.signing,
      )
      const texts = root.split('~')
      const shown = texts.filter((text) => !/^\["[^"]*","id"/.test(Buffer.from(text, 'base64url').toString()))
      expect(shown).toHaveLength(texts.length - 1)
      return appendMandate(shown.join('~'), closedPayment(), agent.signing, hop)
    }
    expect(pay(await issue(true))).toEqual([
      ...['constraints', 'unresolved_constraint', 'hops[0].constraints[0] payee_not_allowed'],
    ])
    expect(pay(await issue(false))).toBe('ok')
  })

  test('of which any character of a signed part is changed is refused at the signatures', async () => {
    const chain = await issuePaymentChain()
    const step = Math.ceil(chain.length / 60)
    for (let at = 0; at < chain.length - 1; at += step) {
      const other = chain[at] === 'A' ? 'B' : 'A'
      const [stage, code] = pay(chain.slice(0, at) + other + chain.slice(at + 1)) as string[]
      expect(`${at} ${stage} ${code}`).toBe(`${at} crypto invalid_credential`)
    }
  })

  test.for(['vct', 'transaction_id', 'payee', 'payment_amount', 'payment_instrument', 'iat', 'exp'])(
    'whose %s is changed after it was signed is refused',
    async (name) => {
      const chain = await issuePaymentChain()
      const hops = chain.split('~~')
      const [jwt = '', disclosure = ''] = hops[1]?.split('~') ?? []
      const [salt, content] = JSON.parse(Buffer.from(disclosure, 'base64url').toString())
      const changed = {
        ...content,
        [name]: typeof content[name] === 'number' ? content[name] + 60 : 'changed',
      }
      const forged = Buffer.from(JSON.stringify([salt, changed])).toString('base64url')
      expect(pay(`${hops[0]}~~${jwt}~${forged}~`)).toEqual([
        ...['crypto', 'invalid_credential', 'hops[1].disclosures[0] unused_disclosure'],
      ])
      const inline = editHop(`${hops[0]}~~${jwt}~`, -1, (text) => {
        const [head, , signature] = text.split('.')
        const payload = JSON.parse(Buffer.from(text.split('.')[1] ?? '', 'base64url').toString())
        const body = JSON.stringify({ ...payload, delegate_payload: [changed] })
        return [head, Buffer.from(body).toString('base64url'), signature].join('.')
      })
      const verdict = pay(inline)
      expect(verdict.slice(0, 3)).toEqual([
        'crypto',
        'invalid_credential',
        'hops[1].signature wrong_signature',
      ])
    },
  )
})

describe('a checkout chain', () => {
  test('is ok, and gives the checkout and the hash that the payment refers to', async () => {
    const { chain, open, hash } = await issueCheckoutChain()
    const verdict = verifyCheckoutChain(chain, expected, { checkoutHash: hash })
    expect(verdict).toMatchObject({ ok: true, stage: 'constraints', code: null, violations: [] })
    if (!verdict.ok) return
    expect(verdict.value).toMatchObject({ checkout: { id: 'order-1' }, openCheckoutHash: hashText(open) })
  })

  test('with another checkout under an old hash is refused (row 20)', async () => {
    const other = await signJws({ ...checkout, id: 'order-2' }, merchant.signing)
    const { chain } = await issueCheckoutChain({ checkout_jwt: other })
    expect(buy(chain)).toEqual(['crypto', 'invalid_credential', 'hops[1].checkout_hash checkout_hash'])
  })

  test('whose checkout a stranger signed in the name of the merchant is refused (row 20)', async () => {
    const forged = await signJws(checkout, createParty('merchant-1').signing)
    const { chain } = await issueCheckoutChain({}, forged)
    expect(buy(chain)).toEqual([
      'crypto',
      'invalid_credential',
      'hops[1].checkout_jwt.signature wrong_signature',
    ])
    const unknown = await issueCheckoutChain({}, await signJws(checkout, createParty('another').signing))
    expect(buy(unknown.chain)).toEqual([
      ...['crypto', 'invalid_credential', 'hops[1].checkout_jwt.header.kid unknown_key'],
    ])
  })

  test.for(['none', 'HS256', 'RS256', 'ES384'])(
    'whose checkout is signed with %s in place of ES256 is refused (row 22)',
    async (alg) => {
      const [, payload, signature] = (await signJws(checkout, merchant.signing)).split('.')
      const header = Buffer.from(JSON.stringify({ alg, kid: 'merchant-1' })).toString('base64url')
      const { chain } = await issueCheckoutChain({}, [header, payload, signature].join('.'))
      expect(buy(chain)).toEqual([
        ...['crypto', 'invalid_credential'],
        expect.stringMatching(/^hops\[1\]\.checkout_jwt\.header\.alg algorithm_/),
      ])
    },
  )

  test('whose checkout is over, not disclosed, or not the expected one is refused', async () => {
    const old = await signJws({ ...checkout, exp: mandateTime - 301 }, merchant.signing)
    expect(buy((await issueCheckoutChain({}, old)).chain)).toEqual([
      ...['crypto', 'invalid_credential', 'hops[1].checkout_jwt.exp expired'],
    ])
    const { chain, hash } = await issueCheckoutChain()
    const hidden = chain
      .split('~')
      .filter((text) => !Buffer.from(text, 'base64url').toString().includes('"checkout_jwt"'))
    expect(buy(hidden.join('~'))).toEqual([
      ...['crypto', 'invalid_credential', 'hops[1].checkout_jwt missing_checkout_jwt'],
    ])
    expect(buy(chain, { checkoutHash: `${hash.slice(1)}A` })).toEqual([
      ...['constraints', 'invalid_mandate', 'hops[1].checkout_hash checkout_hash_mismatch'],
    ])
  })

  test('of other items or another merchant is refused', async () => {
    const items = [{ item: { id: 'boot' }, quantity: 1 }]
    const jwt = await signJws(
      { ...checkout, line_items: items, merchant: { id: 'x', name: 'X' } },
      merchant.signing,
    )
    const verdict = buy((await issueCheckoutChain({}, jwt)).chain)
    expect(verdict.slice(0, 2)).toEqual(['constraints', 'unresolved_constraint'])
    expect(verdict).toContain('hops[0].constraints[1] merchant_not_allowed')
  })

  test('of the AP2 documents meets its constraints', () => {
    // the root's and the merchant's keys are not published: their signatures alone are missing
    const golden = { ...expected, nonce: 'b9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4' }
    expect(buy(ap2.checkout.chain, {}, golden)).toEqual([
      ...['crypto', 'invalid_credential', 'hops[0].header.kid unknown_key'],
      'hops[1].checkout_jwt.header.kid unknown_key',
    ])
  })
})

test('hostile chains are refused by name', async () => {
  const chain = await issuePaymentChain()
  const deep = `${'{"a":'.repeat(40_000)}1${'}'.repeat(40_000)}`
  const jwt = (payload: string) =>
    ['{"alg":"ES256"}', payload, 'x'.repeat(64)]
      .map((text) => Buffer.from(text).toString('base64url'))
      .join('.')
  for (const [code, token] of [
    ['token_too_large', chain + 'A'.repeat(262_145)],
    ['too_many_disclosures', chain + 'A~'.repeat(201)],
    ['malformed_json', `${jwt(deep.slice(0, 190_000))}~`],
    ['malformed_json', `${jwt('{"a"')}~`],
    ['too_many_hops', Array(60_000).fill('a').join('~~')],
    ['malformed_json', `${jwt(`{"a":[${'1,'.repeat(90_000)}1]}`)}~`],
  ] as const) {
    expect(verifyPaymentChain(token, expected).violations.map((violation) => violation.code)).toContain(code)
  }
})
