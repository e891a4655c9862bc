// backends: either
// asserts: invariants

import { describe, expect } from 'vitest'
import { ap2Keys, ap2Texts } from '../../../src/features/ap2-wire.ts'
import type { ConsentRequest } from '../../../src/features/payments/consent/content.ts'
import type { Database } from '../../../src/infra/database/database.ts'
import type { Answer } from '../../support/agent-servers.ts'
import { type Shop, startShop } from '../../support/agent-shops.ts'
import { unique } from '../../support/backend.ts'
import { newCart, newCheckout, trustParty } from '../../support/consents.ts'
import { closing } from '../../support/integration-test.ts'
import { parties, shop as payee } from '../../support/mandate-parties.ts'
import { asProxy } from '../../support/passkeys.ts'
import { offerText, paymentRunTest } from '../../support/payment-runs.ts'
import { until } from '../../support/runs.ts'
import { calling } from '../../support/script.ts'
import { inGate } from '../../support/tier.ts'

/** Runs that pay by agents of other makers: servers on the SDK of either version of the protocol, on loopback. */

const steps = [
  ...['create_payment_mandate', 'request_user_authorization', 'send_payment_mandate'],
  ...['answer_challenge', 'check_receipt'],
]
const secret = 'sk-of-the-merchant-0123456789'

const test = paymentRunTest
  .extend(
    'shop10',
    { scope: 'file' },
    closing(() => startShop('1.0')),
  )
  .extend(
    'shop03',
    { scope: 'file' },
    closing(() => startShop('0.3')),
  )
  .extend('agents', { scope: 'file' }, async ({ server, paid, shop10, shop03 }) => {
    expect(paid.providerName).toBeTruthy()
    const admin = async (path: string, json: object): Promise<void> => {
      const { status, text } = await asProxy(server, 'POST', `/admin/v1${path}`, json)
      expect(status, text).toBe(201)
    }
    await admin('/providers', { name: unique('agents'), kind: 'agent', test: true })
    await trustParty(server, parties.processor, 'payment-processor', 'https://processor.example')
    await asProxy(server, 'PATCH', '/admin/v1/businesses/default', { secrets: { shop_key: secret } })
    const names = new Map<Shop, { agent: string; credentials_agent: string }>()
    for (const shop of [shop10, shop03]) {
      const name = { agent: unique('shop'), credentials_agent: unique('wallet') }
      await admin('/businesses/default/agents', {
        ...{
          name: name.agent,
          card_url: `${shop.merchant.url}/`,
          roles: ['merchant'],
          issuer: payee.website,
        },
        headers: { Authorization: 'Bearer {secrets.shop_key}' },
      })
      await admin('/businesses/default/agents', {
        ...{ name: name.credentials_agent, card_url: `${shop.provider.url}/` },
        roles: ['credentials-provider'],
      })
      names.set(shop, name)
    }
    return names
  })
  /** Submits a run that pays a signed cart which an agent sold, with an instrument of a credentials provider. */
  .extend('sell', ({ agents, buyer, model, runtime }) => {
    return async (
      shop: Shop,
      version: '0.1' | '0.2',
      changes: { offer?: ConsentRequest; sale?: object; method?: object } = {},
    ) => {
      const offer = changes.offer ?? (await (version === '0.1' ? newCart() : newSignedCheckout()))
      const id = offer.version === '0.1' ? JSON.parse(offer.cart).contents.id : readCheckoutId(offer.checkout)
      const { agent, credentials_agent } = agents.get(shop) ?? { agent: '', credentials_agent: '' }
      const sale = { agent, context_id: unique('ctx'), cart_id: id, risk_data: 'risk', ...changes.sale }
      const method = {
        ...{
          agent,
          cart_id: id,
          credentials_agent,
          alias: 'Visa ending 1111',
          user_email: 'ann@example.com',
        },
        ...(version === '0.1' && { token: { value: 'tok-1', url: shop.provider.url } }),
        ...changes.method,
      }
      model.reset()
      const replies = [
        calling(['gate_result', { fields: JSON.stringify({ ...sale, cart: offerText(offer) }) }]),
        calling(['gate_result', { fields: JSON.stringify(method) }]),
        calling(['create_payment_mandate', { cart_id: id }]),
        { text: 'Done.' },
      ]
      model.script({ planner: replies } as never)
      const { run } = await runtime
        .of('default')
        .submit({ prompt: 'Buy it', user_id: buyer.user, session_id: unique('s') })
      return { run: run.id, sale }
    }
  })
  /** Pays, with these codes of the person, and resolves with what became of it. */
  .extend('pay', ({ buyer, sell }) => {
    return async (shop: Shop, version: '0.1' | '0.2', codes: string[] = [], changes = {}) => {
      const { run, sale } = await sell(shop, version, changes)
      const { consent_request } = await buyer.untilConsent(run)
      const id = consent_request?.payment_id ?? ''
      const { reply, text: page } = await buyer.answerConsent(id, 'approve')
      expect(reply.status).toBe(204)
      for (const code of codes) await buyer.answer(await buyer.untilQuestion(run, 'one-time-code'), code)
      await buyer.end(run)
      const own = await buyer.actionsOf(run, ...steps)
      const text = String(own.at(-1)?.result.text)
      return { run, sale, id, own, text, page, trail: await buyer.trail(id) }
    }
  })

test.beforeEach(({ shop10, shop03 }) => {
  for (const shop of [shop10, shop03]) {
    shop.changes = {}
    for (const list of [shop.books, shop.shown, shop.merchant.received, shop.provider.received])
      list.length = 0
  }
})

/** The orders of a payment, in their order. */
const listOrders = async (executor: Database, id: string): Promise<string[]> => {
  const statement = 'SELECT kind FROM payment_orders WHERE payment_id = $1 ORDER BY created_at'
  return (await executor.query<{ kind: string }>(statement, [id])).rows.map(({ kind }) => kind)
}

/** What an agent says that failed. */
function toFailure(text: string): Answer {
  return { state: 'failed', says: [{ text }] }
}
const newSignedCheckout = () => newCheckout({ checkout: { totals: [{ type: 'total', amount: 19_900 }] } })
const readCheckoutId = (jwt: string): string =>
  JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString()).id

describe.for(['shop10', 'shop03'] as const)('a payment over A2A at %s', (name) => {
  test('of AP2 0.1 goes to the credentials provider and the merchant, asks for the code again, and is paid once', async ({
    shop10,
    shop03,
    paid,
    pay,
  }) => {
    const shop = { shop10, shop03 }[name]
    const { own, trail, id, sale, text, page } = await pay(shop, '0.1', ['000', '123'])
    // which card it is says the page, and no message to the merchant
    expect(page).toContain('<dt>With</dt><dd><bdi>Visa ending 1111</bdi></dd>')
    expect(JSON.stringify(shop.merchant.received)).not.toContain('Visa ending 1111')
    expect(own.map(({ node }) => node)).toEqual([...steps.slice(0, 4), 'answer_challenge', 'check_receipt'])
    expect(text).toContain('Paid 199.00 USD to Demo Merchant.')
    expect(own.at(-1)?.result).toMatchObject({ status: 'succeeded', receipt: 'verified' })
    expect([shop.books, shop.shown]).toEqual([[id], [id]])
    // one order takes it to both, and each code is another
    expect(await listOrders(paid.executor, id)).toEqual(['pay', 'answer', 'answer'])
    const [shown] = shop.provider.received
    expect(shown).toMatchObject({ text: ap2Texts.sendMandate, data: { risk_data: 'risk' } })
    const said = shop.merchant.received
    expect(said.map((one) => one.text)).toEqual([
      ...[ap2Texts.initiate, ap2Texts.initiateWithChallenge, ap2Texts.initiateWithChallenge],
    ])
    expect(said.map(({ contextId }) => contextId)).toEqual([
      sale.context_id,
      sale.context_id,
      sale.context_id,
    ])
    expect(new Set(said.map(({ taskId }) => taskId)).size).toBe(1)
    const [first] = said
    expect(first?.data).toMatchObject({
      ...{ risk_data: 'risk', shopping_agent_id: expect.any(String) },
      [ap2Keys.cartMandate]: { contents: { merchant_name: 'Demo Merchant' } },
      [ap2Keys.paymentMandate]: {
        payment_mandate_contents: {
          payment_response: { details: { token: { value: 'tok-1', url: shop.provider.url } } },
        },
        user_authorization: expect.stringContaining('~'),
      },
    })
    const headers = shop.merchant.requests.at(-1)?.headers
    expect(headers?.authorization).toBe(`Bearer ${secret}`)
    expect(JSON.stringify([trail, own])).not.toContain(secret)
    expect(JSON.stringify(own)).not.toMatch(/tok-1|"000"|"user_authorization"/)
  })

  test('of AP2 0.2 gets a token for the signed mandate, and the receipt of a trusted processor', async ({
    shop10,
    shop03,
    pay,
  }) => {
    const shop = { shop10, shop03 }[name]
    const { text, trail } = await pay(shop, '0.2', ['123'])
    expect(text).toContain('Paid 199.00 USD to Demo Merchant.')
    const [asked] = shop.provider.received
    expect(asked).toMatchObject({
      text: ap2Texts.getToken,
      data: { payment_method_alias: 'Visa ending 1111', user_email: 'ann@example.com' },
    })
    expect(asked?.data[ap2Keys.checkoutHash]).toBeTruthy()
    const [first] = shop.merchant.received
    expect(first).toMatchObject({
      text: ap2Texts.completeCheckout,
      data: { token: expect.stringMatching(/^token of/), [ap2Keys.checkoutMandateSdJwt]: expect.any(String) },
    })
    expect(shop.books).toHaveLength(1)
    expect(trail.operations[0].answer.receipts ?? trail.operations.at(-1).answer.receipts).toMatchObject([
      { kind: 'payment', problem: null },
    ])
  })
})

describe('a merchant that', () => {
  const oldReference = { reference: 'hash-of-another-mandate' }
  const unpaid = [
    [
      '0.1',
      'changes the amount',
      { receipt: { amount: { currency: 'USD', value: 198.99 } } },
      'another amount',
    ],
    ['0.2', "signs with another's key", { signing: parties.merchant.signing }, 'does not count'],
    [
      '0.1',
      'refuses what it sends a receipt of',
      { done: (answer: Answer): Answer => ({ ...answer, state: 'rejected' }) },
      'sent a receipt that it was made',
    ],
    ['0.1', 'fails with words of its own', { says: toFailure('Boom') }, 'not whether it took money'],
    [
      '0.1',
      'fails with words that look like an error of the protocol',
      { says: toFailure('Processor refused: terminal extension offline') },
      'not whether it took money',
    ],
    ['0.1', 'repeats an old receipt', { receipt: { payment_mandate_id: 'pay_old' } }, 'another payment'],
    [
      '0.1',
      'changes the currency',
      { receipt: { amount: { currency: 'EUR', value: 199 } } },
      'another amount',
    ],
    ['0.2', 'repeats an old receipt', { receipt: oldReference }, 'is not the hash of the closed mandate'],
    ['0.2', 'sends no receipt', { done: () => ({ state: 'completed' }) }, 'sent no receipt'],
  ] as const
  // `payments/mandates/verify/receipts.test.ts` has all that is wrong with a receipt
  test.for(inGate(4, unpaid))(
    'in AP2 %s %s is not paid: it is unknown, in plain words',
    async ([version, , changes, words], { shop10, pay }) => {
      shop10.changes = { open: true, ...changes }
      const { text, trail } = await pay(shop10, version)
      expect(trail.payment.status).toBe('unknown')
      expect(text).toContain('Do not pay again')
      expect(text).toContain(words)
      expect(shop10.merchant.received).toHaveLength(1)
    },
  )

  test('sends the words of success alone, in AP2 0.1, is paid', async ({ shop10, pay }) => {
    const done = (answer: Answer) => ({ state: answer.state, says: answer.says ?? [] })
    shop10.changes = { open: true, done }
    expect((await pay(shop10, '0.1')).text).toContain('Paid 199.00 USD')
  })

  // all that it may say: test/features/ap2-failures.test.ts
  test('says "CartMandate not found for cart_id: c" declines, and the person reads what that means', async ({
    shop10,
    pay,
  }) => {
    const says = 'CartMandate not found for cart_id: c'
    shop10.changes = { says: toFailure(says) }
    const { text, trail } = await pay(shop10, '0.1')
    expect(trail.payment.status).toBe('declined')
    expect(text).toContain('No money was taken')
    expect(text).toContain('no longer has the cart')
    expect(text).not.toContain(says)
    expect(shop10.books).toEqual([])
  })

  test('refused a payment with a receipt and words of AP2 has the person read what these mean', async ({
    shop10,
    pay,
  }) => {
    const receipt = { payment_status: { failure_message: 'Challenge response incorrect.' } }
    const refuse =
      (says: string) =>
      (answer: Answer): Answer => ({ ...answer, state: 'rejected', says: [{ text: says }] })
    for (const [says, meaning] of [
      [ap2Texts.wrongChallenge, 'refused it: the code was wrong too often'],
      ['An error occurred: Invalid token', 'refused it: its payment token is not valid any more'],
      ['Something else', 'refused it: payment_declined'],
    ] as const) {
      shop10.changes = { open: true, receipt, done: refuse(says) }
      const { text, trail } = await pay(shop10, '0.1')
      expect([trail.payment.status, text]).toEqual(['declined', expect.stringContaining(meaning)])
      expect(text).toContain('No money was taken')
      expect(text).not.toContain(says)
    }
  })

  test('did not sign the cart gets no message, whatever a result names', async ({
    shop10,
    shop03,
    agents,
    pay,
    server,
  }) => {
    const other = unique('thief')
    const card = { name: other, card_url: `${shop03.merchant.url}/`, roles: ['merchant'] }
    expect((await asProxy(server, 'POST', '/admin/v1/businesses/default/agents', card)).status).toBe(201)
    for (const agent of [other, agents.get(shop10)?.credentials_agent]) {
      const { text, trail } = await pay(shop10, '0.1', [], { sale: { agent } })
      expect(trail.payment.status).toBe('declined')
      expect(text).toContain('no money was taken')
    }
    expect([shop10.merchant.received, shop03.merchant.received]).toEqual([[], []])
  })

  test('loses its answer is looked up in A2A 1.0, and unknown in 0.3: neither gets a second message', async ({
    shop10,
    shop03,
    pay,
  }) => {
    for (const shop of [shop10, shop03]) Object.assign(shop, { changes: { open: true } }).merchant.loses = 1
    const found = await pay(shop10, '0.1')
    expect([found.trail.payment.status, shop10.books]).toEqual(['succeeded', [found.id]])
    const lost = await pay(shop03, '0.1')
    expect([lost.trail.payment.status, shop03.books]).toEqual(['unknown', [lost.id]])
    expect(lost.text).toContain('Do not pay again')
    expect([shop10, shop03].map(({ merchant }) => merchant.received.length)).toEqual([1, 1])
  })

  test('answers late and then a second time is heard once: what it refused stays refused', async ({
    shop10,
    sell,
    buyer,
  }) => {
    shop10.changes = { says: { state: 'working' } }
    const { run } = await sell(shop10, '0.1')
    const { consent_request } = await buyer.untilConsent(run)
    const id = consent_request?.payment_id ?? ''
    await buyer.answerConsent(id, 'approve')
    await until('the merchant has the payment', async () => shop10.merchant.received.length > 0 || null)
    const taskId = shop10.merchant.received[0]?.taskId ?? ''
    await shop10.merchant.end(taskId, toFailure('Missing risk_data.'))
    await buyer.end(run)
    await shop10.merchant.end(taskId, { state: 'completed', says: [{ text: ap2Texts.success }] })
    const [own] = (await buyer.actionsOf(run, ...steps)).slice(-1)
    expect(String(own?.result.text)).toContain('No money was taken')
    expect((await buyer.trail(id)).payment.status).toBe('declined')
    expect(shop10.merchant.received).toHaveLength(1)
  })

  test('signs with the placeholder of the demo gets no message outside of the demo profile', async ({
    shop10,
    sell,
    buyer,
  }) => {
    const offer = await newCart()
    const signed = JSON.parse(offer.version === '0.1' ? offer.cart : '')
    const cart = JSON.stringify({
      ...signed,
      merchant_authorization: 'eyJhbGciOiJSUzI1NiIsImtpZIwMjQwOTA...',
    })
    const { run } = await sell(shop10, '0.1', { offer: { ...offer, cart } as ConsentRequest })
    await buyer.end(run)
    const [own] = (await buyer.actionsOf(run, ...steps)).slice(-1)
    expect(own?.result).toMatchObject({ is_error: true, text: expect.stringMatching(/sign/) })
    expect([shop10.merchant.received, shop10.provider.received, shop10.books]).toEqual([[], [], []])
  })

  test('loses the answer to a code has the task looked up, and takes the money once', async ({
    shop10,
    shop03,
    pay,
  }) => {
    for (const shop of [shop10, shop03]) {
      const { answer } = shop.merchant
      shop.merchant.answer = (received) => {
        if (received.data[ap2Keys.challengeResponse] === '123') shop.merchant.loses = 1
        return answer(received)
      }
      const { trail, id } = await pay(shop, '0.1', ['123'])
      shop.merchant.answer = answer
      expect([trail.payment.status, shop.books]).toEqual(['succeeded', [id]])
    }
  })
})

describe('a credentials provider that', () => {
  test('is not the one of the token that the person signed gets no mandate', async ({ shop10, pay }) => {
    const token = { value: 'tok-1', url: 'http://127.0.0.1:1/' }
    const { own, text, trail } = await pay(shop10, '0.1', [], { method: { token } })
    expect(own.at(-1)).toMatchObject({ node: 'check_receipt', result: { is_error: true } })
    expect(text).toContain('of another credentials provider. No money was taken')
    expect(trail.payment.status).toBe('declined')
    expect([shop10.shown, shop10.merchant.received, shop10.books]).toEqual([[], [], []])
  })

  test('refuses the mandate ends the payment before the merchant hears of it', async ({ shop10, pay }) => {
    const { answer } = shop10.provider
    shop10.provider.answer = () => toFailure('An error occurred: Invalid token')
    const { text, trail } = await pay(shop10, '0.1')
    shop10.provider.answer = answer
    expect(text).toContain('token is not valid any more')
    expect(text).toContain('No money was taken')
    expect(trail.payment).toMatchObject({ status: 'declined', receipt: expect.any(String) })
    expect(shop10.merchant.received).toEqual([])
  })

  test('loses its answer is shown the mandates again by the same message, and the merchant is paid once', async ({
    shop10,
    pay,
  }) => {
    for (const version of ['0.1', '0.2'] as const) {
      shop10.changes = { open: true }
      shop10.provider.requests.length = 0
      shop10.provider.loses = 1
      const { trail } = await pay(shop10, version)
      expect(trail.payment.status).toBe('succeeded')
      const ids = shop10.provider.requests.flatMap(({ messageId }) => messageId ?? [])
      expect(ids).toEqual([ids[0], ids[0]])
    }
    expect([shop10.merchant.received.length, shop10.books.length]).toEqual([2, 2])
  })

  test('never answers is asked five times, and then the payment is declined before the merchant hears of it', async ({
    shop10,
    pay,
  }) => {
    shop10.provider.requests.length = 0
    shop10.provider.loses = 100
    const { text, trail } = await pay(shop10, '0.1')
    shop10.provider.loses = 0
    expect(text).toContain('the credentials provider does not answer')
    expect(trail.payment.status).toBe('declined')
    expect(shop10.provider.requests.filter(({ messageId }) => messageId !== null)).toHaveLength(5)
    expect([shop10.merchant.received, shop10.books]).toEqual([[], []])
  })
})

test.for(['0.1', '0.2'] as const)(
  'what agents wrote that the database cannot read keeps no payment of AP2 %s open',
  async (version, { pay, shop10 }) => {
    const odd = 'a\0b\ud800'
    const ids = { network_confirmation_id: odd, psp_confirmation_id: odd }
    const receipt = version === '0.1' ? { payment_status: { merchant_confirmation_id: odd, ...ids } } : ids
    shop10.changes = { open: true, receipt }
    const method = version === '0.1' ? { alias: odd } : {}
    const { trail, text } = await pay(shop10, version, [], { sale: { risk_data: odd }, method })
    expect([trail.payment.status, shop10.books.length], text).toEqual(['succeeded', 1])
    expect(shop10.merchant.received[0]?.data.risk_data).toBe(odd)
  },
)
