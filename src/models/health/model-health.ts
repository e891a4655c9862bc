import { repeatWork } from '../../infra/lib/repeat-work.ts'
import type { Hints } from '../../infra/queue/hints.ts'
import type { Clock } from '../../state/ports/clock.ts'
import type { Log } from '../../state/ports/log.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { HealthLookup, HealthStatus } from '../ports/call-ports.ts'
import {
  type HealthRow,
  type HealthSubject,
  type LastError,
  readUnhealthy,
  writeClaim,
  writeFailure,
  writeHealthy,
  writeRelease,
} from './health-rows.ts'

/** A vendor with fewer healthy keys is reported, by the metric and by `mason doctor`. */
export const minHealthyKeys = 1

/** What health is made of. */
export type ModelHealthOptions = {
  /** Null: health is not shared with other processes. */
  sql: Sql | null
  hints: Hints | null
  clock: Clock
  log: Log
  random?: () => number
  /** Wait after a failure without Retry-After, with full jitter. Default 1 s to 60 s. */
  cooling?: Range
  /** Wait after a refusal of the key. Default 30 s to 10 min. */
  disabled?: Range
  /** How many failures in a row close an endpoint. Default 3. */
  strikes?: number
}
type Range = { baseMs: number; maxMs: number }

/** A failure of a key or an endpoint. */
export type HealthFailure = { kind: 'cool' | 'disable'; code: string; message: string; retryAfterMs?: number }

/**
 * Keys and endpoints: healthy -> cooling or disabled -> probing (one half-open call over all processes) -> healthy.
 * Reads are from memory; a change counts here at once, and in other processes after a hint or the next poll.
 */
export type ModelHealth = HealthLookup &
  AsyncDisposable & {
    /** Milliseconds until it may be tried; null: healthy. */
    dueInMs(subject: HealthSubject, id: string): number | null
    /** Claims the probe of a subject that is due, for at most `forMs`. False: another call has it. */
    claim(subject: HealthSubject, id: string, forMs: number): Promise<boolean>
    /** `isProbe`: the request was the probe. `anyway`: a test by an admin, which counts in any state. */
    succeeded(subject: HealthSubject, id: string, how: { isProbe: boolean; anyway?: boolean }): void
    failed(subject: HealthSubject, id: string, failed: HealthFailure, how: { isProbe: boolean }): void
    /** Ends a probe without a verdict. */
    release(subject: HealthSubject, id: string): void
    /** Resolves at the next change, or after `ms`. */
    changed(ms: number, signal: AbortSignal): Promise<void>
    /** Resolves once all changes of this process are in the database. */
    settled(): Promise<void>
  }

type Entry = { state: HealthStatus['state']; failures: number; dueAtMs: number; until: string }

/** How often the rows of other processes are read. */
const pollEveryMs = 1000
/** How far the database's clock may be behind ours. */
const clockSkewMs = 250

const channel = 'model-health'
const toSubjectName = (subject: HealthSubject, id: string): string => `${subject} ${id}`

/** Opens the health of this process; dispose it to stop polling and to finish its writes. */
export const createModelHealth = (options: ModelHealthOptions): ModelHealth => {
  const { sql, hints, clock, log, random = Math.random, strikes: maxStrikes = 3 } = options
  const { cooling = { baseMs: 1000, maxMs: 60_000 }, disabled = { baseMs: 30_000, maxMs: 600_000 } } = options
  const entries = new Map<string, Entry>()
  /** Consecutive failures of healthy endpoints. */
  const strikes = new Map<string, number>()
  /** Writes of one subject are sequential; its row is not read meanwhile. */
  const writing = new Map<string, Promise<unknown>>()
  let changes = new AbortController()

  const notify = (): void => {
    changes.abort()
    changes = new AbortController()
  }
  const set = (name: string, state: Entry['state'], failures: number, forMs: number): void => {
    const until = new Date(clock.now().getTime() + forMs).toISOString()
    const before = entries.get(name)?.state
    entries.set(name, { state, failures, dueAtMs: clock.monotonicMs() + forMs, until })
    if (before !== state) notify()
  }
  const setRow = ({ subject, subject_id, state, failures, left_ms }: HealthRow): void =>
    set(toSubjectName(subject, subject_id), state, failures, left_ms)

  const poll = async (): Promise<void> => {
    if (sql === null) return
    const busy = new Set(writing.keys())
    const rows = await readUnhealthy(sql)
    // a row written meanwhile is newer than the one read
    const isOld = (name: string): boolean => busy.has(name) || writing.has(name)
    const unhealthy = new Set(rows.map((row) => toSubjectName(row.subject, row.subject_id)))
    for (const name of [...entries.keys()])
      if (!unhealthy.has(name) && !isOld(name) && entries.delete(name)) notify()
    for (const row of rows) if (!isOld(toSubjectName(row.subject, row.subject_id))) setRow(row)
  }
  const write = <T>(name: string, work: (sql: Sql) => Promise<T>): Promise<T | undefined> => {
    if (sql === null) return Promise.resolve(undefined)
    const before = writing.get(name) ?? Promise.resolve()
    const done = before
      .then(() => work(sql))
      .catch((error: unknown) => {
        log.warn({ subject: name, error: String(error) }, 'health could not be written for other processes')
        return undefined
      })
      .finally(() => {
        if (writing.get(name) === done) writing.delete(name)
        hints?.publish(channel, '')
      })
    writing.set(name, done)
    return done
  }

  /** Cooling has full jitter; a disabled key waits at least half its time, because only an admin can fix it soon. */
  const waitMs = (state: 'cooling' | 'disabled', failures: number): number => {
    const { baseMs, maxMs } = state === 'cooling' ? cooling : disabled
    const ms = Math.min(maxMs, baseMs * 2 ** Math.min(failures - 1, 30))
    return state === 'cooling' ? random() * ms : ms * (0.5 + random() / 2)
  }

  const unsubscribe = hints?.subscribe(channel, () => void poll().catch(() => {}))
  const polling =
    sql === null ? null : repeatWork(poll, pollEveryMs, clock, log, 'polling the health of models')

  return {
    stateOf(subject, id) {
      if (entries.size === 0) return null
      const entry = entries.get(toSubjectName(subject, id))
      return entry === undefined
        ? null
        : { state: entry.state, until: entry.until, due: entry.dueAtMs <= clock.monotonicMs() }
    },
    dueInMs(subject, id) {
      const entry = entries.get(toSubjectName(subject, id))
      return entry === undefined ? null : Math.max(0, entry.dueAtMs - clock.monotonicMs())
    },
    async claim(subject, id, forMs) {
      const name = toSubjectName(subject, id)
      const entry = entries.get(name)
      if (entry === undefined) return true
      if (entry.dueAtMs > clock.monotonicMs()) return false
      set(name, 'probing', entry.failures, forMs)
      if (sql === null) return true
      for (let isLast = false; ; isLast = true) {
        // without the database each process tries for itself
        if ((await write(name, (to) => writeClaim(to, subject, id, forMs))) !== false) {
          set(name, 'probing', entry.failures, forMs)
          return true
        }
        await poll().catch(() => {})
        const current = entries.get(name)
        if (current === undefined) return true
        // the database's clock counts, and may be a moment behind
        const leftMs = current.dueAtMs - clock.monotonicMs()
        if (isLast || current.state === 'probing' || leftMs > clockSkewMs) return false
        await clock.sleep(Math.max(0, leftMs) + 1)
      }
    },
    succeeded(subject, id, { isProbe, anyway = false }) {
      const name = toSubjectName(subject, id)
      strikes.delete(name)
      if (!anyway && !(isProbe && entries.has(name))) return
      if (entries.delete(name)) notify()
      void write(name, (to) => writeHealthy(to, subject, id, anyway))
    },
    failed(subject, id, { kind, code, message, retryAfterMs }, { isProbe }) {
      const name = toSubjectName(subject, id)
      const entry = entries.get(name)
      const vendorRequested = retryAfterMs !== undefined
      const count = (strikes.get(name) ?? 0) + 1
      if (
        subject === 'endpoint' &&
        !isProbe &&
        !vendorRequested &&
        entry === undefined &&
        count < maxStrikes
      ) {
        strikes.set(name, count)
        return
      }
      strikes.delete(name)
      const state = kind === 'cool' ? 'cooling' : 'disabled'
      const failures = isProbe ? (entry?.failures ?? 0) + 1 : (entry?.failures ?? 1)
      const forMs = retryAfterMs ?? waitMs(state, failures)
      const isChange =
        isProbe ||
        entry === undefined ||
        (entry.state === 'cooling' && (vendorRequested || kind === 'disable'))
      if (!isChange) return
      const leftMs = isProbe || entry === undefined ? 0 : Math.max(0, entry.dueAtMs - clock.monotonicMs())
      set(name, state, failures, Math.max(forMs, leftMs))
      const error: LastError = { code, message, at: clock.now().toISOString() }
      void write(name, async (to) => {
        const row = await writeFailure(to, { subject, id, state, forMs, vendorRequested, error }, isProbe)
        if (row) setRow(row)
        else log.debug({ subject: name }, 'another process reported it before')
      })
    },
    release(subject, id) {
      const name = toSubjectName(subject, id)
      const entry = entries.get(name)
      if (entry?.state !== 'probing') return
      set(name, 'cooling', entry.failures, 0)
      void write(name, (to) => writeRelease(to, subject, id))
    },
    async changed(ms, signal) {
      const anySignal = AbortSignal.any([signal, changes.signal])
      await clock.sleep(ms, anySignal).catch(() => {})
      signal.throwIfAborted()
    },
    async settled() {
      await Promise.all(writing.values())
    },
    async [Symbol.asyncDispose]() {
      await polling?.stop()
      const stop = await unsubscribe
      await stop?.()
      await Promise.all(writing.values())
    },
  }
}
