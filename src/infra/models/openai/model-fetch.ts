import type { Clock } from '../../../state/ports.ts'
import type { Egress } from '../ports.ts'
import { toJsonText } from './event-stream.ts'
import type { Exchange } from './exchange.ts'
import { faultOfConnection, faultOfStatus } from './faults.ts'
import { retryAfterMs } from './retry.ts'

export type Fetch = typeof globalThis.fetch

/** Where one request really goes; the SDK knows nothing of it. */
export type Line = {
  exchange: Exchange
  url: string
  headers: Record<string, string>
  allowPrivate: boolean
  idleMs: number
  /** Takes the body of a streamed answer, which the SDK then never sees. Null: the answer is one JSON body, for the SDK. */
  onBody: ((body: ReadableStream<Uint8Array>) => void) | null
}

/** Ties a request of the SDK to its line. It stays on this machine. */
export const exchangeHeader = 'x-mason-exchange'
export const roleHeader = 'x-mason-role'

type Options = { egress: Egress; clock: Clock; maxBytes: number }

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

/**
 * Sends what the SDK wrote along a line: own address, own headers (the SDK never holds the key, and its environment
 * variables have no effect), own clocks, redirects refused, and a body that is whole JSON or none.
 */
export const createLineFetch =
  ({ egress, clock, maxBytes }: Options) =>
  async (line: Line, body: string): Promise<Response> => {
    const { exchange, url, headers, allowPrivate, idleMs, onBody } = line
    const response = await egress
      .fetch(url, { method: 'POST', headers, body, signal: exchange.signal, allowPrivate, maxRedirects: 0 })
      .catch((error: unknown) => {
        throw exchange.fail(faultOfConnection(error, 'headers'))
      })
    if (response.ok) {
      const received = response.body ?? new Blob([]).stream()
      if (onBody === null) {
        const text = await toJsonText(received, { exchange, maxBytes })
        return new Response(text, { headers: { 'content-type': 'application/json' } })
      }
      onBody(received)
      return new Response(null, { headers: { 'content-type': 'text/event-stream' } })
    }
    exchange.heard() // or a late answer and its stalled body would count as no answer
    const errorBodyMs = Math.min(longestErrorBodyMs, idleMs / 2)
    const text = await readError(response, errorBodyMs, clock, exchange.signal)
    const waitMs = retryAfterMs(response.headers, clock.now())
    throw exchange.fail(faultOfStatus(response.status, text, waitMs))
  }

export type LineFetch = ReturnType<typeof createLineFetch>
