import { MasonError } from '../../state/errors.ts'
import type { Clock, Log, Sql } from '../../state/ports.ts'
import type { KeyEntry, Meter } from '../models/ports.ts'
import { repeatWork } from '../repeat-work.ts'
import { createBackground } from './background.ts'
import { createLimited } from './limited.ts'
import { forgetRow, reserveRowOf, settleRowOf } from './rows.ts'
import { dropOldSpending, sweepUsage } from './statements.ts'

export type MeterOptions = {
  database: Sql
  clock: Clock
  log: Log
  /** How long entries wait for others to share a statement with. A process that is killed loses as much. */
  bundleMs?: number
  /** How often this process looks for requests that others left unsettled, and how late those may still be settled. */
  sweepEveryMs?: number
  graceMs?: number
  /** Entries that wait for a database out of reach; beyond it nothing more is reserved. */
  maxBacklog?: number
  /** How long closing waits for the database. */
  closeMs?: number
}

/** The ledger and the limits of keys. Limits hold over all processes; their clock is the database's. */
export const createMeter = (options: MeterOptions): Meter => {
  const { database, clock, log, bundleMs = 20, sweepEveryMs = 15_000, graceMs = 30_000 } = options
  const { maxBacklog = 50_000, closeMs = 5_000 } = options
  const background = createBackground({ database, clock, log, bundleMs })
  const reserveLimited = createLimited(database, (row) => background.settle(forgetRow(row)))

  const sweep = async (): Promise<void> => {
    // what became of our own is known here, and only waits for the database
    await background.flush()
    const lost = await sweepUsage(database, graceMs)
    if (lost > 0) log.warn({ requests: lost }, 'requests that nobody settled are in the ledger as lost')
    await dropOldSpending(database)
  }
  const sweeping = repeatWork(sweep, sweepEveryMs, clock, log, 'looking for unsettled requests')

  return {
    async reserve(reservation) {
      if (background.backlog >= maxBacklog) throw tooFarBehind(background.backlog)
      if (hasLimits(reservation.key)) return reserveLimited(reserveRowOf(reservation, false))
      background.reserve(reserveRowOf(reservation, true))
      return { granted: true }
    },
    settle: (reservation, settlement) => background.settle(settleRowOf(reservation, settlement)),
    flush: () => background.flush(),
    async [Symbol.asyncDispose]() {
      await Promise.all([sweeping.stop(), background.close(closeMs)])
    },
  }
}

const hasLimits = (key: KeyEntry | null): boolean =>
  key !== null && Object.values(key.limits).some((limit) => limit !== null)

const tooFarBehind = (entries: number): MasonError =>
  new MasonError('database_unavailable', `${entries} entries of the ledger wait for the database`, {
    remedy: 'try again once the database is back; `mason doctor` says what is wrong with it',
  })
