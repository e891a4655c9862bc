import { setMaxListeners } from 'node:events'
import type { TransactionalSql } from '../../infra/database/database.ts'
import { isDatabaseUnavailable } from '../../infra/database/database-errors.ts'
import { settlesWithin } from '../../infra/lib/timeouts.ts'
import { unlessAborted } from '../../state/deadline.ts'
import { MasonError } from '../../state/errors.ts'
import type { Clock } from '../../state/ports/clock.ts'
import type { Log } from '../../state/ports/log.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { type RunFence, toNamedFence } from './claim.ts'

/** What a lease reports to its run. Each may be called more than once. */
export type LeaseCallbacks = {
  onLost(reason: Error): void
  onCancel(reason: string): void
}

type HeldRun = RunFence &
  LeaseCallbacks & { /** When the last renewal that succeeded was sent. */ renewedAt: number }

const heldRows = `json_to_recordset($1::json) AS held(tenant text, run_id text, epoch int)`

/**
 * A lease that has expired is never renewed, or a business could exceed its concurrency. The rows are locked in the order of
 * combined appends first: an UPDATE locks in any order, and two could wait for each other.
 */
const renewStatement = `
  WITH locked AS (
    SELECT r.tenant, r.run_id FROM runs r JOIN ${heldRows} ON r.tenant = held.tenant AND r.run_id = held.run_id
    WHERE r.epoch = held.epoch AND r.status = 'running' AND r.lease_until > clock_timestamp()
    ORDER BY r.tenant, r.run_id FOR NO KEY UPDATE OF r
  )
  UPDATE runs r SET lease_until = clock_timestamp() + $2::int * interval '1 millisecond'
  FROM locked WHERE r.tenant = locked.tenant AND r.run_id = locked.run_id
  RETURNING r.tenant, r.run_id, r.epoch`

/** Runs with a cancel request, and lost ones: deleted, or claimed by another worker. */
const cancelsStatement = `
  SELECT held.*, r.status IS NULL AS is_lost, r.cancel_reason FROM ${heldRows} LEFT JOIN LATERAL (
    SELECT * FROM runs WHERE tenant = held.tenant AND run_id = held.run_id AND epoch = held.epoch OFFSET 0) r ON true
  WHERE r.status IS NULL OR r.cancel_requested_at IS NOT NULL`

const heartbeatStatement = `
  INSERT INTO workers (worker_id, running) VALUES ($1, $2)
  ON CONFLICT (worker_id) DO UPDATE SET seen_at = clock_timestamp(), running = EXCLUDED.running`

const stopTimeoutMs = 1000

const toLeaseKey = (fence: RunFence): string => `${fence.tenant}/${fence.run_id}/${fence.epoch}`

/** When the wall clock gains more than this, it was set or the machine has slept. */
const maxDriftMs = 1000

/**
 * Milliseconds that also count while the machine is suspended: the monotonic clock of Linux does not count that, and
 * leases expire all the same. A wall clock that is set forward costs a lease, one that is set back costs nothing.
 */
const createSleepAwareClock = (clock: Clock): (() => number) => {
  let slept = 0
  let wallAt = clock.now().getTime()
  let monotonicAt = clock.monotonicMs()
  return () => {
    const [wall, monotonic] = [clock.now().getTime(), clock.monotonicMs()]
    const ahead = wall - wallAt - (monotonic - monotonicAt)
    if (ahead > maxDriftMs) slept += ahead
    wallAt = wall
    monotonicAt = monotonic
    return monotonic + slept
  }
}

/**
 * Renews the leases of one worker: one statement for all its runs every sixth of the lease, and one poll for cancel
 * requests a second. A lease that was not renewed for 80 % of its time is dropped before another worker can claim it.
 */
export const startLeaseRenewal = (options: {
  sql: Sql
  clock: Clock
  log: Log
  workerId: string
  leaseMs: number
}) => {
  const { sql, clock, log, workerId, leaseMs } = options
  const patienceMs = leaseMs / 3
  const nowMs = createSleepAwareClock(clock)
  const heldRuns = new Map<string, HeldRun>()
  const rows = () => JSON.stringify([...heldRuns.values()].map(toNamedFence))

  const renew = async (): Promise<void> => {
    const sentAt = nowMs()
    const keys = [...heldRuns.keys()]
    if (keys.length === 0) return
    const renewed = await sql.query<RunFence>(renewStatement, [rows(), leaseMs])
    const renewedKeys = new Set(renewed.rows.map(toLeaseKey))
    for (const key of keys) {
      const lease = heldRuns.get(key)
      if (!lease) continue
      if (renewedKeys.has(key)) lease.renewedAt = sentAt
      else lease.onLost(createLeaseLostError())
    }
  }

  /** Leases first: they matter more than the count of workers. */
  const sendHeartbeat = async (): Promise<void> => {
    await renew()
    await sql.query(heartbeatStatement, [workerId, heldRuns.size])
  }

  const pollCancels = async (): Promise<void> => {
    if (heldRuns.size === 0) return
    const cancels = await sql.query<RunFence & { is_lost: boolean; cancel_reason: string | null }>(
      cancelsStatement,
      [rows()],
    )
    for (const { is_lost, cancel_reason, ...fence } of cancels.rows) {
      const lease = heldRuns.get(toLeaseKey(fence))
      if (is_lost) lease?.onLost(createLeaseLostError())
      else lease?.onCancel(cancel_reason ?? '')
    }
  }

  const isStale = (lease: HeldRun): boolean => nowMs() - lease.renewedAt > leaseMs * 0.8

  /** On its own timer, so that a database that hangs cannot delay it. */
  const dropStaleLeases = (): void => {
    for (const lease of heldRuns.values()) if (isStale(lease)) lease.onLost(createLeaseLostError())
  }

  /** Now and then at an interval. One at a time; one that hangs delays the next by `patienceMs` at most. */
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
    // at once, so that a new worker is counted
    start()
    const timer = setInterval(start, everyMs)
    timer.unref()
    return () => {
      clearInterval(timer)
      return running
    }
  }

  const stops = [
    repeat(sendHeartbeat, Math.max(50, leaseMs / 6)),
    repeat(pollCancels, Math.min(1000, leaseMs / 6)),
    repeat(async () => dropStaleLeases(), Math.max(20, leaseMs / 30)),
  ]

  return {
    /** The clock of leases; read it before a claim is sent. */
    nowMs,
    /** Renews a lease that was claimed at `claimedAt` (see `nowMs`) until it is released. */
    hold(claim: RunFence, claimedAt: number, lease: LeaseCallbacks) {
      const heldRun: HeldRun = { ...toNamedFence(claim), renewedAt: claimedAt, ...lease }
      heldRuns.set(toLeaseKey(claim), heldRun)
      return {
        release: () => void heldRuns.delete(toLeaseKey(claim)),
        /** Throws `lease_lost` when the lease is too old to act on; a process that was frozen finds out before any timer fires. */
        check(): void {
          if (isStale(heldRun)) throw createLeaseLostError()
        },
      }
    },
    /** Polls for cancel requests now, after a hint. */
    pollCancels: () => pollCancels().catch(() => {}),
    /** Waits for statements in flight, but not for a database that hangs. */
    async stop() {
      await settlesWithin(Promise.all(stops.map((stop) => stop())), stopTimeoutMs)
      await settlesWithin(sql.query('DELETE FROM workers WHERE worker_id = $1', [workerId]), stopTimeoutMs)
    },
  }
}

const maxPauseMs = 1000

/** What a claimed run may ask about its lease. */
export type LeaseGuard = {
  /** Aborted when the lease is lost. */
  signal: AbortSignal
  /** Throws `lease_lost` when the lease is too old to act on. */
  check(): void
}

/**
 * The database as one claimed run sees it: a statement without an answer is sent again until it is answered or the lease
 * is lost (`lease_lost`), also when it hangs; a transaction as a whole. Only for what is safe to repeat. A process that was frozen while
 * it waited does not act on the answer: no timer has fired yet to drop its lease.
 */
export const createRetryingSql = (
  database: TransactionalSql,
  clock: Clock,
  lease: LeaseGuard,
): TransactionalSql => {
  // each statement under way listens
  setMaxListeners(0, lease.signal)
  const repeat = async <T>(send: () => Promise<T>): Promise<T> => {
    for (let attempt = 0; ; attempt++) {
      if (lease.signal.aborted) throw createLeaseLostError(lease.signal.reason)
      try {
        const result = await unlessAborted(send(), lease.signal)
        lease.check()
        return result
      } catch (error) {
        if (error === lease.signal.reason) continue
        if (!isDatabaseUnavailable(error)) throw error
        await clock.sleep(Math.min(maxPauseMs, 50 * 2 ** attempt), lease.signal).catch(() => {})
      }
    }
  }
  return {
    query: (text, values = []) => repeat(() => database.query(text, values)),
    transaction: (work, options) => repeat(() => database.transaction(work, options)),
  }
}

/** The run belongs to another worker now, or to none. */
export const createLeaseLostError = (cause?: unknown): MasonError =>
  new MasonError('lease_lost', 'another worker has this run', { cause })

/** Frees the runs that are at work, where no other process has the database. */
export const endLeases = (sql: Sql): Promise<unknown> =>
  sql.query(`UPDATE runs SET lease_until = clock_timestamp() WHERE status = 'running'`)
