import type { Clock } from '../../../state/ports.ts'
import type { Egress } from '../../egress/port.ts'
import { type Clocks, openExchange } from './exchange.ts'
import type { Fault } from './faults.ts'
import { receive } from './receive.ts'
import { type Request, send } from './send.ts'
import type { Piece } from './split.ts'

export type Wire = { egress: Egress; clock: Clock; maxBytes: number; maxEvent: number }

export type Exchanging = {
  request: Request
  allowPrivate: boolean
  clocks: Clocks
  endsAtMs: number
  expects: 'sse' | 'ndjson' | 'whole'
  done: string | null
  /** Gets what comes, in order. What it throws ends the exchange. */
  take(piece: Piece): void
}

/** How an exchange ended: what is wrong with it, what `take` threw, and whether the vendor said that it was over. */
export type Talked = { fault: Fault | undefined; thrown: unknown; ended: boolean }

/** One HTTP exchange under the three clocks. Rejects only when the caller aborts, with the signal's reason. */
export const talk = async (wire: Wire, exchanging: Exchanging, signal: AbortSignal): Promise<Talked> => {
  const { egress, clock, maxBytes, maxEvent } = wire
  const { request, allowPrivate, clocks, endsAtMs, expects, done, take } = exchanging
  const exchange = openExchange({ clock, clocks, endsAtMs }, signal)
  let thrown: unknown

  const takeOne = (piece: Piece): void => {
    try {
      take(piece)
    } catch (error) {
      thrown = error
      throw error
    }
  }
  const converse = async (): Promise<void> => {
    const options = { egress, clock, exchange, allowPrivate, idleMs: clocks.idleMs }
    const { body } = await send(request, options)
    await receive(body, { exchange, maxBytes, maxEvent, expects, done, take: takeOne })
  }
  try {
    await Promise.race([converse(), exchange.stopped])
  } catch (error) {
    // what is none of the exchange's faults is a mistake of ours, and not to be taken for one of the vendor
    if (thrown === undefined && exchange.fault() === undefined && !signal.aborted) throw error
  } finally {
    exchange.close()
  }
  signal.throwIfAborted()
  return { fault: exchange.fault(), thrown, ended: exchange.ended() }
}
