import type { Clock } from '../../../state/ports.ts'
import { toEventStream } from './event-stream.ts'
import type { Exchange } from './exchange.ts'
import { faultOfConnection, faultOfStatus } from './faults.ts'
import { retryAfterMs } from './retry.ts'

export type Fetch = typeof globalThis.fetch

/** Ties a request of the SDK to its exchange. It stays on this machine. */
export const exchangeHeader = 'x-mason-exchange'
export const roleHeader = 'x-mason-role'

type Options = {
  fetch: Fetch
  url: string
  apiKey: string | undefined
  clock: Clock
  maxBytes: number
  idleMs: number
  /** The exchange a request belongs to. */
  find(id: string): Exchange | undefined
}

const errorBodyBytes = 64 * 1024
const longestErrorBodyMs = 2000

/** What can be read of an error body in good time: a 401 with a stalled body is still a 401. */
const readError = async (
  response: Response,
  ms: number,
  clock: Clock,
  signal: AbortSignal,
): Promise<string> => {
  if (response.body === null) return ''
  const reader = response.body.getReader()
  const decoder = new TextDecoder()
  let text = ''
  const read = async (): Promise<void> => {
    while (text.length < errorBodyBytes) {
      const { done, value } = await reader.read()
      if (done) return
      text += decoder.decode(value, { stream: true })
    }
  }
  const over = new AbortController()
  const end = (): void => over.abort()
  signal.addEventListener('abort', end, { once: true })
  await Promise.race([read(), clock.sleep(ms, over.signal)]).catch(() => {})
  signal.removeEventListener('abort', end)
  end()
  reader.cancel().catch(() => {})
  return text.slice(0, errorBodyBytes)
}

const headersOf = (given: Headers, apiKey: string | undefined): Record<string, string> => ({
  'content-type': 'application/json',
  accept: 'text/event-stream, application/json',
  'user-agent': 'mason',
  [roleHeader]: given.get(roleHeader) ?? '',
  ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
})

/**
 * The `fetch` under the SDK: own address, own headers (the SDK never holds the key, and its environment
 * variables have no effect), own clocks, redirects refused, and a body that is always clean SSE.
 */
export const createModelFetch =
  ({ fetch, url, apiKey, clock, maxBytes, idleMs, find }: Options): Fetch =>
  async (_input, init) => {
    const given = new Headers(init?.headers)
    const exchange = find(given.get(exchangeHeader) ?? '')
    if (exchange === undefined) throw new Error('a model request without its exchange')
    const response = await fetch(url, {
      method: 'POST',
      headers: headersOf(given, apiKey),
      body: init?.body ?? null,
      redirect: 'manual',
      signal: exchange.signal,
    }).catch((error: unknown) => {
      throw exchange.fail(faultOfConnection(error, 'headers'))
    })
    if (response.ok) {
      const body = response.body ?? new Blob([]).stream()
      const clean = toEventStream(body, { exchange, clock, maxBytes })
      return new Response(clean, { headers: { 'content-type': 'text/event-stream' } })
    }
    exchange.heard() // or a late answer and its stalled body would count as no answer
    const errorBodyMs = Math.min(longestErrorBodyMs, idleMs / 2)
    const text = await readError(response, errorBodyMs, clock, exchange.signal)
    const waitMs = retryAfterMs(response.headers, clock.now())
    throw exchange.fail(faultOfStatus(response.status, text, waitMs))
  }
