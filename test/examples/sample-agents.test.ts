import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { processText } from '../../examples/ap2/messages.ts'
import type { AgentName } from '../../examples/buy-demo/agents.ts'
import { ap2Keys as keys, ap2Texts as texts } from '../../src/features/ap2-wire.ts'
import demo from '../features/payments/demo-messages.json' with { type: 'json' }
import { createParty } from '../support/mandate-parties.ts'
import {
  openShopper,
  read,
  signCheckout,
  signPayment,
  signWhileAway,
  startSampleAgents,
  type Version,
} from '../support/sample-agents.ts'

/** The agents of examples/ap2: programs of their own, called by clients of other makers. */

type Paid = { state: string; amount: number; mandate: string }
const flows = (['1.0', '0.3'] as const).flatMap((a2a) =>
  (['0.1', '0.2'] as const).map((ap2) => ({ a2a, ap2 })),
)

test.each(flows)('a shopper of A2A $a2a buys by AP2 $ap2, once', async ({ a2a, ap2 }) => {
  const agents = await startSampleAgents()
  const shopper = await openShopper(agents, a2a)
  const purchase = await shopper.sign(ap2, await shopper.choose(ap2))
  const asked = await shopper.pay(purchase)
  expect([asked.state, asked.says]).toEqual(['input-required', texts.challenge])
  expect(read(asked, keys.challenge)).toMatchObject({ type: 'otp' })
  const wrong = await shopper.answer(purchase, asked.id, '321')
  expect([wrong.state, wrong.says, wrong.id]).toEqual(['input-required', texts.wrongChallenge, asked.id])
  const done = await shopper.answer(purchase, asked.id, '123')
  expect([done.state, done.says, done.id]).toEqual(['completed', texts.success, asked.id])
  expect(read(done, keys.paymentReceipt)).toBeDefined()
  expect(read(done, keys.checkoutReceipt) !== undefined).toBe(ap2 === '0.2')
  // the same mandate under a new message gets the stored receipt
  const again = await shopper.pay(purchase)
  expect([again.state, read(again, keys.paymentReceipt)]).toEqual([
    'completed',
    read(done, keys.paymentReceipt),
  ])
  const [payment, ...more] = agents.processor.list<Paid>('payments')
  expect([payment, more]).toMatchObject([{ state: 'paid', amount: 8999 + 200 + 22 }, []])
  expect(agents.merchant.list('orders')).toMatchObject([{ state: 'paid', mandate: payment?.mandate }])
  expect(agents.wallet.list('receipts')).toMatchObject([{ mandate: payment?.mandate }])
})

/** The clock, and the profile, of the demo of 2025. */
const clock = '2025-11-11T03:46:00Z'
const asInDemo = { clock, placeholders: true, unsigned_offers: true }

test('the eleven messages of the demo are understood as they were on the wire', async () => {
  const change = { merchant: asInDemo, wallet: asInDemo, processor: asInDemo }
  const agents = await startSampleAgents(change)
  const ids = { contextId: '', taskId: '' }
  const replay = async (nth: number, change: object) => {
    const { to, body } = demo[nth] as { to: AgentName; body: { params: { message: object } } }
    const params = { ...body.params, message: { ...body.params.message, ...change } }
    const response = await fetch(`${agents[to].url}/a2a`, {
      method: 'POST',
      headers: { 'x-a2a-extensions': 'https://github.com/google-agentic-commerce/ap2/v1' },
      body: JSON.stringify({ ...body, params }),
    })
    expect(response.headers.get('x-a2a-extensions') !== null).toBe(true)
    const { result, error } = (await response.json()) as { result: Shown; error?: object }
    expect(error).toBeUndefined()
    return result
  }
  const found = await replay(0, {})
  expect(found.artifacts?.map(({ parts }) => Object.keys(parts[0]?.data ?? {}))).toEqual([
    [keys.cartMandate],
    [keys.cartMandate],
    [keys.cartMandate],
  ])
  ids.contextId = found.contextId
  const context = { contextId: ids.contextId }
  const address = await replay(1, context)
  expect(address.artifacts?.[0]?.parts[0]?.data).toMatchObject({
    [keys.contactAddress]: { recipient: 'Bugs Bunny' },
  })
  const cart = await replay(2, context)
  const contents = { id: 'cart_3', payment_request: { details: { total: { amount: { value: 603.49 } } } } }
  expect(cart.artifacts?.[0]?.parts[0]?.data).toMatchObject({
    [keys.cartMandate]: { contents, merchant_authorization: expect.stringMatching(/^ey/) },
  })
  const methods = await replay(3, context)
  expect(methods.artifacts?.[0]?.parts[0]?.data).toEqual({
    [keys.methodAliases]: ['American Express ending in 4444', 'American Express ending in 8888'],
  })
  const token = await replay(4, context)
  expect(token.artifacts?.[0]?.parts[0]?.data).toEqual({ [keys.token]: 'fake_payment_credential_token_0' })
  expect((await replay(5, context)).status.state).toBe('completed')
  const asked = await replay(6, context)
  expect(asked.status).toMatchObject({
    state: 'input-required',
    message: { parts: [{ text: texts.challenge }, {}] },
  })
  // what the merchant of the demo sent, beside what ours did
  const own = await replay(7, context)
  expect(own.status.state).toBe('input-required')
  const done = await replay(8, { ...context, taskId: asked.id })
  expect(done.status).toMatchObject({ state: 'completed', message: { parts: [{ text: texts.success }] } })
  const again = await replay(9, { ...context, taskId: own.id })
  expect(again.status.state).toBe('completed')
  // its token was used
  expect((await replay(10, context)).status).toMatchObject({
    ...{ state: 'failed', message: { parts: [{ text: 'An error occurred: Invalid token' }] } },
  })
  expect(agents.processor.list<Paid>('payments')).toMatchObject([{ state: 'paid', amount: 60_349 }])

  const others = await startSampleAgents(change)
  Object.assign(agents, others)
  for (const nth of [4, 5]) await replay(nth, context)
  const card = await replay(10, context)
  expect(card.artifacts?.[0]?.parts[0]?.data).toMatchObject({ type: 'CARD', token: '1111000000000000' })
})

type Shown = {
  id: string
  contextId: string
  status: { state: string; message?: { parts: { text?: string }[] } }
  artifacts?: { parts: { data?: object }[] }[]
}

describe.each(['1.0', '0.3'] as const)('by A2A %s', (a2a) => {
  test('an agent says what is missing in the words of the samples', async () => {
    const agents = await startSampleAgents()
    const shopper = await openShopper(agents, a2a)
    const cart = await shopper.choose('0.1')
    const risk = { [keys.riskData]: 'risk' }
    const id = { [keys.shoppingAgentId]: 'trusted_shopping_agent' }
    const [cartId, address] = cart.order
    const purchase = await shopper.sign('0.1', cart)
    if (purchase.version !== '0.1') return
    const mandate = { [keys.paymentMandate]: purchase.payment }
    const { contextId } = cart
    const bare = randomUUID()
    const found = await shopper.choose('0.1', 'drip coffee maker').then(({ made }) => made)
    const noRisk = await shopper.send('merchant', 'A search.', [{ [keys.catalogSearch]: 'drip' }, id], {
      contextId: bare,
    })
    const inBare = read(noRisk, keys.cart) as { cart_id: string }
    expect(found.state).toBe('completed')
    const order = (cart_id: string): object[] => [id, address as object, { [keys.cartId]: cart_id }]
    const crypto = { payment_response: { request_id: 'x', method_name: 'CRYPTO' } }
    const byCrypto = await signPayment(read(cart.made, keys.cartMandate) as never, 'tok', crypto)
    const stray = { [keys.paymentMandate]: unknownToken(purchase.payment) }
    const cases: [AgentName, string, object[], string, object?][] = [
      ['merchant', texts.findProducts, [risk], 'Unauthorized Request: Missing shopping_agent_id.'],
      [
        'merchant',
        texts.updateCart,
        [{ [keys.shoppingAgentId]: 'x' }],
        "Unauthorized Request: Unknown agent 'x'.",
      ],
      ['merchant', texts.updateCart, [id], 'Missing cart_id.'],
      ['merchant', texts.updateCart, [id, cartId as object], 'Missing shipping_address.'],
      ['merchant', texts.updateCart, order('cart_99'), 'CartMandate not found for cart_id: cart_99'],
      [
        'merchant',
        texts.updateCart,
        order(inBare.cart_id),
        `Missing risk_data for context_id: ${bare}`,
        { contextId: bare },
      ],
      ['merchant', texts.initiate, [id, risk], 'Missing payment_mandate.'],
      ['merchant', texts.initiate, [id, mandate], 'Missing risk_data.', { contextId }],
      [
        'merchant',
        texts.initiate,
        [id, risk, { [keys.paymentMandate]: byCrypto }],
        'No payment processor found for method: CRYPTO',
      ],
      ['processor', processText, [risk], 'Missing payment_mandate.'],
      ['processor', processText, [mandate], 'Missing risk_data.'],
      ['wallet', texts.getCredentials, [stray], 'An error occurred: Invalid token'],
    ]
    for (const [to, text, data, expected, more] of cases) {
      const task = await shopper.send(to, text, data, more)
      expect([task.says, task.state]).toEqual([expected, 'failed'])
    }
    const instrument = { payment_instrument: { id: 'x', type: 'CRYPTO' } }
    const strange = await shopper.sign('0.2', await shopper.choose('0.2'), (jwt) =>
      signCheckout(jwt, instrument),
    )
    const refused = await shopper.pay(strange)
    expect([refused.says, refused.state]).toEqual(['No payment processor found for method: CRYPTO', 'failed'])
  })

  test('a repeated message gets its task, and the same cart again is the same cart', async () => {
    const agents = await startSampleAgents()
    const shopper = await openShopper(agents, a2a)
    const { order, contextId, made } = await shopper.choose('0.1')
    const message = { messageId: randomUUID(), contextId }
    const first = await shopper.send('merchant', texts.updateCart, order, message)
    expect(await shopper.send('merchant', texts.updateCart, order, message)).toEqual(first)
    expect(read(first, keys.cartMandate)).toEqual(read(made, keys.cartMandate))
    await expect(shopper.send('merchant', 'something else', order, message)).rejects.toThrow(/messageId/)
    await expect(shopper.send('merchant', texts.updateCart, order, { taskId: first.id })).rejects.toThrow()
  })
})

/** The mandate with a token that was never given out. */
const unknownToken = (payment: Record<string, unknown>): object => {
  const text = JSON.stringify(payment).replace(/"value":"tok_\w+"/, '"value":"tok_unknown"')
  return JSON.parse(text) as object
}

test('of two shoppers on the last unit one buys, and the other gets a clear refusal', async () => {
  const agents = await startSampleAgents({ merchant: { stock: { 'ESP-MINI': 1 } } })
  const shoppers = await Promise.all((['1.0', '0.3'] as Version[]).map((a2a) => openShopper(agents, a2a)))
  const purchases = await Promise.all(shoppers.map(async (one) => one.sign('0.1', await one.choose('0.1'))))
  const asked = await Promise.all(shoppers.map((one, at) => one.pay(purchases[at] as never)))
  expect(asked.map(({ state }) => state).sort()).toEqual(['input-required', 'rejected'])
  expect(asked.map(({ says }) => says)).toContain('"Compact espresso maker" is sold out.')
  const winner = asked.findIndex(({ state }) => state === 'input-required')
  const done = await shoppers[winner]?.answer(purchases[winner] as never, asked[winner]?.id ?? '', '123')
  expect(done?.state).toBe('completed')
  expect(agents.processor.list('payments')).toHaveLength(1)
})

test('a user who has signed limits is asked for no code; a chain that only looks like theirs is charged nothing', async () => {
  const agents = await startSampleAgents()
  const shopper = await openShopper(agents, '1.0')
  const stranger = createParty('surface-1').signing
  const forged = await shopper.sign('0.2', await shopper.choose('0.2'), (jwt) => signWhileAway(jwt, stranger))
  if (forged.version !== '0.2') return
  const [open = ''] = forged.payment.split('~~')
  for (const chain of [forged.payment, `${open}~~${open}`, `${forged.payment}~~${open}`]) {
    const parts = [
      { [keys.paymentMandateSdJwt]: chain },
      { [keys.token]: 'tok_1' },
      { [keys.riskData]: 'risk' },
    ]
    const { state } = await shopper.send('processor', processText, parts)
    expect([state, agents.processor.list('payments')]).toEqual(['rejected', []])
  }
  expect((await shopper.pay(forged)).state).toBe('rejected')
  const purchase = await shopper.sign('0.2', await shopper.choose('0.2'), signWhileAway)
  expect(await shopper.pay(purchase)).toMatchObject({ state: 'completed', says: texts.success })
  expect(agents.processor.list('payments')).toMatchObject([{ state: 'paid' }])
})

test('three wrong codes decline a payment for good, with a receipt, and free its unit', async () => {
  const agents = await startSampleAgents({ merchant: { stock: { 'ESP-MINI': 1 } } })
  const shopper = await openShopper(agents, '1.0')
  const purchase = await shopper.sign('0.2', await shopper.choose('0.2'))
  const { id } = await shopper.pay(purchase)
  for (const code of ['1', '2']) await shopper.answer(purchase, id, code)
  const over = await shopper.answer(purchase, id, '3')
  expect([over.state, over.says]).toEqual(['rejected', texts.wrongChallenge])
  expect(read(over, keys.paymentReceipt)).toMatch(/^ey/)
  expect((await shopper.pay(purchase)).state).toBe('rejected')
  expect(agents.processor.list('payments')).toMatchObject([{ state: 'declined' }])
  expect((await shopper.choose('0.1')).made.state).toBe('completed')
})

test('a token is for one mandate, once, and for 300 s', async () => {
  const agents = await startSampleAgents()
  const shopper = await openShopper(agents, '1.0')
  const one = await shopper.sign('0.1', await shopper.choose('0.1'))
  const other = await shopper.choose('0.1')
  if (one.version !== '0.1') return
  const { token } = (
    one.payment.payment_mandate_contents as never as {
      payment_response: { details: { token: { value: string } } }
    }
  ).payment_response.details
  const cart = read(other.made, keys.cartMandate) as Record<string, unknown>
  const stolen = await signPayment(cart, token.value)
  const present = async (payment: object, of: object) =>
    (
      await shopper.send('wallet', texts.getCredentials, [
        { [keys.paymentMandate]: payment },
        { [keys.cartMandate]: of },
      ])
    ).says
  expect(await present(stolen, cart)).toBe('An error occurred: Invalid token')
  await agents.wallet.restart({ clock: new Date(Date.now() + 310_000).toISOString() })
  expect(await present(one.payment, one.cart)).toBe('An error occurred: Invalid token')
  await agents.wallet.restart({ clock: new Date(Date.now() + 250_000).toISOString() })
  expect(await present(one.payment, one.cart)).toBe('')
  expect(await present(one.payment, one.cart)).toBe('An error occurred: Invalid token')
})

test('an agent has a card with both addresses of AP2, and a key', async () => {
  const agents = await startSampleAgents()
  const { url } = agents.merchant
  // of the ports above, outgoing connections of others take one before a process listens there
  for (const { url } of [agents.merchant, agents.wallet, agents.processor])
    expect(Number(new URL(url).port)).toBeLessThan(32_768)
  const card = (await (await fetch(`${url}/.well-known/agent-card.json`)).json()) as {
    capabilities: { extensions: { uri: string; required?: boolean; params: object }[] }
  }
  expect(card.capabilities.extensions).toMatchObject([
    {
      uri: 'https://github.com/google-agentic-commerce/ap2/tree/v0.1',
      required: true,
      params: { roles: ['merchant'] },
    },
    { uri: 'https://github.com/google-agentic-commerce/ap2/v1', params: { roles: ['merchant'] } },
  ])
  const { keys: jwks } = (await (await fetch(`${url}/.well-known/ap2-jwks.json`)).json()) as {
    keys: object[]
  }
  expect(jwks).toMatchObject([{ kid: 'merchant-1', crv: 'P-256' }])
  expect(jwks[0]).not.toHaveProperty('d')
  const body = { jsonrpc: '2.0', id: 1, method: 'message/send', params: {} }
  const refused = await fetch(`${url}/a2a`, { method: 'POST', body: JSON.stringify(body) })
  expect(await refused.json()).toMatchObject({ error: { code: -32008 } })
  const list = { ...body, method: 'ListTasks', params: { contextId: 'c', pageSize: 0 } }
  const headers = { 'a2a-version': '1.0' }
  const listed = await fetch(`${url}/a2a`, { method: 'POST', headers, body: JSON.stringify(list) })
  expect(await listed.json()).toMatchObject({ error: { code: -32602 } })
  const broken = await fetch(`${url}/a2a`, { method: 'POST', body: '{"jsonrpc"' })
  expect(await broken.json()).toMatchObject({ id: null, error: { code: -32700 } })
})
