import type { Clock } from '../../../state/ports.ts'
import { type Clocks, openExchange } from '../openai/exchange.ts'
import { type Fault, faultOfConnection, faultOfStatus } from '../openai/faults.ts'
import { retryAfterMs } from '../openai/retry.ts'
import type { Egress } from '../ports.ts'
import { type Received, receive, receiveError } from './receive.ts'
import type { Request } from './request.ts'

export type Wire = { egress: Egress; clock: Clock; maxBytes: number; maxEvent: number }

export type Exchanging = {
  request: Request
  allowPrivate: boolean
  clocks: Clocks
  endsAtMs: number
  expects: 'sse' | 'ndjson' | 'whole'
  done: string | null
  /** Gets what comes, in order. What it throws ends the exchange. */
  take(received: Received): void
}

/** How an exchange ended: what is wrong with it, what `take` threw, and whether the vendor said that it was over. */
export type Talked = { fault: Fault | undefined; thrown: unknown; ended: boolean }

/** One HTTP exchange under the three clocks. Rejects only when the caller aborts, with the signal's reason. */
export const talk = async (wire: Wire, exchanging: Exchanging, signal: AbortSignal): Promise<Talked> => {
  const { egress, clock, maxBytes, maxEvent } = wire
  const { request, allowPrivate, clocks, endsAtMs, expects, done, take } = exchanging
  const exchange = openExchange({ id: '', clock, clocks, endsAtMs }, signal)
  let thrown: unknown

  const converse = async (): Promise<void> => {
    const { url, method, headers, body } = request
    const init = { method, headers, body, signal: exchange.signal, allowPrivate, maxRedirects: 0 }
    const response = await egress.fetch(url, init).catch((error: unknown) => {
      throw exchange.fail(faultOfConnection(error, 'headers'))
    })
    if (!response.ok) {
      const text = await receiveError(response, clocks.idleMs, { exchange, clock })
      const waitMs = retryAfterMs(response.headers, clock.now())
      throw exchange.fail(faultOfStatus(response.status, text, waitMs))
    }
    const source = response.body ?? new Blob([]).stream()
    for await (const received of receive(source, { exchange, clock, maxBytes, maxEvent, expects, done })) {
      if (exchange.signal.aborted) return
      try {
        take(received)
      } catch (error) {
        thrown = error
        return
      }
    }
  }
  try {
    await Promise.race([converse(), exchange.stopped])
  } catch (error) {
    // what is none of the exchange's faults is a mistake of ours, and not to be taken for one of the vendor
    if (exchange.fault() === undefined && !signal.aborted) throw error
  } finally {
    exchange.close()
  }
  signal.throwIfAborted()
  return { fault: exchange.fault(), thrown, ended: exchange.ended() }
}
