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
  sweepUsage,
  toReleaseRow,
  toReserveRow,
  toSettleRow,
} from './ledger-rows.ts'
import { createLedgerWriter } from './ledger-writer.ts'

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
