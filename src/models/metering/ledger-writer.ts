import { isDatabaseUnavailable } from '../../infra/database/database-errors.ts'
import type { Clock } from '../../state/ports/clock.ts'
import type { Log } from '../../state/ports/log.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { type ReserveRow, reserveUsage, type SettleRow, settleUsage } from './ledger-rows.ts'

const maxBatchRows = 500
const maxPauseMs = 1000

/**
 * Writes rows of the meter in the background, in their order and in batches, and retries until the database has them. Rows
 * wait `bundleMs` for others. A request that is settled before its reservation was written needs no reservation.
 */
export const createLedgerWriter = (database: Sql, clock: Clock, log: Log, bundleMs: number) => {
  const reserves = new Map<string, ReserveRow>()
  const settles = new Map<string, SettleRow>()
  const stopped = new AbortController()
  const flushes: { until: number; resolve(): void }[] = []
  let hurry = new AbortController()
  let working = false
  let inFlight = 0
  let accepted = 0
  let written = 0

  /** Retries until success (true) or until this is stopped (false). Throws errors that are not temporary. */
  const retryWrite = async (write: () => Promise<unknown>): Promise<boolean> => {
    for (let attempt = 0; !stopped.signal.aborted; attempt++) {
      try {
        await write()
        return true
      } catch (error) {
        if (!isDatabaseUnavailable(error)) throw error
        if (attempt === 0) log.warn({ error: error.message }, 'the ledger waits for the database')
        await clock.sleep(Math.min(maxPauseMs, 50 * 2 ** attempt), stopped.signal).catch(() => {})
      }
    }
    return false
  }

  /** Writes the first rows together; if the database refuses them, one by one, so that only a wrong row is lost. */
  const put = async <Row>(
    rows: Map<string, Row>,
    write: (rows: readonly Row[]) => Promise<unknown>,
  ): Promise<number> => {
    const batch = [...rows.values()].slice(0, maxBatchRows)
    for (const id of [...rows.keys()].slice(0, maxBatchRows)) rows.delete(id)
    if (batch.length === 0) return 0
    inFlight = batch.length
    try {
      if (await retryWrite(() => write(batch))) inFlight = 0
    } catch {
      for (const row of batch) {
        // the log keeps the row that the ledger refuses
        const logRefusal = (error: unknown) =>
          log.error({ error: String(error), row }, 'the database refuses an entry of the ledger')
        if ((await retryWrite(() => write([row])).catch(logRefusal)) !== false) inFlight--
      }
    }
    return batch.length - inFlight
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
    /** Writes the remaining rows, for at most `ms`; logs how many the database did not take. */
    async close(ms: number): Promise<void> {
      const timeout = new AbortController()
      await Promise.race([flush(), clock.sleep(ms, timeout.signal).catch(() => {})])
      timeout.abort()
      stopped.abort()
      for (const { resolve } of flushes.splice(0)) resolve()
      if (settles.size + inFlight > 0)
        log.error({ entries: settles.size + inFlight }, 'closed before the database took the ledger')
    },
  }
}
