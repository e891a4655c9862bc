import type { Egress, EgressBody, EgressResponse } from '../../infra/egress/egress-port.ts'
import type { Clock } from '../../state/ports/clock.ts'
import { type ExchangeControl, openExchangeControl, type RequestTimeouts } from './exchange-control.ts'
import { createConnectionError, createStatusError, type ProviderError } from './provider-errors.ts'
import { receiveBody } from './response-body.ts'
import type { ResponseChunk } from './response-splitter.ts'
import { readRetryAfterMs } from './retry-policy.ts'

/** One HTTP request to a vendor, ready to be sent. */
export type ProviderHttpRequest = {
  url: string
  method: 'POST' | 'PUT' | 'GET'
  headers: Record<string, string>
  body: string | null
}

type Options = {
  egress: Egress
  clock: Clock
  exchange: ExchangeControl
  allowPrivate: boolean
  idleMs: number
}

const maxErrorBytes = 64 * 1024
const maxErrorMs = 2000

/** Reads an error body for a limited time: a 401 with a stalled body is still a 401. */
const readError = async (
  body: EgressBody,
  { exchange, clock, idleMs }: Pick<Options, 'exchange' | 'clock' | 'idleMs'>,
): Promise<string> => {
  exchange.bytesReceived() // otherwise a late answer with a stalled body would count as no answer
  const decoder = new TextDecoder()
  let text = ''
  const read = async (): Promise<void> => {
    for (let bytes = await body.read(); bytes !== null; bytes = await body.read()) {
      text += decoder.decode(bytes, { stream: true })
      if (text.length >= maxErrorBytes) return
    }
  }
  const over = new AbortController()
  const end = (): void => over.abort(exchange.signal.reason)
  exchange.signal.addEventListener('abort', end, { once: true })
  const wait = clock.sleep(Math.min(maxErrorMs, idleMs / 2), over.signal)
  await Promise.race([read(), wait]).catch(() => {})
  exchange.signal.removeEventListener('abort', end)
  end()
  wait.catch(() => {})
  body.cancel()
  return text.slice(0, maxErrorBytes)
}

/** Sends one request without redirects and returns a 2xx answer. Throws what `exchange.fail` returns. */
const sendHttpRequest = async (
  { url, method, headers, body }: ProviderHttpRequest,
  { egress, clock, exchange, allowPrivate, idleMs }: Options,
): Promise<EgressResponse> => {
  const { signal } = exchange
  const answer = await egress
    .request(url, { method, headers, body, signal, allowPrivate, maxRedirects: 0 })
    .catch((error: unknown) => {
      throw exchange.fail(createConnectionError(error, 'headers'))
    })
  if (answer.status >= 200 && answer.status < 300) return answer
  const text = await readError(answer.body, { exchange, clock, idleMs })
  const waitMs = readRetryAfterMs(answer.headers, clock.now())
  throw exchange.fail(createStatusError(answer.status, text, waitMs))
}

/** How requests are sent, and the limits of answers: `maxBytes` after decompression, `maxEvent` in characters. */
export type Transport = { egress: Egress; clock: Clock; maxBytes: number; maxEvent: number }

/** One exchange. `done` is the event that ends the stream. */
export type HttpExchangeRequest = {
  request: ProviderHttpRequest
  endpoint: { allow_private: boolean; timeouts: RequestTimeouts }
  endsAtMs: number
  expects: 'sse' | 'ndjson' | 'whole'
  done: string | null
  /** Gets the chunks in order. An error that it throws ends the exchange. */
  take(chunk: ResponseChunk): void
}

/** How an exchange ended: its error, what `take` threw, and whether the vendor sent the closing event. */
export type HttpExchangeResult = { error: ProviderError | undefined; thrown: unknown; ended: boolean }

/** Runs one HTTP exchange with three timeouts. Rejects only when the caller aborts, with the signal's reason. */
export const runHttpExchange = async (
  transport: Transport,
  exchangeRequest: HttpExchangeRequest,
  signal: AbortSignal,
): Promise<HttpExchangeResult> => {
  const { egress, clock, maxBytes, maxEvent } = transport
  const { request, endpoint, endsAtMs, expects, done, take } = exchangeRequest
  const { allow_private: allowPrivate, timeouts: clocks } = endpoint
  const exchange = openExchangeControl({ clock, clocks, endsAtMs }, signal)
  let thrown: unknown

  const takeOne = (chunk: ResponseChunk): void => {
    try {
      take(chunk)
    } catch (error) {
      thrown = error
      throw error
    }
  }
  const sendAndReceive = async (): Promise<void> => {
    const options = { egress, clock, exchange, allowPrivate, idleMs: clocks.idleMs }
    const { body } = await sendHttpRequest(request, options)
    await receiveBody(body, { exchange, maxBytes, maxEvent, expects, done, take: takeOne })
  }
  try {
    await Promise.race([sendAndReceive(), exchange.stopped])
  } catch (error) {
    // an error that the exchange did not report is a bug of ours, not an error of the vendor
    if (thrown === undefined && exchange.error() === undefined && !signal.aborted) throw error
  } finally {
    exchange.close()
  }
  signal.throwIfAborted()
  return { error: exchange.error(), thrown, ended: exchange.ended() }
}
