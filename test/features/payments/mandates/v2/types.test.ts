import { describe, expect, test } from 'vitest'
import {
  checkoutReceiptSchema,
  openPaymentMandateSchema,
  paymentConstraintSchemas,
  paymentMandateSchema,
  paymentReceiptSchema,
} from '../../../../../src/features/payments/mandates/v2/types.ts'
import { maxMandateBytes, parseBy, readBy } from '../../../../../src/features/payments/mandates/violations.ts'

const payment = {
  vct: 'mandate.payment.1',
  transaction_id: 'NivWhuqf',
  payee: { id: 'merchant_1', name: 'Demo Merchant' },
  payment_amount: { amount: 19900, currency: 'USD' },
  payment_instrument: { id: 'stub', type: 'card' },
}

describe('a payment mandate of AP2 0.2', () => {
  test('is read, and its unknown members stay', () => {
    expect(parseBy(paymentMandateSchema, { ...payment, note: 'x' })).toEqual({
      ok: true,
      value: { ...payment, note: 'x' },
    })
  })

  test('is refused with every field that is wrong', () => {
    const { payee: _, ...rest } = payment
    const changed = { ...rest, vct: 'mandate.payment.2', payment_amount: { amount: -1, currency: 'USD' } }
    const refused = parseBy(paymentMandateSchema, changed)
    expect(refused).toMatchObject({
      ok: false,
      violations: [
        { code: 'invalid_field', error: 'invalid_mandate', field: 'vct' },
        { code: 'missing_field', field: 'payee', message: 'payee is missing: add it' },
        { code: 'negative_amount', field: 'payment_amount.amount' },
      ],
    })
  })

  test('of more than 256 KB is refused before it is parsed', () => {
    const raw = JSON.stringify({ ...payment, note: 'x'.repeat(maxMandateBytes) })
    expect(readBy(paymentMandateSchema, raw)).toMatchObject({
      ok: false,
      violations: [{ code: 'too_large' }],
    })
    expect(readBy(paymentMandateSchema, '{"vct":')).toMatchObject({
      ok: false,
      violations: [{ code: 'malformed_json' }],
    })
  })
})

describe('an open payment mandate of AP2 0.2', () => {
  test('has a budget in major and an amount range in minor units (row 18)', () => {
    const budget = paymentConstraintSchemas['payment.budget']
    const raw = (max: string, currency: string) =>
      `{"type":"payment.budget","max":${max},"currency":"${currency}"}`
    expect(readBy(budget, raw('1000.10', 'USD'))).toMatchObject({ value: { max: 100010 } })
    expect(readBy(budget, raw('1000', 'JPY'))).toMatchObject({ value: { max: 1000 } })
    expect(readBy(budget, raw('1000.5', 'JPY'))).toMatchObject({
      violations: [{ code: 'too_many_decimals', field: 'max' }],
    })
    const range = paymentConstraintSchemas['payment.amount_range']
    expect(parseBy(range, { currency: 'USD', max: 20000 })).toMatchObject({ value: { max: 20000, min: 0 } })
    expect(parseBy(range, { currency: 'usd', max: 1.5 })).toMatchObject({
      violations: [{ code: 'unknown_currency', field: 'currency' }],
    })
  })

  test('is refused at the first hundred errors of a list', () => {
    const raw = `{"allowed":[${Array.from({ length: 49_000 }, () => '0').join(',')}]}`
    const read = readBy(paymentConstraintSchemas['payment.allowed_payees'], raw)
    expect(read.ok ? 0 : read.violations.length).toBe(100)
    const refused = paymentConstraintSchemas['payment.allowed_payees'].safeParse(JSON.parse(raw))
    expect(refused.error?.issues.length).toBe(101)
  })

  test('takes the parts of the closed one as presets', () => {
    const cnf = { jwk: { kty: 'EC', crv: 'P-256', x: 'a', y: 'b' } }
    const { transaction_id: _, ...presets } = payment
    const open = {
      ...presets,
      vct: 'mandate.payment.open.1',
      constraints: [{ type: 'com.example.new' }],
      cnf,
    }
    expect(parseBy(openPaymentMandateSchema, open)).toEqual({ ok: true, value: open })
    expect(parseBy(openPaymentMandateSchema, { vct: open.vct, constraints: [], cnf }).ok).toBe(true)
  })
})

describe('a receipt of AP2 0.2', () => {
  const fields = { iss: 'merchant', iat: 1, reference: 'r' }

  test('has its outcome as status or as result (row 16)', () => {
    const value = { status: 'Success', ...fields, order_id: 'o' }
    expect(parseBy(checkoutReceiptSchema, value)).toEqual({ ok: true, value })
    expect(parseBy(checkoutReceiptSchema, { result: 'success', ...fields, order_id: 'o' })).toEqual({
      ok: true,
      value,
    })
    expect(
      parseBy(paymentReceiptSchema, { result: 'error', ...fields, payment_id: 'p', error: 'e' }),
    ).toEqual({
      ok: true,
      value: { status: 'Error', ...fields, payment_id: 'p', error: 'e' },
    })
  })

  test('of a success needs its ids', () => {
    expect(parseBy(paymentReceiptSchema, { status: 'Success', ...fields, payment_id: 'p' })).toMatchObject({
      violations: [{ field: 'psp_confirmation_id' }, { field: 'network_confirmation_id' }],
    })
    expect(parseBy(checkoutReceiptSchema, { ...fields, status: 'Maybe' })).toMatchObject({
      violations: [{ field: 'status' }],
    })
  })
})
