import type { Clock, Log, Sql } from '../../state/ports.ts'
import { isUnavailable } from '../database/faults.ts'
import type { ReserveRow, SettleRow } from './rows.ts'
import { reserveUsage, settleUsage } from './statements.ts'

const mostInBundle = 500
const maxPauseMs = 1000

type BackgroundOptions = {
  database: Sql
  clock: Clock
  log: Log
  /** How long rows wait for others to share a statement with. */
  bundleMs: number
}

/**
 * Writes rows of the meter in the background, in the order they came, many to a statement, and tries until the database
 * has them. A request that is settled before its reservation was written needs none.
 */
export const createBackground = ({ database, clock, log, bundleMs }: BackgroundOptions) => {
  const reserves = new Map<string, ReserveRow>()
  const settles = new Map<string, SettleRow>()
  const stopped = new AbortController()
  const flushes: { until: number; resolve(): void }[] = []
  let hurry = new AbortController()
  let working = false
  let inFlight = 0
  let accepted = 0
  let written = 0

  /** Again until it is done (true) or this is stopped (false). Throws what does not pass by itself. */
  const insist = async (write: () => Promise<unknown>): Promise<boolean> => {
    for (let attempt = 0; !stopped.signal.aborted; attempt++) {
      try {
        await write()
        return true
      } catch (error) {
        if (!isUnavailable(error)) throw error
        if (attempt === 0) log.warn({ error: error.message }, 'the ledger waits for the database')
        await clock.sleep(Math.min(maxPauseMs, 50 * 2 ** attempt), stopped.signal).catch(() => {})
      }
    }
    return false
  }

  /** The first rows together; where the database refuses them, one by one: what it cannot take costs no other. */
  const put = async <Row>(
    rows: Map<string, Row>,
    write: (rows: readonly Row[]) => Promise<unknown>,
  ): Promise<number> => {
    const bundle = [...rows.values()].slice(0, mostInBundle)
    for (const id of [...rows.keys()].slice(0, mostInBundle)) rows.delete(id)
    if (bundle.length === 0) return 0
    inFlight = bundle.length
    try {
      if (await insist(() => write(bundle))) inFlight = 0
    } catch {
      for (const row of bundle) {
        // not lost without a trace: the log has what the ledger should
        const refused = (fault: unknown) =>
          log.error({ error: String(fault), row }, 'the database refuses an entry of the ledger')
        if ((await insist(() => write([row])).catch(refused)) !== false) inFlight--
      }
    }
    return bundle.length - inFlight
  }

  const work = async (): Promise<void> => {
    await clock.sleep(bundleMs, hurry.signal).catch(() => {})
    while (reserves.size + settles.size > 0 && !stopped.signal.aborted) {
      await put(reserves, (rows) => reserveUsage(database, rows))
      written += await put(settles, (rows) => settleUsage(database, rows))
      for (const flush of flushes.splice(0)) {
        if (flush.until <= written) flush.resolve()
        else flushes.push(flush)
      }
    }
  }
  const start = (): void => {
    if (working) return
    working = true
    void work().finally(() => {
      working = false
      hurry = new AbortController()
      if (reserves.size + settles.size > 0 && !stopped.signal.aborted) start()
    })
  }

  const flush = async (): Promise<void> => {
    const until = accepted
    if (written >= until || stopped.signal.aborted) return
    hurry.abort()
    await new Promise<void>((resolve) => void flushes.push({ until, resolve }))
  }

  return {
    /** Rows that the database does not have yet. */
    get backlog(): number {
      return reserves.size + settles.size + inFlight
    },
    reserve(row: ReserveRow): void {
      reserves.set(row.request_id, row)
      start()
    },
    settle(row: SettleRow): void {
      if (settles.has(row.request_id)) return
      if (stopped.signal.aborted) log.error({ row }, 'settled after the ledger was closed')
      reserves.delete(row.request_id)
      settles.set(row.request_id, row)
      accepted++
      start()
    },
    /** Resolves once all that was settled so far is written, or this is closed. */
    flush,
    /** Writes what is left, for at most `ms`; what the database did not take then is told to the log. */
    async close(ms: number): Promise<void> {
      const patience = new AbortController()
      await Promise.race([flush(), clock.sleep(ms, patience.signal).catch(() => {})])
      patience.abort()
      stopped.abort()
      for (const { resolve } of flushes.splice(0)) resolve()
      if (settles.size + inFlight > 0)
        log.error({ entries: settles.size + inFlight }, 'closed before the database took the ledger')
    },
  }
}
