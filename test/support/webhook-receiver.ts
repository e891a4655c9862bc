import { createHmac } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type ReceivedWebhook = {
  path: string
  headers: IncomingHttpHeaders
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read bodies of every shape
  body: any
}

/** A product's server for webhooks. `answer` replies to one by its path, in place of 204; `false`: never. */
export const startWebhookReceiver = async (
  answer: (
    request: ReceivedWebhook,
    nth: number,
  ) => number | { status: number; headers: Record<string, string> } | false = () => 204,
) => {
  const received: ReceivedWebhook[] = []
  const held: ServerResponse[] = []
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const bytes of request) text += bytes
    const webhook = { path: request.url ?? '', headers: request.headers, text, body: JSON.parse(text) }
    received.push(webhook)
    const reply = answer(webhook, received.length)
    if (reply === false) return void held.push(response)
    const { status, headers } = typeof reply === 'number' ? { status: reply, headers: {} } : reply
    response.writeHead(status, headers).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    of: (path: string) => received.filter((one) => one.path === path),
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Whether one of the signatures is of this secret, as the libraries of Standard Webhooks check it. */
export const isSignedBy = (secret: string, { headers, text }: ReceivedWebhook): boolean => {
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${text}`
  const expected = `v1,${createHmac('sha256', key).update(signed).digest('base64')}`
  return String(headers['webhook-signature']).split(' ').includes(expected)
}
