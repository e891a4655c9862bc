import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { z } from 'zod'
import { type Built, buildBy } from '../../../../src/features/payments/mandates/build.ts'
import { frequencies } from '../../../../src/features/payments/mandates/calendar.ts'
import { currencyExponents } from '../../../../src/features/payments/mandates/money.ts'
import * as v1 from '../../../../src/features/payments/mandates/v1/types.ts'
import { buildBudget } from '../../../../src/features/payments/mandates/v2/build.ts'
import { isReceiptOf, toMandatedPayment } from '../../../../src/features/payments/mandates/v2/payment.ts'
import * as v2 from '../../../../src/features/payments/mandates/v2/types.ts'
import { readBy } from '../../../../src/features/payments/mandates/violations.ts'

// an id with the replacement character is refused
const text = fc
  .string({ minLength: 1, maxLength: 12, unit: 'grapheme' })
  .filter((drawn) => !drawn.includes('\ufffd'))
const flag = fc.boolean()
const time = fc
  .date({ min: new Date('2000-01-01'), max: new Date('2100-01-01'), noInvalidDate: true })
  .map((date) => date.toISOString())
const money = fc.record({
  currency: fc.constantFrom(...currencyExponents.keys()),
  minor: fc.nat({ max: Number.MAX_SAFE_INTEGER }),
})
const data = fc.dictionary(
  fc.string({ unit: 'grapheme-ascii', maxLength: 8 }),
  fc.oneof(fc.integer(), text, flag),
)
const item = fc.record(
  { label: text, amount: money, refund_period: fc.nat(), pending: fc.constant(false) },
  { requiredKeys: ['label', 'amount', 'refund_period'] },
)
const shippingOption = fc.record({ id: text, label: text, amount: money, selected: flag })
const address = fc.record({ recipient: text, city: text, address_line: fc.array(text) }, { requiredKeys: [] })
const request = fc.record(
  {
    method_data: fc.array(
      fc.record({ supported_methods: text, data }, { requiredKeys: ['supported_methods'] }),
    ),
    details: fc.record(
      {
        id: text,
        display_items: fc.array(item, { maxLength: 3 }),
        shipping_options: fc.array(shippingOption, { maxLength: 2 }),
        modifiers: fc.array(
          fc.record({ supported_methods: text, total: item, data }, { requiredKeys: ['supported_methods'] }),
          { maxLength: 2 },
        ),
        total: item,
      },
      { requiredKeys: ['id', 'display_items', 'total'] },
    ),
    options: fc.record(
      {
        request_payer_name: flag,
        request_payer_email: flag,
        request_payer_phone: flag,
        request_shipping: flag,
        shipping_type: text,
      },
      {
        requiredKeys: [
          'request_payer_name',
          'request_payer_email',
          'request_payer_phone',
          'request_shipping',
        ],
      },
    ),
    shipping_address: address,
  },
  { requiredKeys: ['method_data', 'details'] },
)
const contents = fc.record({
  id: text,
  user_cart_confirmation_required: flag,
  payment_request: request,
  cart_expiry: time,
  merchant_name: text,
})
const response = fc.record(
  {
    request_id: text,
    method_name: text,
    details: data,
    shipping_address: address,
    shipping_option: shippingOption,
    payer_email: text,
  },
  { requiredKeys: ['request_id', 'method_name'] },
)
const paymentContents = fc.record({
  payment_mandate_id: text,
  payment_details_id: text,
  payment_details_total: item,
  payment_response: response,
  merchant_agent: text,
  timestamp: time,
})
const intent = fc.record(
  {
    user_cart_confirmation_required: flag,
    natural_language_description: text,
    merchants: fc.array(text),
    skus: fc.array(text),
    requires_refundability: flag,
    intent_expiry: time,
  },
  {
    requiredKeys: [
      'user_cart_confirmation_required',
      'natural_language_description',
      'requires_refundability',
      'intent_expiry',
    ],
  },
)
const receiptV1 = fc.record({
  payment_mandate_id: text,
  timestamp: time,
  payment_id: text,
  amount: money,
  payment_status: fc.oneof(
    fc.record({ merchant_confirmation_id: text, psp_confirmation_id: text }),
    fc.record({ error_message: text }),
    fc.record({ failure_message: text }),
  ),
})

const merchant = fc.record({ id: text, name: text, website: text }, { requiredKeys: ['id', 'name'] })
const amount = money.map(({ currency, minor }) => ({ currency, amount: minor }))
const seconds = fc.nat({ max: 4_000_000_000 })
const cnf = fc.record({
  jwk: fc.record({ kty: fc.constant('EC' as const), crv: fc.constant('P-256' as const), x: text, y: text }),
})
const instrument = fc.record({ id: text, type: text })
const closedPayment = fc.record(
  {
    vct: fc.constant('mandate.payment.1' as const),
    transaction_id: text,
    payee: merchant,
    payment_amount: amount,
    payment_instrument: instrument,
    execution_date: time,
    iat: seconds,
    exp: seconds,
  },
  { requiredKeys: ['vct', 'transaction_id', 'payee', 'payment_amount', 'payment_instrument'] },
)
const closedCheckout = fc.record({
  vct: fc.constant('mandate.checkout.1' as const),
  checkout_jwt: text,
  checkout_hash: text,
  exp: seconds,
})
const reference = fc.record({ type: fc.constant('payment.reference'), conditional_transaction_id: text })
const openPayment = fc.record(
  {
    vct: fc.constant('mandate.payment.open.1' as const),
    constraints: fc.tuple(
      reference,
      money.map(buildBudget),
      money.map(({ currency, minor }) => ({ type: 'payment.amount_range', currency, max: minor })),
      fc.record({
        type: fc.constant('payment.agent_recurrence'),
        frequency: fc.constantFrom(...frequencies),
        max_occurrences: fc.nat(),
      }),
      fc.record({
        type: fc.constant('payment.allowed_payees'),
        allowed: fc.array(merchant, { maxLength: 3 }),
      }),
    ),
    cnf,
    payee: merchant,
    exp: seconds,
  },
  { requiredKeys: ['vct', 'constraints', 'cnf'] },
)
const openCheckout = fc.record({
  vct: fc.constant('mandate.checkout.open.1' as const),
  constraints: fc.tuple(
    fc.record({
      type: fc.constant('checkout.line_items'),
      items: fc.array(
        fc.record({
          id: text,
          quantity: fc.integer({ min: 1, max: 1_000_000 }),
          acceptable_items: fc.array(fc.record({ id: text, title: text }), { maxLength: 3 }),
        }),
        { minLength: 1, maxLength: 3 },
      ),
    }),
  ),
  cnf,
})
const receiptV2 = fc.oneof(
  fc.record({
    status: fc.constant('Success' as const),
    iss: text,
    iat: seconds,
    reference: text,
    order_id: text,
    payment_id: text,
    psp_confirmation_id: text,
    network_confirmation_id: text,
  }),
  fc.record({
    status: fc.constant('Error' as const),
    iss: text,
    iat: seconds,
    reference: text,
    error: text,
    error_description: text,
    payment_id: text,
  }),
)

type Case = [string, fc.Arbitrary<never>, (value: never) => Built, z.ZodType]
const toCase = <Schema extends z.ZodType>(
  name: string,
  values: fc.Arbitrary<z.output<Schema>>,
  schema: Schema,
): Case => [name, values as fc.Arbitrary<never>, buildBy(schema) as (value: never) => Built, schema]

describe('what Mason builds', () => {
  test.each<Case>([
    toCase('an intent mandate', intent, v1.intentMandateSchema),
    toCase('the contents of a cart', contents, v1.cartContentsSchema),
    toCase('a cart mandate', fc.record({ contents, merchant_authorization: text }), v1.cartMandateSchema),
    toCase('the contents of a payment mandate', paymentContents, v1.paymentMandateContentsSchema),
    toCase(
      'a payment mandate of 0.1',
      fc.record({ payment_mandate_contents: paymentContents, user_authorization: text }),
      v1.paymentMandateV1Schema,
    ),
    toCase('a receipt of 0.1', receiptV1, v1.paymentReceiptV1Schema),
    toCase('a closed checkout mandate', closedCheckout, v2.checkoutMandateSchema),
    toCase('a closed payment mandate', closedPayment, v2.paymentMandateSchema),
    toCase('an open checkout mandate', openCheckout, v2.openCheckoutMandateSchema),
    toCase(
      'the receipt of a checkout',
      receiptV2 as fc.Arbitrary<v2.CheckoutReceipt>,
      v2.checkoutReceiptSchema,
    ),
    toCase(
      'the receipt of a payment',
      receiptV2 as fc.Arbitrary<v2.PaymentReceiptV2>,
      v2.paymentReceiptSchema,
    ),
  ])('is read as what it was: %s', (_, values, build, schema) => {
    fc.assert(
      fc.property(values, (value) => {
        const { raw } = build(value)
        expect(readBy(schema, raw)).toEqual({ ok: true, value, raw })
      }),
      { numRuns: 40 },
    )
  })

  test('is read as what it was: an open payment mandate, with a recurrence (row 25) and a budget in decimals (row 18)', () => {
    fc.assert(
      fc.property(openPayment, (value) => {
        const build = buildBy(v2.openPaymentMandateSchema)
        const { raw } = build(value)
        const read = readBy(v2.openPaymentMandateSchema, raw)
        expect(read.ok && build(read.value).raw).toBe(raw)
        expect(JSON.parse(raw)).toEqual(JSON.parse(JSON.stringify(value)))
      }),
      { numRuns: 40 },
    )
    expect(JSON.stringify(buildBudget({ currency: 'JPY', minor: 1000 }))).toContain('"max":1000')
    expect(JSON.stringify(buildBudget({ currency: 'USD', minor: 100010 }))).toContain('"max":1000.1')
  })

  test('has snake_case names, no nulls and amounts made of digits (row 7, row 11, row 15)', () => {
    const { raw } = buildBy(v1.intentMandateSchema)({
      natural_language_description: 'shoes',
      user_cart_confirmation_required: true,
      requires_refundability: true,
      merchants: undefined,
      intent_expiry: '2026-04-30T12:00:00Z',
    })
    expect(raw).toBe(
      '{"user_cart_confirmation_required":true,"natural_language_description":"shoes","requires_refundability":true,"intent_expiry":"2026-04-30T12:00:00Z"}',
    )
    const receipt = buildBy(v1.paymentReceiptV1Schema)({
      payment_mandate_id: 'm',
      timestamp: '2026-04-30T12:00:00Z',
      payment_id: 'p',
      amount: { currency: 'USD', minor: 60340 },
      payment_status: { merchant_confirmation_id: 'c' },
    })
    expect(receipt.raw).toContain('{"currency":"USD","value":603.40}')
  })

  test('is refused where it is incomplete, with every field', () => {
    expect(() => buildBy(v1.intentMandateSchema)({ intent_expiry: 'soon' } as never)).toThrow(
      expect.objectContaining({
        code: 'invalid_request',
        remedy: expect.stringMatching(
          /natural_language_description is missing.*intent_expiry is no ISO 8601/,
        ),
      }),
    )
  })
})

describe('a payment of AP2 0.2', () => {
  test('is what the executor needs, whichever version the mandate has', () => {
    const value = {
      vct: 'mandate.payment.1' as const,
      transaction_id: 'hash',
      payee: { id: 'm', name: 'M' },
      payment_amount: { amount: 19900, currency: 'USD' },
      payment_instrument: { id: 'stub', type: 'card' },
      exp: 1777345957,
    }
    expect(toMandatedPayment(value)).toEqual({
      version: '0.2',
      amount: { currency: 'USD', minor: 19900 },
      payee: { id: 'm', name: 'M', website: null },
      payer: { name: null, email: null, phone: null },
      instrument: { type: 'card', id: 'stub', details: null },
      checkout: { id: 'hash', cart_id: 'hash', hash: 'hash' },
      expiresAt: 1777345957,
      executionDate: null,
    })
  })

  test('has a receipt that names its last hop with or without disclosures (row 17)', () => {
    const hashes = { sdHash: 'with', jwtHash: 'without' }
    expect(['with', 'without', 'other'].map((ref) => isReceiptOf({ reference: ref }, hashes))).toEqual([
      true,
      true,
      false,
    ])
  })

  test('has receipts that are read without the JSON Schemas of the reference, which do not resolve (row 24)', () => {
    const raw =
      '{"status":"Error","iss":"m","iat":1,"reference":"r","error":"invalid_mandate","error_description":"no"}'
    expect(readBy(v2.checkoutReceiptSchema, raw)).toMatchObject({
      ok: true,
      value: { error: 'invalid_mandate' },
    })
  })
})
