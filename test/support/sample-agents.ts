import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { AgentConfig } from '../../examples/ap2/config.ts'
import { type AgentName, type Agents, startAgents } from '../../examples/buy-demo/agents.ts'
import { currentAp2Uris } from '../../src/features/a2a/client/ap2.ts'
import { ap2Keys as keys, ap2Texts as texts } from '../../src/features/ap2-wire.ts'
import { authorizePayment } from '../../src/features/payments/mandates/tokens/authorizations.ts'
import { hashText, type JsonObject } from '../../src/features/payments/mandates/tokens/encoding.ts'
import { conceal, issueMandate } from '../../src/features/payments/mandates/tokens/issue.ts'
import { issueCredential } from '../../src/features/payments/mandates/tokens/key-binding.ts'
import { buildCheckoutPayment } from '../../src/features/payments/mandates/v2/checkout-payment.ts'
import {
  closeOpenMandates,
  createOpenMandates,
  signOpenMandates,
} from '../../src/features/payments/mandates/v2/open-mandates.ts'
import { openPeer, openPeer03, type Peer, type PeerTask } from './a2a-peers.ts'
import { createParty } from './mandate-parties.ts'
import { scriptFlags } from './script-flags.ts'

const audience = 'https://mason.example'
const email = 'bugsbunny@gmail.com'
const surface = createParty('surface-1')
const device = createParty()
const nowS = (): number => Math.floor(Date.now() / 1000)

/** The three agents of `examples/ap2` until the end of the test: in this process, or each in one of its own. */
export const startSampleAgents = async (
  change: Partial<Record<AgentName, Partial<AgentConfig>>> = {},
  isAlone = false,
): Promise<Agents> => {
  const folder = mkdtempSync(join(tmpdir(), 'mason-sample-agents-'))
  const { kty, crv, x, y } = surface.jwk
  const jwk = { kty, crv, x, y } as AgentConfig['trust'][number]['jwk']
  const trust = [{ issuer: 'https://phone.example', kid: 'surface-1', roles: ['trusted-surface'], jwk }]
  const agents = await startAgents({ folder, audience, trust, change, flags: isAlone ? scriptFlags() : null })
  onTestFinished(async () => {
    await agents.close()
    rmSync(folder, { recursive: true })
  })
  return agents
}

export type Version = '1.0' | '0.3'
const open = (version: Version, url: string): Promise<Peer> => {
  const options = { cardUrl: `${url}/`, fetchImpl: fetch, extensions: currentAp2Uris }
  return version === '1.0' ? openPeer('JSONRPC', options) : openPeer03('JSONRPC', options)
}

type More = { contextId?: string; taskId?: string; messageId?: string }

/** A shopper of another maker, by a version of A2A, with a phone that signs. */
export const openShopper = async (agents: Agents, version: Version, shopper = 'trusted_shopping_agent') => {
  const [merchant, wallet, processor] = await Promise.all(
    (['merchant', 'wallet', 'processor'] as const).map((name) => open(version, agents[name].url)),
  )
  const peers = { merchant, wallet, processor } as Record<AgentName, Peer>
  const send = (to: AgentName, text: string, data: object[], more: More = {}): Promise<PeerTask> =>
    peers[to].send({ messageId: randomUUID(), text, data, ...more })
  const own = [{ [keys.riskData]: 'risk' }, { [keys.shoppingAgentId]: shopper }]
  const toMandates = (purchase: Purchase): object[] =>
    purchase.version === '0.1'
      ? [{ [keys.paymentMandate]: purchase.payment }, { [keys.cartMandate]: purchase.cart }]
      : [{ [keys.paymentMandateSdJwt]: purchase.payment }]

  /** Finds a product and gets its signed cart (0.1) or checkout (0.2). */
  const choose = async (ap2: '0.1' | '0.2', description = 'compact espresso maker', contextId?: string) => {
    const expiry = new Date(Date.now() + 3_600_000).toISOString()
    const intent = { natural_language_description: description, intent_expiry: expiry }
    const wish = ap2 === '0.1' ? { [keys.intentMandate]: intent } : { [keys.catalogSearch]: description }
    const more = contextId ? { contextId } : {}
    const found = await send('merchant', texts.findProducts, [wish, ...own], more)
    const offer = read(found, keys.cart) as { cart_id: string } | undefined
    if (!offer) throw new Error(`nothing was found: ${found.says}`)
    const address = read(await send('wallet', texts.getAddress, [{ user_email: email }]), keys.contactAddress)
    const order = [{ [keys.cartId]: offer.cart_id }, { [keys.shippingAddress]: address }, ...own]
    const text = ap2 === '0.1' ? texts.updateCart : texts.createCheckout
    const made = await send('merchant', text, order, { contextId: found.contextId })
    return { contextId: found.contextId, cartId: offer.cart_id, order, made }
  }
  const getToken = async (more: object[] = []): Promise<string> => {
    const asked = [{ [keys.userEmail]: email }, { [keys.methodAlias]: 'American Express ending in 8888' }]
    const task = await send('wallet', texts.getToken, [...asked, ...more])
    return String(read(task, keys.token) ?? task.says)
  }
  /** Signs the payment of a cart or checkout on the phone, and presents it to the wallet. */
  const sign = async (
    ap2: '0.1' | '0.2',
    chosen: Awaited<ReturnType<typeof choose>>,
    signing: (jwt: string) => ReturnType<typeof signCheckout> = signCheckout,
  ): Promise<Purchase> => {
    const { contextId } = chosen
    if (ap2 === '0.1') {
      const cart = read(chosen.made, keys.cartMandate) as JsonObject
      const payment = await signPayment(cart, await getToken())
      await send('wallet', texts.sendMandate, [
        { [keys.paymentMandate]: payment },
        { [keys.cartMandate]: cart },
        ...own,
      ])
      return { version: ap2, contextId, cart, payment }
    }
    const { checkout_jwt } = read(chosen.made, keys.checkout) as { checkout_jwt: string }
    const { checkout, payment } = await signing(checkout_jwt)
    const token = await getToken([
      { [keys.paymentMandateSdJwt]: payment },
      { [keys.checkoutHash]: hashText(checkout_jwt) },
    ])
    return { version: ap2, contextId, checkout, payment, token }
  }
  /** Asks the merchant to take the payment. */
  const pay = (purchase: Purchase, more: More = {}): Promise<PeerTask> =>
    send(
      'merchant',
      purchase.version === '0.1' ? texts.initiate : texts.completeCheckout,
      [
        ...toMandates(purchase),
        ...(purchase.version === '0.2'
          ? [{ [keys.checkoutMandateSdJwt]: purchase.checkout }, { [keys.token]: purchase.token }]
          : []),
        ...own,
      ],
      { contextId: purchase.contextId, ...more },
    )
  const answer = (purchase: Purchase, taskId: string, code: string, more: More = {}): Promise<PeerTask> =>
    send(
      'merchant',
      texts.initiateWithChallenge,
      [...toMandates(purchase), { [keys.challengeResponse]: code }, ...own],
      { taskId, ...more },
    )
  return { peers, send, own, choose, getToken, sign, pay, answer }
}

export type Purchase =
  | { version: '0.1'; contextId: string; cart: JsonObject; payment: JsonObject }
  | { version: '0.2'; contextId: string; checkout: string; payment: string; token: string }

/** The first value of a data key in an answer. */
export const read = ({ data }: PeerTask, key: string): unknown =>
  (data as Record<string, unknown>[]).find((part) => key in part)?.[key]

const toHop = () => ({ audience, nonce: randomUUID(), iat: nowS() })

/** A payment of AP2 0.1 that the user signed, with their token. */
export const signPayment = async (
  cart: JsonObject,
  token: string,
  more: object = {},
): Promise<JsonObject> => {
  const { payment_request: request, merchant_name } = cart.contents as Record<string, unknown>
  const { details } = request as { details: { id: string; total: object } }
  const contents = {
    ...{ payment_mandate_id: randomUUID(), payment_details_id: details.id, merchant_agent: merchant_name },
    payment_details_total: details.total,
    payment_response: {
      ...{ request_id: details.id, method_name: 'CARD', payer_email: email },
      details: { token: { value: token, url: 'http://wallet/' } },
    },
    ...more,
  }
  const claims = { iss: 'https://phone.example', iat: nowS() }
  const credential = await issueCredential(claims, device.jwk, surface.signing)
  const user_authorization = await authorizePayment(cart, contents, credential, device.signing, toHop())
  return { payment_mandate_contents: contents, user_authorization }
}

/** Mandates for a checkout of a user who has signed limits before and is away; with another key, those of a stranger. */
export const signWhileAway = async (jwt: string, key = surface.signing) => {
  const { merchant, line_items, currency } = JSON.parse(
    Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString(),
  )
  const instrument = { id: 'American Express ending in 8888', type: 'card' }
  const { iat, ...hop } = toHop()
  const exp = iat + 600
  const pair = createOpenMandates({
    ...{ merchants: [merchant], items: [{ any_of: [line_items[0].item], quantity: 1 }], currency },
    ...{ max_minor: 100_000, budget_minor: null, recurrence: null, instrument, expires_at: exp },
  })
  const open = await signOpenMandates(pair, device.jwk, { issuer: 'https://phone.example', iat }, key)
  const payment = JSON.parse(buildCheckoutPayment(jwt, instrument)) as JsonObject
  return closeOpenMandates(open, { checkoutJwt: jwt, payment }, { ...hop, iat, exp }, device.signing)
}

/** Closed mandates of AP2 0.2 for a checkout that the user approved. */
export const signCheckout = async (jwt: string, more: object = {}) => {
  const claims = JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString())
  const { merchant, totals, currency } = claims as {
    merchant: object
    currency: string
    totals: { type: string; amount: number }[]
  }
  const amount = totals.find(({ type }) => type === 'total')?.amount
  const times = { iat: nowS(), exp: nowS() + 600 }
  const hop = toHop()
  const claimed = { iss: 'https://phone.example', iat: hop.iat, aud: hop.audience, nonce: hop.nonce }
  const hash = hashText(jwt)
  const closed = { vct: 'mandate.checkout.1', checkout_jwt: conceal(jwt), checkout_hash: hash, ...times }
  const payment = {
    ...{ vct: 'mandate.payment.1', transaction_id: hash, payee: merchant, ...times },
    payment_amount: { amount, currency },
    payment_instrument: { id: 'card', type: 'card' },
    ...more,
  }
  return {
    checkout: await issueMandate(closed, surface.signing, claimed),
    payment: await issueMandate(payment, surface.signing, claimed),
  }
}
