import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { z } from 'zod'
import { isSameJson, readJson, writeJson } from '../../../../../src/features/payments/mandates/json.ts'
import { checkCartSum, joinCartAndPayment } from '../../../../../src/features/payments/mandates/v1/payment.ts'
import {
  cartMandateSchema,
  cartOfferSchema,
  contactAddressSchema,
  intentMandateSchema,
  paymentDraftSchema,
  paymentMandateV1Schema,
  paymentMethodDataSchema,
  paymentReceiptV1Schema,
} from '../../../../../src/features/payments/mandates/v1/types.ts'
import { readBy } from '../../../../../src/features/payments/mandates/violations.ts'

/** Cut from the extension document and the walk-through of 2025, unchanged. */
const readSample = (name: string): string =>
  readFileSync(new URL(`listings/${name}.sample`, import.meta.url), 'utf8')

/** The JSON text of the mandate in an A2A message or artifact. */
const findMandate = (name: string, key: string): string => {
  const { parts } = readJson(readSample(name)) as { parts: { data?: Record<string, unknown> }[] }
  const found = parts.find(({ data }) => data?.[key] !== undefined)
  if (!found) throw new Error(`no ${key}`)
  return writeJson(found.data?.[key])
}
const readValue = <Schema extends z.ZodType>(schema: Schema, raw: string): z.output<Schema> => {
  const read = readBy(schema, raw)
  if (!read.ok) throw new Error(JSON.stringify(read.violations))
  return read.value
}
const findRefusal = (schema: z.ZodType, raw: string): string[] => {
  const read = readBy(schema, raw)
  return read.ok ? [] : read.violations.map(({ code, field }) => `${code} ${field}`)
}
const usd = (minor: number) => ({ currency: 'USD', minor })

describe('the listings of the extension document', () => {
  test('begin with an agent card, which has no mandate', () => {
    expect(readBy(intentMandateSchema, readSample('agent-card')).ok).toBe(false)
  })

  test('have an intent mandate whose required_refundability is read (row 7)', () => {
    const raw = findMandate('intent-mandate', 'ap2.mandates.IntentMandate')
    expect(readBy(intentMandateSchema, raw)).toEqual({
      ok: true,
      raw,
      value: {
        user_cart_confirmation_required: false,
        natural_language_description: "I'd like some cool red shoes in my size",
        requires_refundability: true,
        intent_expiry: '2025-09-16T15:00:00Z',
      },
    })
  })

  test('have a cart that is read by its old names, and refused for payment (row 6)', () => {
    const raw = findMandate('cart-mandate', 'ap2.mandates.CartMandate')
    expect(raw).toContain('"value":120.0')
    const { contents, merchant_authorization } = readValue(cartOfferSchema, raw)
    expect(merchant_authorization).toBe('sig_merchant_shoes_abc1')
    expect(contents.user_cart_confirmation_required).toBe(false)
    expect(contents.payment_request.details.display_items).toEqual([
      { label: 'Cool Shoes Max', amount: usd(12000), refund_period: 30 },
    ])
    expect(contents.payment_request.options).toMatchObject({
      request_payer_name: false,
      request_shipping: true,
    })
    expect(findRefusal(cartMandateSchema, raw)).toEqual([
      'missing_field contents.cart_expiry',
      'missing_field contents.merchant_name',
    ])
  })

  test('have a payment mandate of the first draft, read by its old form and refused for payment (row 5)', () => {
    const raw = findMandate('payment-mandate', 'ap2.mandates.PaymentMandate')
    expect(readValue(paymentDraftSchema, raw)).toEqual({
      payment_mandate_contents: {
        payment_details_id: 'order_shoes_123',
        payment_details_total: { amount: usd(12000), refund_period: 30 },
        payment_response: {
          request_id: 'order_shoes_123',
          method_name: 'CARD',
          details: { token: 'xyz789' },
        },
        merchant_agent: 'MerchantAgent',
        timestamp: '2025-08-26T19:36:36.377022Z',
        risk_info: { device_imei: 'abc123' },
        display_info: '<image bytes>',
      },
      user_authorization: '<user-signed hash of the cart mandate>',
    })
    expect(findRefusal(paymentMandateV1Schema, raw)).toEqual([
      'missing_field payment_mandate_contents.payment_mandate_id',
      'missing_field payment_mandate_contents.payment_details_total.label',
    ])
  })
})

describe('the mandates of the walk-through', () => {
  test('have an offer without a signature, which is never paid (row 8)', () => {
    const raw = readSample('walkthrough-offer')
    expect(readValue(cartOfferSchema, raw).contents.id).toBe('cart_1')
    expect(findRefusal(cartMandateSchema, raw)).toEqual(['missing_field merchant_authorization'])
  })

  test('have a cart whose items are more than its total, which a policy may refuse (row 10)', () => {
    const { contents } = readValue(cartMandateSchema, readSample('walkthrough-cart'))
    expect(contents.payment_request.details.total.amount).toEqual(usd(60349))
    expect(checkCartSum(contents)).toMatchObject([
      { code: 'sum_mismatch', field: 'contents.payment_request.details.total.amount' },
    ])
    const offer = readValue(cartOfferSchema, readSample('walkthrough-offer')).contents
    expect(checkCartSum({ ...contents, payment_request: offer.payment_request })).toEqual([])
  })

  test('have one payment mandate in two forms, with nulls and without (row 11)', () => {
    const [shopper, merchant] = ['of-shopper', 'of-merchant'].map((name) =>
      readSample(`walkthrough-payment-${name}`).trim(),
    ) as [string, string]
    expect(shopper).not.toBe(merchant)
    expect(readValue(paymentMandateV1Schema, shopper)).toEqual(readValue(paymentMandateV1Schema, merchant))
    expect(isSameJson(JSON.parse(shopper), JSON.parse(merchant))).toBe(true)
    // hashes are made of what was received
    expect(readBy(paymentMandateV1Schema, merchant)).toMatchObject({ raw: merchant })
  })

  test('read 249.0 as 249, and a refund period that is not there as 30 days (row 11)', () => {
    const write = (value: string, refund: string) =>
      readSample('walkthrough-offer').replaceAll('89.99', value).replaceAll(',"refund_period":30', refund)
    const offer = readValue(cartOfferSchema, write('249.0', ',"refund_period":30'))
    expect(readValue(cartOfferSchema, write('249', ''))).toEqual(offer)
    expect(readValue(cartOfferSchema, write('"249.00"', ',"refundPeriod":null'))).toEqual(offer)
    expect(offer.contents.payment_request.details.total.amount).toEqual(usd(24900))
  })

  test('join to the payment of the cart', () => {
    const cart = readValue(cartMandateSchema, readSample('walkthrough-cart'))
    const payment = readValue(paymentMandateV1Schema, readSample('walkthrough-payment-of-shopper'))
    expect(joinCartAndPayment(cart, payment, 'hash')).toEqual({
      ok: true,
      value: {
        version: '0.1',
        amount: usd(60349),
        payee: { id: null, name: 'Generic Merchant', website: null },
        payer: { name: null, email: 'bugsbunny@gmail.com', phone: null },
        instrument: {
          type: 'CARD',
          id: null,
          details: {
            token: {
              value: 'fake_payment_credential_token_0',
              url: 'http://CredentialsProvider/a2a/credentials_provider',
            },
          },
        },
        checkout: { id: 'order_3', cart_id: expect.any(String), hash: 'hash' },
        expiresAt: Math.floor(Date.parse(cart.contents.cart_expiry) / 1000),
        executionDate: null,
      },
    })
  })

  test('do not join where order, amount, payee or method differ', () => {
    const cart = readValue(cartMandateSchema, readSample('walkthrough-cart'))
    const changed = readSample('walkthrough-payment-of-shopper')
      .replaceAll('order_3', 'order_4')
      .replace('603.49', '603.48')
      .replace('Generic Merchant', 'Other')
      .replace('"CARD"', '"BANK"')
    const joined = joinCartAndPayment(cart, readValue(paymentMandateV1Schema, changed), 'hash')
    expect(joined.ok ? [] : joined.violations.map(({ code }) => code)).toEqual([
      'checkout_mismatch',
      'checkout_mismatch',
      'amount_mismatch',
      'payee_mismatch',
      'method_not_allowed',
    ])
  })
})

describe('a mandate of AP2 0.1', () => {
  const intent = {
    naturalLanguageDescription: 'shoes',
    userCartConfirmationRequired: false,
    requiresRefundability: true,
    intentExpiry: '2026-04-30T12:00:00Z',
  }

  test('is read in camelCase (row 15)', () => {
    expect(readValue(intentMandateSchema, JSON.stringify(intent))).toEqual({
      natural_language_description: 'shoes',
      user_cart_confirmation_required: false,
      requires_refundability: true,
      intent_expiry: '2026-04-30T12:00:00Z',
    })
  })

  test('with two names of one member is refused where they differ, and read where they do not', () => {
    const both = { ...intent, required_refundability: false }
    expect(findRefusal(intentMandateSchema, JSON.stringify(both))).toEqual([
      'conflicting_names required_refundability',
    ])
    // the other way around: the message names both
    const { requiresRefundability: _, ...rest } = intent
    const later = { required_refundability: false, ...rest, requires_refundability: true }
    expect(findRefusal(intentMandateSchema, JSON.stringify(later))).toEqual([
      'conflicting_names required_refundability',
    ])
    expect(
      findRefusal(intentMandateSchema, JSON.stringify({ ...intent, requires_refundability: true })),
    ).toEqual([])
  })

  test('that is no object, or has no readable time, is refused', () => {
    expect(findRefusal(intentMandateSchema, '[]')).toEqual(['invalid_field '])
    expect(findRefusal(intentMandateSchema, JSON.stringify({ ...intent, intentExpiry: 'soon' }))).toEqual([
      'unreadable_date intent_expiry',
    ])
  })

  test('has opaque data whose members keep their names', () => {
    const raw = readSample('walkthrough-payment-of-shopper').replace('"token":{', '"fooBar":1,"token":{')
    const { payment_mandate_contents: contents } = readValue(paymentMandateV1Schema, raw)
    expect(contents.payment_response.details).toHaveProperty('fooBar', 1)
  })

  test('goes with addresses and methods of payment, in either spelling', () => {
    expect(readValue(contactAddressSchema, '{"addressLine":["123 Main St"],"sorting_code":null}')).toEqual({
      address_line: ['123 Main St'],
    })
    const method = { supported_methods: 'CARD', data: { network: ['amex'] } }
    expect(readValue(paymentMethodDataSchema, JSON.stringify(method))).toEqual(method)
  })

  test('with an amount that is no money is refused by its field', () => {
    const write = (value: string) => readSample('walkthrough-payment-of-shopper').replace('603.49', value)
    const field = 'payment_mandate_contents.payment_details_total.amount'
    for (const [value, code] of [
      ['603.495', 'too_many_decimals'],
      ['-1', 'negative_amount'],
      ['1e2', 'invalid_amount'],
      ['90071992547409.92', 'amount_too_large'],
      ['null', 'invalid_amount'],
    ] as const)
      expect(findRefusal(paymentMandateV1Schema, write(value))).toEqual([`${code} ${field}.value`])
    const raw = readSample('walkthrough-payment-of-shopper').replace('"USD"', '"ZZZ"')
    expect(findRefusal(paymentMandateV1Schema, raw)).toEqual([`unknown_currency ${field}.currency`])
  })

  test('with a total that is pending is not paid', () => {
    const raw = readSample('walkthrough-cart').replace(
      '"total":{"label":"Total","amount":{"currency":"USD","value":603.49},"pending":null',
      '"total":{"label":"Total","amount":{"currency":"USD","value":603.49},"pending":true',
    )
    expect(findRefusal(cartMandateSchema, raw)).toEqual([
      'pending_total contents.payment_request.details.total.pending',
    ])
  })

  test('of nothing but errors is refused with the first of them', () => {
    const fill = (entry: string, count: number) => Array.from({ length: count }, () => entry).join(',')
    const toCart = (items: string) =>
      `{"contents":{"payment_request":{"details":{"display_items":[${items}]}}}}`
    const texts = [
      fill('0', 49_000),
      fill('{}', 20_000),
      fill('{"amount":{"currency":"X","value":-1}}', 6_000),
    ].map(toCart)
    for (const raw of texts) {
      expect(findRefusal(cartMandateSchema, raw).length).toBeGreaterThan(90)
      expect(findRefusal(cartMandateSchema, raw).length).toBeLessThan(110)
    }
  })

  test('has a receipt with exactly one outcome', () => {
    const receipt = (payment_status: object) =>
      JSON.stringify({
        payment_mandate_id: 'm',
        timestamp: '2026-04-30T12:00:00Z',
        payment_id: 'p',
        amount: { currency: 'JPY', value: 1500 },
        payment_status,
      })
    expect(readValue(paymentReceiptV1Schema, receipt({ merchant_confirmation_id: 'c' }))).toMatchObject({
      amount: { currency: 'JPY', minor: 1500 },
    })
    expect(findRefusal(paymentReceiptV1Schema, receipt({ errorMessage: 'declined' }))).toEqual([])
    for (const status of [{}, { merchant_confirmation_id: 'c', error_message: 'declined' }])
      expect(findRefusal(paymentReceiptV1Schema, receipt(status))).toEqual([
        'ambiguous_status payment_status',
      ])
  })
})
