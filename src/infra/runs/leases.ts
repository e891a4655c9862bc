import type { Clock, Log, Sql } from '../../state/ports.ts'
import { settlesWithin } from '../queue/deadline.ts'
import type { Fence } from './append.ts'
import { leaseLost } from './steady.ts'

export type Lease = {
  /** Each may be called more than once. */
  onLost(reason: Error): void
  onCancel(reason: string): void
}

export type HeldLease = {
  letGo(): void
  /** Throws `lease_lost` when the lease is too old to act on; a process that was frozen learns it before any timer tells. */
  check(): void
}

type Held = Fence & Lease & { /** When the last renewal that succeeded was sent. */ renewedAt: number }

const heldRows = `json_to_recordset($1::json) AS held(tenant text, run_id text, epoch int)`

/** A lease that has ended stays ended, or a business could have more runs at work than it may. */
const renewStatement = `
  UPDATE runs r SET lease_until = clock_timestamp() + $2::int * interval '1 millisecond' FROM ${heldRows}
  WHERE r.tenant = held.tenant AND r.run_id = held.run_id AND r.epoch = held.epoch AND r.status = 'running'
    AND r.lease_until > clock_timestamp()
  RETURNING r.tenant, r.run_id, r.epoch`

/** Runs that are to be cancelled, and those that are gone: deleted, or another worker's. */
const newsStatement = `
  SELECT tenant, run_id, epoch, r.status IS NULL AS gone, r.cancel_reason FROM ${heldRows} LEFT JOIN runs r USING (tenant, run_id, epoch)
  WHERE r.status IS NULL OR r.cancel_requested_at IS NOT NULL`

const presenceStatement = `
  INSERT INTO workers (worker_id, running) VALUES ($1, $2)
  ON CONFLICT (worker_id) DO UPDATE SET seen_at = clock_timestamp(), running = EXCLUDED.running`

const farewellMs = 1000

const keyOf = (fence: Fence): string => `${fence.tenant}/${fence.run_id}/${fence.epoch}`

/** A clock of the wall that ran ahead by more than this was set, or the machine has slept. */
const mostDriftMs = 1000

/**
 * Milliseconds that pass also while the whole machine sleeps or stands still: the monotonic clock of Linux does not count
 * that, and its leases end all the same. A wall clock that is set forward costs a lease, one that is set back nothing.
 */
const createWakefulClock = (clock: Clock): (() => number) => {
  let slept = 0
  let wallAt = clock.now().getTime()
  let monotonicAt = clock.monotonicMs()
  return () => {
    const [wall, monotonic] = [clock.now().getTime(), clock.monotonicMs()]
    const ahead = wall - wallAt - (monotonic - monotonicAt)
    if (ahead > mostDriftMs) slept += ahead
    wallAt = wall
    monotonicAt = monotonic
    return monotonic + slept
  }
}

/**
 * Keeps the leases of one worker: one renewal for all its runs every sixth of the lease, one look for cancel requests
 * a second. A lease not renewed for 80 % of its time is given up before anyone else can take it.
 */
export const keepLeases = (options: {
  sql: Sql
  clock: Clock
  log: Log
  workerId: string
  leaseMs: number
}) => {
  const { sql, clock, log, workerId, leaseMs } = options
  const patienceMs = leaseMs / 3
  const nowMs = createWakefulClock(clock)
  const held = new Map<string, Held>()
  const rows = () =>
    JSON.stringify([...held.values()].map(({ tenant, run_id, epoch }) => ({ tenant, run_id, epoch })))

  const renew = async (): Promise<void> => {
    const sentAt = nowMs()
    const asked = [...held.keys()]
    if (asked.length === 0) return
    const renewed = await sql.query<Fence>(renewStatement, [rows(), leaseMs])
    const still = new Set(renewed.rows.map(keyOf))
    for (const key of asked) {
      const lease = held.get(key)
      if (!lease) continue
      if (still.has(key)) lease.renewedAt = sentAt
      else lease.onLost(leaseLost())
    }
  }

  /** The leases come first: that the worker is counted is worth less. */
  const beat = async (): Promise<void> => {
    await renew()
    await sql.query(presenceStatement, [workerId, held.size])
  }

  const lookForCancels = async (): Promise<void> => {
    if (held.size === 0) return
    const news = await sql.query<Fence & { gone: boolean; cancel_reason: string | null }>(newsStatement, [
      rows(),
    ])
    for (const { gone, cancel_reason, ...fence } of news.rows) {
      const lease = held.get(keyOf(fence))
      if (gone) lease?.onLost(leaseLost())
      else lease?.onCancel(cancel_reason ?? '')
    }
  }

  const isStale = (lease: Held): boolean => nowMs() - lease.renewedAt > leaseMs * 0.8

  /** On its own timer, so that a database that hangs cannot keep it from running. */
  const fence = (): void => {
    for (const lease of held.values()) if (isStale(lease)) lease.onLost(leaseLost())
  }

  /** Now and then again. One at a time; one that hangs is not waited for longer than `patienceMs`, since the next may well get through. */
  const repeat = (work: () => Promise<void>, everyMs: number): (() => Promise<void>) => {
    let since: number | null = null
    let running = Promise.resolve()
    const start = (): void => {
      const now = clock.monotonicMs()
      if (since !== null && now - since < patienceMs) return
      since = now
      running = work()
        .catch((error: unknown) =>
          log.warn({ error: String(error) }, 'the database did not answer a heartbeat'),
        )
        .finally(() => {
          if (since === now) since = null
        })
    }
    // at once, so that nobody counts the workers too low
    start()
    const timer = setInterval(start, everyMs)
    timer.unref()
    return () => {
      clearInterval(timer)
      return running
    }
  }

  const stops = [
    repeat(beat, Math.max(50, leaseMs / 6)),
    repeat(lookForCancels, Math.min(1000, leaseMs / 6)),
    repeat(async () => fence(), Math.max(20, leaseMs / 30)),
  ]

  return {
    /** The time that leases go by; to be noted before a claim is sent. */
    nowMs,
    /** Holds a lease that was claimed at `claimedAt` (see `nowMs`) until it is let go of. */
    hold(claim: Fence, claimedAt: number, lease: Lease): HeldLease {
      const { tenant, run_id, epoch } = claim
      const mine: Held = { tenant, run_id, epoch, renewedAt: claimedAt, ...lease }
      held.set(keyOf(claim), mine)
      return {
        letGo: () => void held.delete(keyOf(claim)),
        check() {
          if (isStale(mine)) throw leaseLost()
        },
      }
    },
    /** Looks for cancel requests now: somebody gave a hint. */
    lookForCancels: () => lookForCancels().catch(() => {}),
    /** Waits for what is on its way, but not for a database that hangs. */
    async stop() {
      await settlesWithin(Promise.all(stops.map((stop) => stop())), farewellMs)
      await settlesWithin(sql.query('DELETE FROM workers WHERE worker_id = $1', [workerId]), farewellMs)
    },
  }
}

export type Leases = ReturnType<typeof keepLeases>
