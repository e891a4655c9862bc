import { repeatWork } from '../../infra/lib/repeat-work.ts'
import type { Hints } from '../../infra/queue/hints.ts'
import type { Clock } from '../../state/ports/clock.ts'
import type { Log } from '../../state/ports/log.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { FailureSource, HealthLookup, HealthSubject, SubjectRef } from '../ports/call-ports.ts'
import {
  type LastError,
  readEntry,
  readUnhealthy,
  writeClaim,
  writeEntry,
  writeHealthy,
  writeRelease,
} from './health-rows.ts'
import {
  addEvidence,
  addFailure,
  countOwnFailures,
  type HealthEntry,
  isClosedFor,
  type NewFailure,
  type SeenFailure,
  toEvidence,
} from './health-rules.ts'

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
  /** Wait after a failure for which the vendor names none, half of it random. Default 1 s to 60 s. */
  cooling?: Range
  /** Wait after a refusal of the key. Default 30 s to 10 min. */
  disabled?: Range
}
type Range = { baseMs: number; maxMs: number }

/** A failure of a subject. */
export type HealthFailure = { kind: 'cool' | 'disable'; code: string; message: string; retryAfterMs?: number }

/** How a failure was met. */
export type FailureContext = {
  isProbe: boolean
  /** Whose request it was; absent: no request can cause it, so it counts for all at once. */
  source?: FailureSource
  /** Of a failure that counts once a second model has it. */
  model?: string
  /** It closes the subject for its own prompt too. */
  isStrong?: boolean
  /** The call has nothing else to ask. */
  isOnly?: boolean
}

/**
 * Endpoints, models, keys, and keys with models: healthy -> cooling or disabled -> probing (one half-open call over all
 * processes) -> healthy. Reads are from memory; a change counts here at once, and in other processes after a hint or the
 * next poll. Whom a failure closes a subject for: health-rules.ts.
 */
export type ModelHealth = HealthLookup &
  AsyncDisposable & {
    /** Milliseconds until this source may try it; null: healthy, or open to the source. */
    dueInMs(subject: HealthSubject, id: string, source?: FailureSource): number | null
    /** Claims the probes of all these subjects, for at most `forMs`. False: another call has one of them. */
    claim(refs: readonly SubjectRef[], forMs: number): Promise<boolean>
    /** `isProbe`: the request was the probe. `anyway`: it counts in any state. */
    succeeded(
      subject: HealthSubject,
      id: string,
      how: { isProbe: boolean; anyway?: boolean; source?: FailureSource },
    ): void
    failed(subject: HealthSubject, id: string, failed: HealthFailure, how: FailureContext): void
    /** Ends a probe without a verdict. */
    release(subject: HealthSubject, id: string): void
    /** Resolves at the next change, or after `ms`. */
    changed(ms: number, signal: AbortSignal): Promise<void>
    /** Resolves once all changes of this process are in the database. */
    settled(): Promise<void>
  }

/** How often the rows of other processes are read. */
const pollEveryMs = 1000
/** How far the database's clock may be behind ours. */
const clockSkewMs = 250

const channel = 'model-health'
/** How often a failure is judged again, because another process wrote one meanwhile. */
const maxWrites = 5
/** The longest that the only model or key of a call cools, as a share of the longest cooling: 5 s of 60. */
const onlyShare = 1 / 12
const toSubjectName = (subject: HealthSubject, id: string): string => `${subject} ${id}`

/** Opens the health of this process; dispose it to stop polling and to finish its writes. */
export const createModelHealth = (options: ModelHealthOptions): ModelHealth => {
  const { sql, hints, clock, log, random = Math.random } = options
  const { cooling = { baseMs: 1000, maxMs: 60_000 }, disabled = { baseMs: 30_000, maxMs: 600_000 } } = options
  const entries = new Map<string, HealthEntry>()
  /** Failures that closed nothing yet. */
  const suspects = new Map<string, readonly SeenFailure[]>()
  /** When a subject last succeeded. */
  const goodAt = new Map<string, number>()
  /** Writes of one subject are sequential; its row is not read meanwhile. */
  const writing = new Map<string, Promise<unknown>>()
  let changes = new AbortController()
  const nowMs = (): number => clock.monotonicMs()

  const notify = (): void => {
    changes.abort()
    changes = new AbortController()
  }
  const set = (name: string, entry: HealthEntry): void => {
    const before = entries.get(name)?.state
    entries.set(name, entry)
    if (before !== entry.state) notify()
  }

  const poll = async (): Promise<void> => {
    if (sql === null) return
    const busy = new Set(writing.keys())
    const known = await readUnhealthy(sql, nowMs)
    const rows = known.map(({ subject, id, entry }) => ({ name: toSubjectName(subject, id), entry }))
    // a row written meanwhile is newer than the one read
    const isOld = (name: string): boolean => busy.has(name) || writing.has(name)
    const unhealthy = new Set(rows.map(({ name }) => name))
    for (const name of [...entries.keys()])
      if (!unhealthy.has(name) && !isOld(name) && entries.delete(name)) notify()
    for (const { name, entry } of rows) if (!isOld(name)) set(name, entry)
  }
  const write = <T>(names: readonly string[], work: (sql: Sql) => Promise<T>): Promise<T | undefined> => {
    if (sql === null) return Promise.resolve(undefined)
    const before = Promise.all(names.map((name) => writing.get(name)))
    const done = before
      .then(() => work(sql))
      .catch((error: unknown) => {
        log.warn({ subjects: names, error: String(error) }, 'health could not be written for other processes')
        return undefined
      })
      .finally(() => {
        for (const name of names) if (writing.get(name) === done) writing.delete(name)
        hints?.publish(channel, '')
      })
    for (const name of names) writing.set(name, done)
    return done
  }

  /** Half fixed, half random: calls that wait for the same subject come apart. */
  const toWaitMs = (state: 'cooling' | 'disabled', failures: number): number => {
    const { baseMs, maxMs } = state === 'cooling' ? cooling : disabled
    return Math.min(maxMs, baseMs * 2 ** Math.min(failures - 1, 30)) * (0.5 + random() / 2)
  }
  /** Those that have not failed there come first. */
  const dueAtMs = (entry: HealthEntry, source: FailureSource | undefined): number => {
    const own = source === undefined ? 0 : countOwnFailures(entry, source)
    return entry.dueAtMs + Math.min(cooling.maxMs * onlyShare, cooling.baseMs * own)
  }
  const find = (subject: HealthSubject, id: string, source?: FailureSource): HealthEntry | null => {
    const entry = entries.size === 0 ? undefined : entries.get(toSubjectName(subject, id))
    return entry === undefined || (source !== undefined && !isClosedFor(entry, source)) ? null : entry
  }

  const unsubscribe = hints?.subscribe(channel, () => void poll().catch(() => {}))
  const polling =
    sql === null ? null : repeatWork(poll, pollEveryMs, clock, log, 'polling the health of models')

  return {
    stateOf(subject, id, source) {
      const entry = find(subject, id, source)
      if (entry === null) return null
      const leftMs = dueAtMs(entry, source) - nowMs()
      const until = new Date(clock.now().getTime() + leftMs).toISOString()
      return { state: entry.state, until, due: leftMs <= 0 }
    },
    dueInMs(subject, id, source) {
      const entry = find(subject, id, source)
      return entry === null ? null : Math.max(0, dueAtMs(entry, source) - nowMs())
    },
    async claim(refs, forMs) {
      const named = refs.map(({ subject, id }) => ({ subject, id, name: toSubjectName(subject, id) }))
      for (let isLast = false; ; isLast = true) {
        const known = named.flatMap((ref) => {
          const entry = entries.get(ref.name)
          return entry === undefined ? [] : [{ ...ref, entry }]
        })
        const leftMs = Math.max(0, ...known.map(({ entry }) => entry.dueAtMs - nowMs()))
        if (leftMs > 0) {
          // the database's clock counts, and may be a moment behind
          const isOpen = known.every(({ entry }) => entry.dueAtMs <= nowMs() || entry.state !== 'probing')
          if (!isLast || !isOpen || leftMs > clockSkewMs) return false
          await clock.sleep(leftMs + 1)
        }
        if (known.length === 0) return true
        const probing = (): void => {
          for (const { name, entry } of known)
            set(name, { ...entry, state: 'probing', dueAtMs: nowMs() + forMs })
        }
        probing()
        const names = known.map(({ name }) => name)
        // without the database each process tries for itself
        if (sql === null || (await write(names, (to) => writeClaim(to, known, forMs))) !== false) {
          probing()
          return true
        }
        await poll().catch(() => {})
        if (isLast) return false
      }
    },
    succeeded(subject, id, { isProbe, anyway = false, source }) {
      const name = toSubjectName(subject, id)
      suspects.delete(name)
      goodAt.set(name, nowMs())
      const entry = entries.get(name)
      // what failed for others only, a while ago, is over
      const isOver =
        entry !== undefined &&
        source !== undefined &&
        entry.state === 'cooling' &&
        entry.dueAtMs <= nowMs() &&
        !isClosedFor(entry, source)
      if (!anyway && !isOver && !(isProbe && entry !== undefined)) return
      if (entries.delete(name)) notify()
      void write([name], (to) => writeHealthy(to, { subject, id }, anyway || isOver))
    },
    failed(subject, id, { kind, code, message, retryAfterMs }, how) {
      const name = toSubjectName(subject, id)
      const { source, model = null, isProbe, isStrong = false, isOnly = false } = how
      const failure: NewFailure = {
        kind,
        isProbe,
        retryAfterMs,
        isStrong: isStrong || retryAfterMs !== undefined,
        evidence: source === undefined ? null : toEvidence(source, model, nowMs()),
        maxMs: isOnly && kind === 'cool' ? cooling.maxMs * onlyShare : Number.POSITIVE_INFINITY,
      }
      const known = suspects.get(name) ?? []
      const add = (before: HealthEntry | undefined): HealthEntry | null => {
        const context = {
          suspects: known,
          goodAtMs: goodAt.get(name) ?? Number.NEGATIVE_INFINITY,
          nowMs: nowMs(),
        }
        return addFailure(before, failure, context, toWaitMs)
      }
      const next = add(entries.get(name))
      if (next === null) {
        if (failure.evidence !== null) suspects.set(name, addEvidence(known, failure.evidence))
        return
      }
      suspects.delete(name)
      set(name, next)
      const error: LastError = { code, message, at: clock.now().toISOString() }
      void write([name], async (to) => {
        for (let attempt = 0; attempt < maxWrites; attempt++) {
          const { entry, at } = await readEntry(to, { subject, id }, nowMs)
          const stored = add(entry)
          if (stored === null) {
            if (entry) set(name, entry)
            return
          }
          if (!(await writeEntry(to, { subject, id }, stored, { error, at, nowMs: nowMs() }))) continue
          set(name, stored)
          return
        }
        log.debug({ subject: name }, 'other processes reported it at the same time')
      })
    },
    release(subject, id) {
      const name = toSubjectName(subject, id)
      const entry = entries.get(name)
      if (entry?.state !== 'probing') return
      set(name, { ...entry, state: 'cooling', dueAtMs: nowMs() })
      void write([name], (to) => writeRelease(to, { subject, id }))
    },
    async changed(ms, signal) {
      await clock.sleep(ms, AbortSignal.any([signal, changes.signal])).catch(() => {})
      signal.throwIfAborted()
    },
    async settled() {
      await Promise.all(writing.values())
    },
    async [Symbol.asyncDispose]() {
      await polling?.stop()
      await (await unsubscribe)?.()
      await Promise.all(writing.values())
    },
  }
}
