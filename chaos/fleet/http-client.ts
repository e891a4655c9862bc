import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'

// biome-ignore lint/suspicious/noExplicitAny: a harness looks into answers of every shape
export type Answer = { status: number; body: any }

/** A small client over plain node:http: a harness on the same two cores must cost little. */
export type HttpClient = Disposable & {
  get(path: string): Promise<Answer>
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Answer>
  /** Follows a stream of events from its start until `isLast` holds of one; false: it ended before. */
  follow(path: string, isLast: (event: string, data: string) => boolean): Promise<boolean>
}

export const openHttpClient = (base: string): HttpClient => {
  const agent = new Agent({ keepAlive: true })

  const send = (
    method: string,
    path: string,
    headers: Record<string, string>,
    body?: string,
  ): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      const sent: ClientRequest = request(base + path, { method, agent, headers }, resolve)
      sent.once('error', (error) => {
        // a server may close a connection just as it is used again; what only reads is sent once more
        if (method === 'GET' && sent.reusedSocket) resolve(send(method, path, headers))
        else reject(error)
      })
      sent.end(body)
    })
  const answer = async (response: IncomingMessage): Promise<Answer> => {
    const said = await text(response)
    return { status: response.statusCode ?? 0, body: said.startsWith('{') ? JSON.parse(said) : said }
  }

  return {
    get: async (path) => answer(await send('GET', path, {})),
    post: async (path, body, headers = {}) =>
      answer(
        await send('POST', path, { 'content-type': 'application/json', ...headers }, JSON.stringify(body)),
      ),
    async follow(path, isLast) {
      const response = await send('GET', path, {})
      if (response.statusCode !== 200)
        throw new Error(`${path} answered ${response.statusCode}: ${await text(response)}`)
      let rest = ''
      for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>) {
        const frames = (rest + chunk).split('\n\n')
        rest = frames.pop() ?? ''
        for (const frame of frames) {
          const [, event = '', data = ''] = /event: (.*)\ndata: (.*)$/.exec(frame) ?? []
          if (isLast(event, data)) return true
        }
      }
      return false
    },
    [Symbol.dispose]: () => agent.destroy(),
  }
}
