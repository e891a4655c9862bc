import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json as readJson } from 'node:stream/consumers'
import { authorizeCart } from '../../src/payments/mandates/tokens/authorizations.ts'
import type { SigningKey } from '../../src/payments/mandates/tokens/keys.ts'

/** The other programs of `npm run demo:pay`, on loopback: a merchant that signs carts, and a scripted model. */

/** A program that listens. */
export type Listening = { url: string; close(): void }

const listen = async (server: Server): Promise<Listening> => {
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, close: () => void server.close().closeAllConnections() }
}

const serveJson = (answer: (request: IncomingMessage) => Promise<unknown>): Promise<Listening> =>
  listen(
    createServer(async (request, response) => {
      const body = await answer(request)
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    }),
  )

/** The merchant: any request gets a cart with one coffee maker, signed for this audience. */
export const startMerchant = (
  name: string,
  issuer: string,
  audience: string,
  key: SigningKey,
): Promise<Listening> =>
  serveJson(async () => {
    const now = Math.floor(Date.now() / 1000)
    const id = `order-${now}`
    const item = { label: 'Coffee maker', amount: { currency: 'USD', value: 89.9 }, refund_period: 30 }
    const contents = {
      id,
      user_cart_confirmation_required: true,
      payment_request: {
        method_data: [{ supported_methods: 'CARD' }],
        details: { id, display_items: [item], total: { ...item, label: 'Total' } },
      },
      cart_expiry: new Date((now + 1800) * 1000).toISOString(),
      merchant_name: name,
    }
    const claims = { issuer, subject: 'shop', audience, iat: now, jti: id, lifetime: 1800 }
    return { contents, merchant_authorization: await authorizeCart(contents, claims, key) }
  })

type ChatRequest = { messages: { role: string; content: string | null }[]; tools?: unknown[] }

/** What a model would do: ask the merchant for a cart, pay it, and say what became of it. */
const think = ({ messages, tools }: ChatRequest, shopUrl: string) => {
  const call = (name: string, args: object) => ({
    content: null,
    tool_calls: [
      { id: `call_${name}`, type: 'function', function: { name, arguments: JSON.stringify(args) } },
    ],
  })
  if (!tools) return { content: '{}' }
  const results = messages.filter(({ role }) => role === 'tool')
  if (results.length === 0) return call('http_request', { url: `${shopUrl}/cart` })
  if (results.length === 1) return call('create_payment_mandate', {})
  const isPaid = /is succeeded/.test(results.at(-1)?.content ?? '')
  return { content: isPaid ? 'I bought the coffee maker for 89.90 USD.' : 'I did not buy the coffee maker.' }
}

/** A scripted model behind OpenAI's API, in place of a real one. */
export const startModel = (shopUrl: string): Promise<Listening> =>
  serveJson(async (request) => {
    const message = think((await readJson(request)) as ChatRequest, shopUrl)
    const finish_reason = 'tool_calls' in message ? 'tool_calls' : 'stop'
    const choices = [{ index: 0, message: { role: 'assistant', ...message }, finish_reason }]
    return { id: 'reply', object: 'chat.completion', model: 'scripted', choices }
  })
