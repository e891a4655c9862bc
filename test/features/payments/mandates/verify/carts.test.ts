import { describe, expect, test } from 'vitest'
import { authorizeCart } from '../../../../../examples/purchase/authorize-cart.ts'
import { toCanonicalJson } from '../../../../../src/features/canonical-json.ts'
import {
  authorizePayment,
  hashJson,
  isHashOf,
} from '../../../../../src/features/payments/mandates/tokens/authorizations.ts'
import { hashText, type JsonObject } from '../../../../../src/features/payments/mandates/tokens/encoding.ts'
import { signJws } from '../../../../../src/features/payments/mandates/tokens/jws.ts'
import {
  bindToTransaction,
  issueCredential,
} from '../../../../../src/features/payments/mandates/tokens/key-binding.ts'
import { verifyCart, verifyPaymentV1 } from '../../../../../src/features/payments/mandates/verify/carts.ts'
import {
  createParty,
  expected,
  mandateTime,
  mirrorSignature,
  parties,
} from '../../../../support/mandate-parties.ts'

const { merchant, surface, agent: user } = parties
const total = { label: 'Total', amount: { currency: 'USD', value: 249.5 }, refund_period: 30 }
const contents = {
  id: 'cart-1',
  user_cart_confirmation_required: true,
  payment_request: {
    method_data: [{ supported_methods: 'CARD', data: { network: ['mastercard'] } }],
    details: { id: 'order-1', display_items: [total], shipping_options: null, total },
    options: { request_shipping: true },
  },
  cart_expiry: '2026-04-28T03:00:00Z',
  merchant_name: 'Demo Merchant',
}
const paymentContents = {
  payment_mandate_id: 'pm-1',
  payment_details_id: 'order-1',
  payment_details_total: total,
  payment_response: { request_id: 'order-1', method_name: 'CARD', details: { token: 'x' } },
  merchant_agent: 'Demo Merchant',
  timestamp: '2026-04-28T02:12:00Z',
}
const cartClaims = {
  issuer: 'https://shop',
  subject: 'shop',
  audience: 'merchant',
  iat: mandateTime - 60,
  jti: 'jti-1',
}
const binding = { audience: 'merchant', nonce: 'nonce-1', iat: mandateTime - 30 }
const credential = await issueCredential(
  { vct: 'com.example.card', iat: mandateTime - 9999 },
  user.jwk,
  surface.signing,
)

const issueCart = async (value: JsonObject = contents) => ({
  contents: value,
  merchant_authorization: await authorizeCart(value, cartClaims, merchant.signing),
})
const cart = await issueCart()
const issuePayment = async (changes: JsonObject = {}, of: JsonObject = cart) => {
  const value = { ...paymentContents, ...changes }
  const user_authorization = await authorizePayment(of, value, credential, user.signing, binding)
  return { payment_mandate_contents: value, user_authorization }
}
const payment = await issuePayment()

const outline = ({ ok, stage, violations }: ReturnType<typeof verifyCart | typeof verifyPaymentV1>) =>
  ok ? 'ok' : [stage, ...violations.map(({ field, code }) => `${field} ${code}`)]
const check = (value: unknown, changes: object = {}) =>
  outline(verifyCart(typeof value === 'string' ? value : JSON.stringify(value), { ...expected, ...changes }))
const pay = (value: unknown, changes: object = {}, of: unknown = cart) =>
  outline(verifyPaymentV1(JSON.stringify(value), JSON.stringify(of), { ...expected, ...changes }))
const authorization = 'merchant_authorization'
const placeholder = 'eyJhbGciOiJSUzI1NiIsImtpZIwMjQwOTA...'

/** Every value with one leaf changed, and the path of it. */
const mutateEach = (value: unknown, path = ''): [path: string, changed: unknown][] => {
  if (Array.isArray(value))
    return value.flatMap((item, i) =>
      mutateEach(item, `${path}[${i}]`).map(([at, changed]): [string, unknown] => [
        at,
        value.with(i, changed),
      ]),
    )
  if (typeof value === 'object' && value !== null)
    return Object.entries(value).flatMap(([name, member]) =>
      mutateEach(member, `${path}.${name}`).map(([at, changed]): [string, unknown] => [
        at,
        { ...value, [name]: changed },
      ]),
    )
  if (value === null) return []
  return [[path, typeof value === 'number' ? value + 1 : typeof value === 'boolean' ? !value : `${value}0`]]
}

describe('a signed cart', () => {
  test('is verified from what was received, whatever the order of members, nulls and numbers', () => {
    expect(check(cart)).toBe('ok')
    const { contents: c, merchant_authorization } = cart
    const reordered = { merchant_authorization, contents: Object.fromEntries(Object.entries(c).reverse()) }
    expect(check(reordered)).toBe('ok')
    expect(
      check(JSON.stringify(cart).replaceAll('249.5', '249.50').replace('"shipping_options":null,', '')),
    ).toBe('ok')
  })

  test('may have its hash with nulls, or in hex, and its token in base64url once more', async () => {
    const { iat, jti, audience: aud } = cartClaims
    const claims = { iss: 'shop', sub: 'shop', aud: ['another', aud], iat, exp: iat + 600, jti }
    const withNulls = hashText(toCanonicalJson(contents))
    const hex = Buffer.from(hashJson(contents), 'base64url').toString('hex')
    expect(withNulls).not.toBe(hashJson(contents))
    for (const cart_hash of [withNulls, hex, hex.toUpperCase()]) {
      const token = await signJws({ ...claims, cart_hash }, merchant.signing)
      expect(check({ contents, merchant_authorization: token })).toBe('ok')
    }
    const wrapped = Buffer.from(cart.merchant_authorization).toString('base64url')
    expect(check({ ...cart, merchant_authorization: wrapped })).toBe('ok')
    expect(isHashOf(undefined, contents)).toBe(false)
  })

  test.for(mutateEach(contents))('with another %s is refused by its hash', ([, changed]) => {
    expect(check({ ...cart, contents: changed })).toEqual(['crypto', `${authorization}.cart_hash wrong_hash`])
  })

  test('with an unsigned member that has no canonical form is refused, and the member is named', async () => {
    const deep = JSON.parse(`${'['.repeat(120)}1${']'.repeat(120)}`)
    const poisons: [JsonObject, string][] = [
      [{ note: '\ud800' }, 'note'],
      [{ '\ud800': 1 }, '\ufffd'],
      [{ extra: [{ more: ['\udc00'] }] }, 'extra[0].more[0]'],
      [{ deep }, `deep${'[0]'.repeat(120)}`.slice(0, 300)],
    ]
    for (const [poison, field] of poisons) {
      const text = JSON.stringify({ ...cart, ...poison })
      expect(check(text)).toEqual(['crypto', `${field} no_canonical_json`])
      expect(pay(payment, {}, { ...cart, ...poison })).toEqual(['crypto', `cart.${field} no_canonical_json`])
      const demo = { ...cart, ...poison, merchant_authorization: placeholder }
      const user_authorization = 'fake_cart_mandate_hash_cart-1_fake_payment_mandate_hash_pm-1'
      expect(pay({ ...payment, user_authorization }, { skipped: [] }, demo)).toEqual([
        ...['crypto', `cart.${field} no_canonical_json`],
      ])
    }
  })

  test('whose id is no text is refused, with its payment and in the demo profile too', async () => {
    const odd = { toString: 1, valueOf: 1 }
    const unsigned = { ...cart, contents: { ...contents, id: odd }, merchant_authorization: placeholder }
    expect(check(unsigned, { skipped: [] })).toEqual(['constraints', 'contents.id invalid_field'])
    const signed = await issueCart({ ...contents, id: odd })
    expect(pay(await issuePayment({ payment_mandate_id: odd }, signed), {}, signed)).toEqual([
      ...['constraints', 'payment_mandate_contents.payment_mandate_id invalid_field'],
      'cart.contents.id invalid_field',
    ])
  })

  test('that is not signed, or by a placeholder, a stranger or with RS256, is refused', async () => {
    expect(check({ contents })).toEqual(['crypto', `${authorization} not_signed`])
    expect(check({ contents, merchant_authorization: 'eyJhbGciOiJSUzI1NiIsImtpZIwMjQwOTA...' })[0]).toBe(
      'crypto',
    )
    const forged = await authorizeCart(contents, cartClaims, createParty('merchant-1').signing)
    expect(check({ contents, merchant_authorization: forged })).toEqual([
      ...['crypto', `${authorization}.signature wrong_signature`],
    ])
    const [, body, signature] = cart.merchant_authorization.split('.')
    const rs256 = [Buffer.from('{"alg":"RS256"}').toString('base64url'), body, signature].join('.')
    expect(check({ contents, merchant_authorization: rs256 })).toEqual([
      ...['crypto', `${authorization}.header.alg algorithm_not_es256`],
    ])
  })

  test('for another audience, over, or without jti is refused', async () => {
    expect(check(cart, { audience: 'x' })).toEqual(['crypto', `${authorization}.aud wrong_aud`])
    expect(check(cart, { now: mandateTime + 841 })).toEqual(['crypto', `${authorization}.exp expired`])
    expect(check(cart, { now: mandateTime - 361 })).toEqual([
      'crypto',
      `${authorization}.iat issued_in_future`,
    ])
    const { merchant_authorization } = await issueCart()
    const [, body = ''] = merchant_authorization.split('.')
    const { jti: _, ...claims } = JSON.parse(Buffer.from(body, 'base64url').toString())
    const token = await signJws(claims, merchant.signing)
    expect(check({ contents, merchant_authorization: token })).toEqual([
      'crypto',
      `${authorization}.jti missing_jti`,
    ])
  })

  test('whose expiry is over, or that lacks a field, is refused for payment', async () => {
    expect(check(await issueCart({ ...contents, cart_expiry: '2026-04-28T02:13:19Z' }))).toEqual([
      ...['constraints', 'contents.cart_expiry cart_expired'],
    ])
    const { cart_expiry: _, merchant_name: __, ...rest } = contents
    expect(check(await issueCart(rest))).toEqual([
      ...['constraints', 'contents.cart_expiry missing_field', 'contents.merchant_name missing_field'],
    ])
    expect(check('{"contents":')).toEqual(['crypto', ' malformed_json'])
  })

  test('has one identity with the mirrored signature', () => {
    const mirrored = { ...cart, merchant_authorization: mirrorSignature(cart.merchant_authorization) }
    const [one, other] = [cart, mirrored].map((value) => verifyCart(JSON.stringify(value), expected))
    expect(one?.ok && other?.ok && one.value.identity === other.value.identity).toBe(true)
  })
})

describe('a signed payment mandate', () => {
  test('is verified with its cart', () => {
    expect(pay(payment)).toBe('ok')
  })

  test.for(mutateEach(paymentContents))('with another %s is refused by its hash', ([, changed]) => {
    expect(pay({ ...payment, payment_mandate_contents: changed })).toEqual([
      ...['crypto', 'user_authorization.key_binding.transaction_data[1] wrong_hash'],
      'user_authorization.key_binding.transaction_data_hashes[1] wrong_hash',
    ])
  })

  test('with another cart under the old hash, or another signature of the merchant, is refused', async () => {
    const other = await issueCart({ ...contents, id: 'cart-2' })
    expect(pay(payment, {}, other)).toEqual([
      ...['crypto', 'user_authorization.key_binding.transaction_data[0] wrong_hash'],
      'user_authorization.key_binding.transaction_data_hashes[0] wrong_hash',
    ])
    const mirrored = { ...cart, merchant_authorization: mirrorSignature(cart.merchant_authorization) }
    expect(pay(payment, {}, mirrored)[0]).toBe('crypto')
  })

  test.for<[string, JsonObject]>([
    [
      'payment_details_total.amount amount_mismatch',
      { payment_details_total: { ...total, amount: { currency: 'USD', value: 1 } } },
    ],
    [
      'payment_details_total.amount amount_mismatch',
      { payment_details_total: { ...total, amount: { currency: 'EUR', value: 249.5 } } },
    ],
    ['merchant_agent payee_mismatch', { merchant_agent: 'Another' }],
    ['payment_details_id checkout_mismatch', { payment_details_id: 'order-2' }],
    [
      'payment_response.request_id checkout_mismatch',
      { payment_response: { request_id: 'x', method_name: 'CARD' } },
    ],
    [
      'payment_response.method_name method_not_allowed',
      { payment_response: { request_id: 'order-1', method_name: 'x' } },
    ],
  ])('that the user signed but that is not of this cart is refused: %s', async ([violation, changes]) => {
    expect(pay(await issuePayment(changes))).toEqual(['constraints', `payment_mandate_contents.${violation}`])
  })

  test('of a cart that is over is refused', async () => {
    const late = await issueCart({ ...contents, cart_expiry: '2026-04-28T02:13:19Z' })
    expect(pay(await issuePayment({}, late), {}, late)).toEqual([
      'constraints',
      'cart.contents.cart_expiry cart_expired',
    ])
  })

  test('for another audience or with an old nonce is refused', () => {
    const place = 'user_authorization.key_binding.payload'
    expect(pay(payment, { audience: 'x', cartAudience: 'merchant' })).toEqual([
      'crypto',
      `${place}.aud wrong_aud`,
    ])
    expect(pay(payment, { nonce: 'old' })).toEqual(['crypto', `${place}.nonce wrong_nonce`])
  })

  test('that is not signed, by a placeholder, or by a key or credential of others is refused', async () => {
    expect(pay({ payment_mandate_contents: paymentContents })).toEqual([
      'crypto',
      'user_authorization not_signed',
    ])
    const fake = {
      ...payment,
      user_authorization: 'fake_cart_mandate_hash_cart-1_fake_payment_mandate_hash_pm-1',
    }
    expect(pay(fake)[0]).toBe('crypto')
    const hashes = [hashJson(cart), hashJson(paymentContents)]
    const foreign = await issueCredential({ vct: 'x' }, user.jwk, createParty('surface-1').signing)
    const sign = async (of: string, key = user.signing, data = hashes) =>
      pay({ ...payment, user_authorization: await bindToTransaction(of, key, { ...binding, hashes: data }) })
    expect(await sign(foreign)).toEqual(['crypto', 'user_authorization.signature wrong_signature'])
    expect(await sign(credential, merchant.signing)).toEqual([
      ...['crypto', 'user_authorization.key_binding.signature wrong_signature'],
    ])
    expect(await sign(credential, user.signing, hashes.slice(1))).toContain(
      'user_authorization.key_binding.transaction_data malformed_transaction_data',
    )
    const [, presented = ''] = payment.user_authorization.split('~')
    expect(pay({ ...payment, user_authorization: `${foreign}${presented}` })).toEqual([
      ...[
        'crypto',
        'user_authorization.signature wrong_signature',
        'user_authorization.key_binding.sd_hash sd_hash',
      ],
    ])
    expect(pay({ ...payment, user_authorization: credential })).toEqual([
      ...['crypto', 'user_authorization missing_key_binding'],
    ])
  })

  test('whose key binding lacks its type, time or hashes is refused', async () => {
    const token = await signJws(
      { aud: 'merchant', nonce: 'nonce-1', sd_hash: hashText(credential) },
      user.signing,
    )
    expect(pay({ ...payment, user_authorization: credential + token })).toEqual(
      ['crypto', 'header.typ wrong_typ', 'iat missing_iat', 'transaction_data missing_transaction_data'].map(
        (text, i) => (i === 0 ? text : `user_authorization.key_binding.${text}`),
      ),
    )
  })
})
