import type { Clock } from '../../../state/ports.ts'
import type { Answer, Body, Egress } from '../../egress/port.ts'
import type { Exchange } from './exchange.ts'
import { faultOfConnection, faultOfStatus } from './faults.ts'
import { retryAfterMs } from './retry.ts'

/** One HTTP request to a vendor, ready to be sent. */
export type Request = {
  url: string
  method: 'POST' | 'PUT' | 'GET'
  headers: Record<string, string>
  body: string | null
}

/** What a request under way is about, for the vendor to see. */
export const roleHeader = 'x-mason-role'

type Options = { egress: Egress; clock: Clock; exchange: Exchange; allowPrivate: boolean; idleMs: number }

const errorBytes = 64 * 1024
const longestErrorMs = 2000

/** What can be read of an error body in good time: a 401 with a stalled body is still a 401. */
const readError = async (
  body: Body,
  { exchange, clock, idleMs }: Pick<Options, 'exchange' | 'clock' | 'idleMs'>,
): Promise<string> => {
  exchange.heard() // or a late answer and its stalled body would count as no answer
  const decoder = new TextDecoder()
  let text = ''
  const read = async (): Promise<void> => {
    for (let bytes = await body.read(); bytes !== null; bytes = await body.read()) {
      text += decoder.decode(bytes, { stream: true })
      if (text.length >= errorBytes) return
    }
  }
  const over = new AbortController()
  const end = (): void => over.abort(exchange.signal.reason)
  exchange.signal.addEventListener('abort', end, { once: true })
  const wait = clock.sleep(Math.min(longestErrorMs, idleMs / 2), over.signal)
  await Promise.race([read(), wait]).catch(() => {})
  exchange.signal.removeEventListener('abort', end)
  end()
  wait.catch(() => {})
  body.cancel()
  return text.slice(0, errorBytes)
}

/** Sends one request, redirects refused, and gives the answer once it is a good one. Throws what `exchange.fail` returns. */
export const send = async (
  { url, method, headers, body }: Request,
  { egress, clock, exchange, allowPrivate, idleMs }: Options,
): Promise<Answer> => {
  const { signal } = exchange
  const answer = await egress
    .request(url, { method, headers, body, signal, allowPrivate, maxRedirects: 0 })
    .catch((error: unknown) => {
      throw exchange.fail(faultOfConnection(error, 'headers'))
    })
  if (answer.status >= 200 && answer.status < 300) return answer
  const text = await readError(answer.body, { exchange, clock, idleMs })
  const waitMs = retryAfterMs(answer.headers, clock.now())
  throw exchange.fail(faultOfStatus(answer.status, text, waitMs))
}
