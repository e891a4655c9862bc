// backends: either
// asserts: invariants

import { describe, expect } from 'vitest'
import { ap2Keys, ap2Texts } from '../../../src/features/ap2-wire.ts'
import { createNonce, orderPayment } from '../../../src/features/payments/ledger/orders.ts'
import { startShop } from '../../support/agent-shops.ts'
import { unique } from '../../support/backend.ts'
import { trustParty } from '../../support/consents.ts'
import type { FakeReply } from '../../support/fake-model/fake-model.ts'
import { closing } from '../../support/integration-test.ts'
import { createParty, parties, shop as payee } from '../../support/mandate-parties.ts'
import { asProxy } from '../../support/passkeys.ts'
import { paymentRunTest } from '../../support/payment-runs.ts'
import { until } from '../../support/runs.ts'
import { calling, say } from '../../support/script.ts'
import { answerAsMerchantV2, answerAsWallet, products, signCheckout } from '../../support/shops.ts'

/** Runs that buy over A2A while the user is away: at a merchant and a wallet of other makers, by the paying executor. */

const email = 'bugsbunny@gmail.com'
const alias = 'American Express ending in 4444'
const [item, title, price] = products[2] ?? ['', '', 0]
const total = Math.round(price * 100) + 350
const terms = (changes: object = {}) => ({
  ...{ merchants: [payee], items: [{ any_of: [{ id: item, title }], quantity: 1 }], currency: 'USD' },
  ...{ max_amount: '650', budget: '1000', recurrence: { frequency: 'ON_DEMAND' }, method: alias },
  until: new Date(Date.now() + 86_400_000).toISOString(),
  wallet: { agent: 'wallet', user_email: email },
  ...changes,
})
const find = calling(['find_item', {}])
const address = calling(['get_shipping_address', { email, agent: 'wallet' }])
const buying = [find, address, calling(['update_cart', {}]), calling(['use_open_mandate', {}])]
const steps = ['find_item', 'get_shipping_address', 'update_cart', 'use_open_mandate', 'pay_by_open_mandate']

const test = paymentRunTest
  .extend(
    'shop',
    { scope: 'file' },
    closing(() => startShop('1.0')),
  )
  .extend('sells', { scope: 'file' }, async ({ server, paid, shop }) => {
    expect(paid.providerName).toBeTruthy()
    const add = async (path: string, json: object): Promise<void> => {
      const { status, text } = await asProxy(server, 'POST', `/admin/v1${path}`, json)
      expect(status, text).toBe(201)
    }
    await add('/providers', { name: unique('agents'), kind: 'agent', test: true })
    await trustParty(server, parties.processor, 'payment-processor', 'https://processor.example')
    const agents = '/businesses/default/agents'
    const merchant = { name: 'shop', card_url: `${shop.merchant.url}/`, issuer: payee.website }
    await add(agents, { ...merchant, roles: ['merchant'] })
    await add(agents, { name: 'wallet', card_url: `${shop.provider.url}/`, roles: ['credentials-provider'] })
    const { answer: take } = shop.merchant
    const { answer: giveToken } = shop.provider
    shop.provider.answer = (received) =>
      ap2Keys.methodAlias in received.data ? giveToken(received) : answerAsWallet(received)
    shop.changes = { open: true }
    /** From now on the merchant sells by this checkout, and says that it is for so much. */
    return (jwt: string, asked = total) => {
      const sell = answerAsMerchantV2(jwt, asked)
      shop.merchant.answer = (received) =>
        ap2Keys.paymentMandateSdJwt in received.data ? take(received) : sell(received)
      for (const list of [shop.merchant.received, shop.provider.received, shop.books]) list.length = 0
    }
  })
  .extend('run', ({ buyer, model, runtime, sells }) => {
    expect(sells).toBeDefined()
    return async (...rounds: FakeReply[]) => {
      model.reset()
      say(model, { planner: [...rounds, { text: 'Done.' }] })
      const request = { prompt: 'Buy the item of my open mandate', user_id: buyer.user }
      return (await runtime.of('default').submit({ ...request, session_id: unique('s') })).run.id
    }
  })
  /** The id of an open mandate that the user has signed, and what its page said. */
  .extend('allow', ({ buyer, run }) => async (changes: object = {}) => {
    const id = await run(calling(['propose_open_mandate', terms(changes)]))
    const mandateId = (await buyer.untilConsent(id)).consent_request?.payment_id ?? ''
    const { text } = await buyer.answerConsent(mandateId, 'approve')
    await buyer.end(id)
    return { mandateId, text }
  })

describe('a run whose user is away', () => {
  test('buys at a merchant within the limits without asking, and sends neither limits nor an intent', async ({
    allow,
    buyer,
    run,
    sells,
    shop,
  }) => {
    sells(await signCheckout(item, { id: unique('order') }))
    const { text } = await allow()
    expect(text).toContain(`${email} at wallet`)
    const first = await run(...buying)
    expect(await buyer.end(first)).toMatchObject({ status: 'completed', input_request: null })
    const own = await buyer.actionsOf(first, ...steps, 'check_receipt')
    expect(own.map(({ node }) => node)).toEqual([...steps, 'check_receipt'])
    expect(own[2]?.result.text).toMatch(/Next: use_open_mandate mnd_/)
    expect(own.at(-1)?.result).toMatchObject({ status: 'succeeded', receipt: 'verified' })
    const [search, checkout, payment] = shop.merchant.received
    expect(search).toMatchObject({ text: ap2Texts.searchCatalog, data: { [ap2Keys.catalogSearch]: title } })
    // without the ids of task and context: random digits could match
    const sent = JSON.stringify([search, checkout].map((one) => [one?.text, one?.data]))
    expect(sent).not.toMatch(/IntentMandate|650|1000|bugsbunny/)
    expect(String(payment?.data[ap2Keys.checkoutMandateSdJwt]).split('~~')).toHaveLength(2)
    expect(JSON.stringify(payment)).not.toContain(email)
    expect(shop.provider.received.map(({ data }) => data)).toMatchObject([
      { user_email: email },
      { user_email: email, payment_method_alias: alias },
    ])
    expect(shop.books).toHaveLength(1)
  })

  test('brings the user back for what is beyond the limits, and pays it by the signed instrument once approved', async ({
    allow,
    buyer,
    run,
    sells,
    shop,
  }) => {
    sells(await signCheckout(item, { id: unique('order') }))
    await allow({ max_amount: '603.48' })
    const second = await run(...buying)
    const { consent_request } = await buyer.untilConsent(second)
    // nothing that the limits do not allow was shown to anyone
    expect([shop.books, shop.provider.received.length]).toEqual([[], 1])
    await buyer.answerConsent(consent_request?.payment_id ?? '', 'approve')
    await buyer.end(second)
    const asked = await buyer.actionsOf(second, 'pay_by_open_mandate', 'check_receipt')
    expect(asked[0]?.result.text).toMatch(/603\.49 USD is more than 603\.48 USD.*The user is asked/s)
    expect(asked[1]?.result).toMatchObject({
      ...{ status: 'succeeded', receipt: 'verified', payment_id: consent_request?.payment_id },
    })
    expect(shop.books).toHaveLength(1)
    expect(shop.books[0]).not.toContain('~~')
    expect(shop.provider.received[1]?.data).toMatchObject({ user_email: email, payment_method_alias: alias })
  })

  test('pays no merchant that changes item, price, currency or key; what the limits do not allow is refused by the user', async ({
    allow,
    buyer,
    run,
    sells,
    shop,
  }) => {
    sells('')
    await allow()
    const line = (id: string) => ({
      line_items: [{ id: 'line_1', item: { id, title, price: 1 }, quantity: 1 }],
    })
    const sign = (changes: object) => signCheckout(item, { id: unique('order'), ...changes })
    const priced = (amount: number) => sign({ totals: [{ type: 'total', amount }] })
    const forged = createParty('merchant-1').signing
    const cases: [jwt: string, asked: number, words: RegExp][] = [
      [await priced(total + 10_000), total + 10_000, /asks \$703\.49, where the offer was/],
      [await sign({ currency: 'EUR' }), total, /another total/],
      [await sign(line('cart_2')), total, /The payment was refused/],
      [await sign({ merchant: { id: 'evil', name: 'Evil' } }), total, /payee/],
      [await signCheckout(item, { id: unique('order') }, forged), total, /is declined/],
    ]
    for (const [jwt, asked, words] of cases) {
      sells(jwt, asked)
      const id = await run(...buying)
      const { consent_request } = await buyer.untilConsent(id)
      if (consent_request) await buyer.answerConsent(consent_request.payment_id, 'refuse')
      await buyer.end(id)
      const done = await buyer.actionsOf(id, ...steps, 'request_user_authorization', 'check_receipt')
      expect(done.findLast(({ node }) => node !== 'use_open_mandate')?.result).toMatchObject({
        is_error: true,
        text: expect.stringMatching(words),
      })
      expect(shop.books).toEqual([])
    }
  })

  test('finds only what the user signed, and ships to no account but theirs', async ({
    allow,
    buyer,
    run,
    sells,
    shop,
  }) => {
    sells('')
    await allow()
    shop.merchant.answer = () => ({ state: 'completed' })
    const id = await run(
      calling(['find_item', { item: 'yacht' }]),
      calling(['find_item', { mandate_id: 'mnd_none' }]),
      calling(['find_item', { agent: 'wallet' }]),
      find,
      calling(['get_shipping_address', { email: 'daffyduck@gmail.com', agent: 'wallet' }]),
    )
    await buyer.end(id)
    const said = (await buyer.actionsOf(id, ...steps)).map(({ result }) => result)
    const words = [
      ...[/has no item "yacht".*name one of these as item: cart_3/s, /which open mandate is meant.*mnd_/s],
      ...[/"wallet" is no merchant/, /offers no "Professional-grade/, /the user has not said this email/],
    ]
    expect(said).toMatchObject(words.map((text) => ({ is_error: true, text: expect.stringMatching(text) })))
    expect(shop.provider.received).toEqual([])
  })

  test('is proposed no limits by a wallet that could not be used', async ({ buyer, run, paid }) => {
    const bad: [object, RegExp][] = [
      [{ method: null }, /method is missing/],
      [{ wallet: { agent: 'shop', user_email: email } }, /"shop" is no credentials-provider/],
      [{ provider: paid.providerName }, /by whom to pay/],
    ]
    const id = await run(...bad.map(([changes]) => calling(['propose_open_mandate', terms(changes)])))
    expect(await buyer.end(id)).toMatchObject({ consent_request: null })
    const said = await buyer.actionsOf(id, 'propose_open_mandate')
    expect(said.map(({ result }) => result)).toMatchObject(
      bad.map(([, text]) => ({ is_error: true, text: expect.stringMatching(text) })),
    )
  })
})

test('the executor charges the account that the user signed, whatever a worker names', async ({
  allow,
  elsewhere,
  sells,
  shop,
}) => {
  const checkout = await signCheckout(item, { id: unique('order') })
  sells(checkout)
  const { mandateId: open_mandate_id } = await allow()
  const route = {
    ...{ agent: 'shop', context_id: null, credentials_context_id: null, risk_data: 'risk' },
    ...{ credentials_agent: 'evil', alias: 'Visa', user_email: 'daffyduck@gmail.com' },
  }
  await elsewhere.asBusiness('default', async (sql) => {
    const nonce = await createNonce(sql, 'default')
    const request = { version: '0.2-open' as const, open_mandate_id, checkout, nonce, route }
    return orderPayment(sql, { tenant: 'default', run_id: unique('run') }, { plan_seq: 1, index: 0 }, request)
  })
  await until('the merchant is paid', async () => shop.books.length > 0)
  expect(shop.provider.received.map(({ data }) => data)).toMatchObject([
    { user_email: email, payment_method_alias: alias },
  ])
})
