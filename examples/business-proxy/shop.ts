import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { RunRequest } from 'mason-runtime'
import { type Client, createClient } from 'mason-runtime/client'

/** A shop's web form: customers ask about their orders. In goes a form, out comes a page. */

export type ShopForm = {
  form_id?: string
  order: string
  email: string
  question: string
  orders_csv?: string
}

/** The shop's own request as the one standard shape: the customer is the user, the order is the session. */
export const toRunRequest = ({ order, email, question, orders_csv }: ShopForm): RunRequest => ({
  prompt: question,
  user_id: email,
  session_id: `shop-${order}-${email}`,
  output: { style: 'friendly and short, for a customer of a shop' },
  metadata: { product: 'shop', order },
  ...(orders_csv && {
    files: [
      { name: 'orders.csv', type: 'text/csv', content_base64: Buffer.from(orders_csv).toString('base64') },
    ],
  }),
})

const ask = async (mason: Client, form: ShopForm, signal: AbortSignal): Promise<string> => {
  // every page has an id of its own, so that a form sent twice is one run
  const key = form.form_id && { idempotencyKey: `shop-${form.form_id}` }
  const { id } = await mason.submit(toRunRequest(form), { ...key, signal })
  const { status, answer, error } = await mason.wait(id, { signal })
  return answer ?? error?.message ?? `The run was ${status}.`
}

const page =
  (): string => `<!doctype html><title>Shop help</title><form method="post" action="/ask"><input type="hidden" name="form_id" value="${randomUUID()}">
<p><label>Order <input name="order" required></label> <label>E-mail <input name="email" type="email" required></label>
<p><label>Question <input name="question" size="60" required></label> <button>Ask</button></form>\n`

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')

const readForm = async (request: IncomingMessage): Promise<ShopForm> => {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  const fields = Object.fromEntries(new URLSearchParams(Buffer.concat(parts).toString()))
  return { order: '', email: '', question: '', ...fields }
}

const handle = async (mason: Client, request: IncomingMessage, response: ServerResponse): Promise<void> => {
  response.setHeader('Content-Type', 'text/html; charset=utf-8')
  if (request.method !== 'POST') return void response.end(page())
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  try {
    response.end(`<p>${escaped(await ask(mason, await readForm(request), gone.signal))}</p>\n`)
  } catch (error) {
    response.statusCode = 502
    response.end(`<p>We cannot answer right now: ${escaped((error as Error).message)}</p>\n`)
  }
}

export const startShop = (mason: Client, port: number): Promise<Server> =>
  new Promise((resolve) => {
    const server = createServer((request, response) => void handle(mason, request, response))
    server.listen(port, '127.0.0.1', () => resolve(server))
  })

if (process.argv[1] === import.meta.filename) {
  const { MASON_URL: url = 'http://127.0.0.1:8080', MASON_TOKEN: token, SHOP_PORT = '8090' } = process.env
  const { port } = (await startShop(createClient({ url, token }), Number(SHOP_PORT))).address() as AddressInfo
  console.log(`the shop's form: http://127.0.0.1:${port}`)
}
