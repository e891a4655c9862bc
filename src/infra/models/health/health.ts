import type { Clock, Log, Sql } from '../../../state/ports.ts'
import type { Hints } from '../../queue/hints.ts'
import { repeatWork } from '../../repeat-work.ts'
import type { HealthLookup, Standing } from '../call-ports.ts'
import {
  type HealthRow,
  type LastError,
  readUnwell,
  type Subject,
  writeClaim,
  writeFailure,
  writeHealthy,
  writeReleased,
} from './store.ts'

export type HealthOptions = {
  /** Null: this process keeps it to itself. */
  sql: Sql | null
  hints: Hints | null
  clock: Clock
  log: Log
  random?: () => number
  /** Without Retry-After, full jitter. Default 1 s to 60 s. */
  cooling?: Range
  /** After a refusal of the key. Default 30 s to 10 min. */
  disabled?: Range
  /** How many failures in a row close an endpoint. Default 3. */
  strikes?: number
  /** How often a look is taken at what other processes know. */
  lookEveryMs?: number
}
type Range = { baseMs: number; maxMs: number }

export type Failed = { kind: 'cool' | 'disable'; code: string; message: string; retryAfterMs?: number }

/**
 * Keys and endpoints: healthy -> cooling or disabled -> probing (one half-open call over all processes) -> healthy.
 * Looking costs nothing; changes are known here at once, and elsewhere by a hint or the next look.
 */
export type Health = HealthLookup &
  AsyncDisposable & {
    /** Milliseconds until it may be tried; null: healthy. */
    dueInMs(subject: Subject, id: string): number | null
    /** Takes the half-open call of what is due, for `forMs` at most. False: another one has it. */
    claim(subject: Subject, id: string, forMs: number): Promise<boolean>
    /** `isProbe`: it was the half-open call. `anyway`: an admin's own, which counts whatever the state. */
    succeeded(subject: Subject, id: string, how: { isProbe: boolean; anyway?: boolean }): void
    failed(subject: Subject, id: string, failed: Failed, how: { isProbe: boolean }): void
    /** A half-open call that told nothing of it. */
    release(subject: Subject, id: string): void
    /** Resolves at the next change, or after `ms`. */
    changed(ms: number, signal: AbortSignal): Promise<void>
    /** Resolves once all that is known here is in the database. */
    settled(): Promise<void>
  }

type Entry = { state: Standing['state']; failures: number; dueAtMs: number; until: string }

/** So much later than expected something may be due without another call having taken it. */
const momentMs = 250

const channel = 'model-health'
const nameOf = (subject: Subject, id: string): string => `${subject} ${id}`

export const createHealth = (options: HealthOptions): Health => {
  const { sql, hints, clock, log, random = Math.random, strikes: mostStrikes = 3 } = options
  const { cooling = { baseMs: 1000, maxMs: 60_000 }, disabled = { baseMs: 30_000, maxMs: 600_000 } } = options
  const entries = new Map<string, Entry>()
  /** Failures in a row of endpoints that are healthy. */
  const strikes = new Map<string, number>()
  /** Writes of one subject go one after the other; it is not read while they do. */
  const writing = new Map<string, Promise<unknown>>()
  let changes = new AbortController()

  const tell = (): void => {
    changes.abort()
    changes = new AbortController()
  }
  const set = (name: string, state: Entry['state'], failures: number, forMs: number): void => {
    const until = new Date(clock.now().getTime() + forMs).toISOString()
    const before = entries.get(name)?.state
    entries.set(name, { state, failures, dueAtMs: clock.monotonicMs() + forMs, until })
    if (before !== state) tell()
  }
  const setRow = ({ subject, subject_id, state, failures, left_ms }: HealthRow): void =>
    set(nameOf(subject, subject_id), state, failures, left_ms)

  const look = async (): Promise<void> => {
    if (sql === null) return
    const busy = new Set(writing.keys())
    const rows = await readUnwell(sql)
    // what was written meanwhile is newer than what was read
    const isOld = (name: string): boolean => busy.has(name) || writing.has(name)
    const unwell = new Set(rows.map((row) => nameOf(row.subject, row.subject_id)))
    for (const name of [...entries.keys()])
      if (!unwell.has(name) && !isOld(name) && entries.delete(name)) tell()
    for (const row of rows) if (!isOld(nameOf(row.subject, row.subject_id))) setRow(row)
  }
  const write = <T>(name: string, work: (sql: Sql) => Promise<T>): Promise<T | undefined> => {
    if (sql === null) return Promise.resolve(undefined)
    const before = writing.get(name) ?? Promise.resolve()
    const done = before
      .then(() => work(sql))
      .catch((error: unknown) => {
        log.warn({ subject: name, error: String(error) }, 'health could not be told to other processes')
        return undefined
      })
      .finally(() => {
        if (writing.get(name) === done) writing.delete(name)
        hints?.publish(channel, '')
      })
    writing.set(name, done)
    return done
  }

  /** Cooling jitters fully; a disabled key waits half its time at least, for nothing but an admin mends it soon. */
  const waitMs = (state: 'cooling' | 'disabled', failures: number): number => {
    const { baseMs, maxMs } = state === 'cooling' ? cooling : disabled
    const ms = Math.min(maxMs, baseMs * 2 ** Math.min(failures - 1, 30))
    return state === 'cooling' ? random() * ms : ms * (0.5 + random() / 2)
  }

  const unsubscribe = hints?.subscribe(channel, () => void look().catch(() => {}))
  const looking =
    sql === null
      ? null
      : repeatWork(look, options.lookEveryMs ?? 1000, clock, log, 'looking at the health of models')

  return {
    stateOf(subject, id) {
      if (entries.size === 0) return null
      const entry = entries.get(nameOf(subject, id))
      return entry === undefined
        ? null
        : { state: entry.state, until: entry.until, due: entry.dueAtMs <= clock.monotonicMs() }
    },
    dueInMs(subject, id) {
      const entry = entries.get(nameOf(subject, id))
      return entry === undefined ? null : Math.max(0, entry.dueAtMs - clock.monotonicMs())
    },
    async claim(subject, id, forMs) {
      const name = nameOf(subject, id)
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
        await look().catch(() => {})
        const found = entries.get(name)
        if (found === undefined) return true
        // the database's clock counts, and may be a moment behind
        const leftMs = found.dueAtMs - clock.monotonicMs()
        if (isLast || found.state === 'probing' || leftMs > momentMs) return false
        await clock.sleep(Math.max(0, leftMs) + 1)
      }
    },
    succeeded(subject, id, { isProbe, anyway = false }) {
      const name = nameOf(subject, id)
      strikes.delete(name)
      if (!anyway && !(isProbe && entries.has(name))) return
      if (entries.delete(name)) tell()
      void write(name, (to) => writeHealthy(to, subject, id, anyway))
    },
    failed(subject, id, { kind, code, message, retryAfterMs }, { isProbe }) {
      const name = nameOf(subject, id)
      const entry = entries.get(name)
      const asked = retryAfterMs !== undefined
      const count = (strikes.get(name) ?? 0) + 1
      if (subject === 'endpoint' && !isProbe && !asked && entry === undefined && count < mostStrikes) {
        strikes.set(name, count)
        return
      }
      strikes.delete(name)
      const state = kind === 'cool' ? 'cooling' : 'disabled'
      const failures = isProbe ? (entry?.failures ?? 0) + 1 : (entry?.failures ?? 1)
      const forMs = retryAfterMs ?? waitMs(state, failures)
      const isNews =
        isProbe || entry === undefined || (entry.state === 'cooling' && (asked || kind === 'disable'))
      if (!isNews) return
      const leftMs = isProbe || entry === undefined ? 0 : Math.max(0, entry.dueAtMs - clock.monotonicMs())
      set(name, state, failures, Math.max(forMs, leftMs))
      const error: LastError = { code, message, at: clock.now().toISOString() }
      void write(name, async (to) => {
        const row = await writeFailure(to, { subject, id, state, forMs, asked, error }, isProbe)
        if (row) setRow(row)
        else log.debug({ subject: name }, 'another process knew of it before')
      })
    },
    release(subject, id) {
      const name = nameOf(subject, id)
      const entry = entries.get(name)
      if (entry?.state !== 'probing') return
      set(name, 'cooling', entry.failures, 0)
      void write(name, (to) => writeReleased(to, subject, id))
    },
    async changed(ms, signal) {
      const waking = AbortSignal.any([signal, changes.signal])
      await clock.sleep(ms, waking).catch(() => {})
      signal.throwIfAborted()
    },
    async settled() {
      await Promise.all(writing.values())
    },
    async [Symbol.asyncDispose]() {
      await looking?.stop()
      const leave = await unsubscribe
      await leave?.()
      await Promise.all(writing.values())
    },
  }
}
