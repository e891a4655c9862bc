// backends: either

import { describe, expect } from 'vitest'
import { readOffer } from '../../../src/features/payments/consent/offers.ts'
import {
  createNonce,
  orderPayment,
  type PaymentRequest,
} from '../../../src/features/payments/ledger/orders.ts'
import { readTrail } from '../../../src/features/payments/ledger/payment-queries.ts'
import { parseJws } from '../../../src/features/payments/mandates/tokens/jws.ts'
import { newPaymentId } from '../../../src/features/payments/ports/ids.ts'
import { createRunPayments } from '../../../src/features/payments/runs/run-payments.ts'
import { createPaymentMandate } from '../../../src/features/payments/runs/signed-cart.ts'
import { unique } from '../../support/backend.ts'
import { createTestProvider } from '../../support/payment-provider.ts'
import { drain, paymentTest } from '../../support/payments.ts'
import { addBuyer, buyV1, createExecutorServices } from '../../support/purchases.ts'

/** As in the samples of AP2 0.1. */
const merchantPlaceholder = 'eyJhbGciOiJSUzI1NiIsImtpZIwMjQwOTA...'
const userCheck = 'signature of the user over cart and payment'
const merchantCheck = 'signature of the merchant over the cart'

const test = paymentTest
  .extend('buyer', { scope: 'file' }, async ({ database }) => {
    const tenant = unique('buyer')
    await addBuyer(database, tenant)
    return tenant
  })
  .extend('shop', async ({ database, elsewhere, executor, buyer }) => {
    const card = createTestProvider()
    const services = createExecutorServices(executor, database, card.provider)
    return {
      card,
      /** A purchase with placeholders; the real signatures stay where it does not say so. */
      async buy(placeholders: ('merchant' | 'user')[], change = (text: string): string => text) {
        const nonce = await database.asBusiness(buyer, (sql) => createNonce(sql, buyer))
        const { request } = await buyV1({ nonce })
        const cart = JSON.parse(request.cart)
        const payment = JSON.parse(request.payment)
        if (placeholders.includes('merchant')) cart.merchant_authorization = merchantPlaceholder
        if (placeholders.includes('user'))
          payment.user_authorization = change(
            `fake_cart_mandate_hash_${cart.contents.id}_fake_payment_mandate_hash_${payment.payment_mandate_contents.payment_mandate_id}`,
          )
        return { ...request, cart: JSON.stringify(cart), payment: JSON.stringify(payment) }
      },
      /** Orders a payment, carries it out, and resolves with all that is known of it. */
      async pay(request: PaymentRequest) {
        const run = { tenant: buyer, run_id: unique('run') }
        const id = await database.asBusiness(buyer, (sql) =>
          orderPayment(sql, run, { plan_seq: 1, index: 0 }, request),
        )
        await drain(services)
        const trail = await database.asBusiness(buyer, (sql) => readTrail(sql, buyer, id))
        if (!trail) throw new Error('there is no such payment')
        return trail
      },
      async addProvider(fields: { test: boolean; demo: boolean }, tenants: string[] | null = null) {
        const id = unique('prv')
        await elsewhere.query(
          `INSERT INTO payment_providers (provider_id, name, kind, base_url, allow_private, tenants, is_test, is_demo, window_ms,
             timeout_ms, sealed_api_key, api_key_end, sealed_webhook_secret, webhook_secret_end)
           SELECT $1, $1, 'card', 'https://pay.example', false, CASE WHEN $2::json::text <> 'null' THEN ARRAY(SELECT json_array_elements_text($2::json)) END,
             $3, $4, 300000, 1000, 'sealed', 'aled', 'sealed', 'aled'`,
          [id, JSON.stringify(tenants), fields.test, fields.demo],
        )
        return {
          end: () =>
            elsewhere.query(
              'UPDATE payment_providers SET ended_at = clock_timestamp() WHERE provider_id = $1',
              [id],
            ),
        }
      },
    }
  })

describe('the placeholders of the samples of AP2 0.1', () => {
  test('pay nothing unless a demo provider of the business says so', async ({ shop }) => {
    const other = await shop.addProvider({ test: true, demo: true }, [unique('other')])
    const plain = await shop.addProvider({ test: true, demo: false })
    for (const who of ['merchant', 'user'] as const) {
      const { payment } = await shop.pay(await shop.buy([who]))
      expect([payment.status, payment.outcome?.code]).toEqual(['declined', 'invalid_credential'])
    }
    expect(shop.card.books.size).toBe(0)
    await Promise.all([other.end(), plain.end()])
  })

  test('pay where one does, and receipt and trail name what was not checked', async ({ shop }) => {
    const demo = await shop.addProvider({ test: true, demo: true })
    const both = await shop.pay(await shop.buy(['merchant', 'user']))
    const skipped_checks = [userCheck, 'audience and nonce', merchantCheck, 'merchant is the payee']
    expect(both.payment).toMatchObject({
      ...{ status: 'succeeded', demo: true, skipped_checks },
      payee: { id: 'demo:Demo Merchant', name: 'Demo Merchant' },
    })
    expect(parseJws(both.payment.receipt ?? '', 'receipt').payload).toMatchObject({
      demo: true,
      skipped_checks,
    })
    const [reserved] = both.events
    expect(reserved?.detail).toMatchObject({ demo: true, skipped_checks })
    expect(reserved?.detail.checks).toEqual([{ check: 'not expired', value: expect.any(String) }])
    const unsignedCart = await shop.pay(await shop.buy(['user']))
    expect(unsignedCart.payment).toMatchObject({
      status: 'succeeded',
      skipped_checks: [userCheck, 'audience and nonce'],
      payee: { id: 'https://demo-merchant.example' },
    })
    // real signatures are checked as ever, and leave no trace of the profile
    const real = await shop.pay(await shop.buy([]))
    expect(real.payment).toMatchObject({ status: 'succeeded', demo: false, skipped_checks: [] })
    expect(parseJws(real.payment.receipt ?? '', 'receipt').payload).not.toHaveProperty('demo')
    await demo.end()
  })

  test('pay once, and only for the cart and payment that they name', async ({ shop }) => {
    const demo = await shop.addProvider({ test: true, demo: true })
    const request = await shop.buy(['merchant', 'user'])
    expect((await shop.pay(request)).payment.status).toBe('succeeded')
    const charged = shop.card.books.size
    expect((await shop.pay(request)).payment).toMatchObject({
      status: 'declined',
      outcome: { message: expect.stringContaining('was used before') },
    })
    const foreign = await shop.buy(['merchant', 'user'], (text) => text.replace('cart of', 'cart of another'))
    const { payment } = await shop.pay(foreign)
    expect([payment.status, payment.outcome?.code]).toEqual(['declined', 'invalid_credential'])
    expect(shop.card.books.size).toBe(charged)
    await demo.end()
  })

  test('pay nothing once a provider is active that moves money', async ({ shop }) => {
    const demo = await shop.addProvider({ test: true, demo: true })
    const real = await shop.addProvider({ test: false, demo: false })
    expect((await shop.pay(await shop.buy(['merchant', 'user']))).payment.status).toBe('declined')
    await Promise.all([real.end(), demo.end()])
  })

  test('are shown to a person for approval in the demo profile alone', async ({ shop, database, buyer }) => {
    const cart = JSON.parse((await shop.buy(['merchant'])).cart)
    // for the clock of the database
    cart.contents.cart_expiry = '2099-01-01T00:00:00Z'
    const draft = () =>
      database.asBusiness(buyer, (sql) =>
        createRunPayments(
          sql,
          { tenant: buyer, run_id: unique('run'), user_id: 'ann' },
          'https://mason.example',
          () => {},
          { view: {} },
        ).draft(
          { version: '0.1', id: 'cart', text: JSON.stringify(cart) },
          { payment_id: newPaymentId(), method: null },
        ),
      )
    await expect(draft()).rejects.toMatchObject({ code: 'invalid_request' })
    const demo = await shop.addProvider({ test: true, demo: true })
    expect(await draft()).toMatchObject({ payee: 'demo:Demo Merchant' })
    const request = createPaymentMandate(
      { version: '0.1', id: 'cart', text: JSON.stringify(cart) },
      { payment_id: newPaymentId(), method: null },
    )
    const facts = await database.asBusiness(buyer, (sql) =>
      readOffer(sql, buyer, request, 'https://mason.example'),
    )
    expect(facts).toMatchObject({ demo: true, payee: 'Demo Merchant' })
    await demo.end()
  })
})
