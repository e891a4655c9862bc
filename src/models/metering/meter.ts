import { isDatabaseUnavailable } from '../../infra/database/database-errors.ts'
import { createStatementBatches } from '../../infra/database/statement-batches.ts'
import { repeatWork } from '../../infra/lib/repeat-work.ts'
import { MasonError } from '../../state/errors.ts'
import type { Clock } from '../../state/ports/clock.ts'
import type { Log } from '../../state/ports/log.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { KeyEntry, Meter, ReservationResult } from '../ports/model-ports.ts'
import {
  dropOldSpending,
  type ReserveRow,
  reserveUsage,
  type SettleRow,
  settleUsage,
  sweepUsage,
  toReleaseRow,
  toReserveRow,
  toSettleRow,
} from './ledger-rows.ts'

const maxBatchRows = 500
const maxPauseMs = 1000

/**
 * Writes rows of the meter in the background, in their order and in batches, and retries until the database has them. Rows
 * wait `bundleMs` for others. A request that is settled before its reservation was written needs no reservation.
 */
const createLedgerWriter = (database: Sql, clock: Clock, log: Log, bundleMs: number) => {
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

/**
 * Reserves under the limits of keys. `onUnknown` gets those of which it is unknown whether the database has them.
 */
const createLimitedReservations = (database: Sql, onUnknown: (row: ReserveRow) => void) => {
  const reserve = createStatementBatches<ReserveRow, ReservationResult>({
    maxSize: 64,
    // two, so that not all keys wait for one whose row another process has locked
    maxInFlight: 2,
    write: (rows) => reserveUsage(database, rows),
    writeAlone: async (row) => (await reserveUsage(database, [row]))[0] as ReservationResult,
  })
  return (row: ReserveRow): Promise<ReservationResult> =>
    reserve(row).catch((error: unknown) => {
      if (isDatabaseUnavailable(error)) onUnknown(row)
      throw error
    })
}

/** What the meter is made of. */
export type MeterOptions = {
  database: Sql
  clock: Clock
  log: Log
  /** How long entries wait for others, to share a statement. A process that is killed loses as much. */
  bundleMs?: number
  /** How often this process writes requests that were never settled as lost, and how late they may still be settled. */
  sweepEveryMs?: number
  graceMs?: number
  /** The most entries that wait for an unavailable database; beyond it no request is reserved. */
  maxBacklog?: number
  /** How long closing waits for the database. */
  closeMs?: number
}

/** The ledger and the limits of keys. Limits hold over all processes; their clock is the database's. */
export const createMeter = (options: MeterOptions): Meter => {
  const { database, clock, log, bundleMs = 20, sweepEveryMs = 15_000, graceMs = 30_000 } = options
  const { maxBacklog = 50_000, closeMs = 5_000 } = options
  const background = createLedgerWriter(database, clock, log, bundleMs)
  const reserveLimited = createLimitedReservations(database, (row) => background.settle(toReleaseRow(row)))

  const sweep = async (): Promise<void> => {
    // our own settlements may only wait for the database
    await background.flush()
    const lost = await sweepUsage(database, graceMs)
    if (lost > 0) log.warn({ requests: lost }, 'requests that were never settled are in the ledger as lost')
    await dropOldSpending(database)
  }
  const sweeping = repeatWork(sweep, sweepEveryMs, clock, log, 'the sweep of unsettled requests')

  return {
    async reserve(reservation) {
      if (background.backlog >= maxBacklog) throw createBacklogError(background.backlog)
      if (hasLimits(reservation.key)) return reserveLimited(toReserveRow(reservation, false))
      background.reserve(toReserveRow(reservation, true))
      return { granted: true }
    },
    settle: (reservation, settlement) => background.settle(toSettleRow(reservation, settlement)),
    flush: () => background.flush(),
    async [Symbol.asyncDispose]() {
      await Promise.all([sweeping.stop(), background.close(closeMs)])
    },
  }
}

const hasLimits = (key: KeyEntry | null): boolean =>
  key !== null && Object.values(key.limits).some((limit) => limit !== null)

const createBacklogError = (entries: number): MasonError =>
  new MasonError('database_unavailable', `${entries} entries of the ledger wait for the database`, {
    remedy: 'try again once the database is back; `mason doctor` says what is wrong with it',
  })
