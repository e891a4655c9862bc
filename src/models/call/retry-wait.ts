import type { Clock } from '../../state/ports/clock.ts'
import type { ModelHealth } from '../health/model-health.ts'
import {
  type Candidate,
  type FailureSource,
  type HealthSubject,
  listHealthSubjects,
  type SkippedCandidate,
} from '../ports/call-ports.ts'
import type { ModelEntry, RegistryView } from '../ports/model-ports.ts'
import { computeBackoffMs, type RetryPolicy } from '../transport/retry-policy.ts'
import type { FailedRequest } from './call-errors.ts'

/** How one round through the candidates ended without an answer. */
export type CallRound = {
  /** The requests that failed; `isOver`: the candidate gets no other of this call. */
  tried: readonly (FailedRequest & { isOver?: boolean })[]
  /** The keys whose limits refused a request. */
  refused: readonly { candidate: Candidate; limit: string; retryAfterMs: number }[]
  /** The candidates that the chooser or the call skipped. */
  passedOver: readonly SkippedCandidate[]
  /** Whether one of those gets no other request of this call: no wait is for it. */
  isOver(skipped: SkippedCandidate): boolean
}

/** What the wait depends on. */
export type WaitOptions = {
  health: ModelHealth
  clock: Clock
  retry: RetryPolicy
  random: () => number
}

/** How often the probe of another process is polled. */
const pollMs = 1000

/** `subject`: what is closed the longest. A key cools only at a limit of its vendor. */
type ClosedCandidate = {
  model: ModelEntry
  subject: HealthSubject
  state: 'cooling' | 'probing'
  ms: number
}

/** Skipped keys and endpoints that recover by themselves soon. Disabled ones do not. */
const listClosed = (
  passedOver: readonly SkippedCandidate[],
  view: RegistryView,
  health: ModelHealth,
  source: FailureSource,
): ClosedCandidate[] =>
  passedOver.flatMap(({ model: name, key_label }) => {
    const model = view.models.get(name)
    if (model === undefined) return []
    const key = (view.keysByVendor.get(model.vendor.id) ?? []).find(({ label }) => label === key_label)
    const statuses = listHealthSubjects(model, key ?? null).flatMap(({ subject, id }) => {
      const status = health.stateOf(subject, id, source)
      const ms = health.dueInMs(subject, id, source) ?? 0
      return status === null ? [] : [{ subject, state: status.state, ms }]
    })
    const worst =
      statuses.find(({ state }) => state === 'disabled') ?? statuses.toSorted((a, b) => b.ms - a.ms)[0]
    return worst === undefined || worst.state === 'disabled' ? [] : [{ model, ...worst, state: worst.state }]
  })

/**
 * Whether a vendor cannot be reached, is out of order (or a gateway's page says so) or limits us for now. A request that was taken and not answered in
 * time does not count: it may be billed each time. docs/decisions/0044.
 */
const isOutage = ({ error: { code, retry, mayBill, page } }: FailedRequest): boolean =>
  retry &&
  (page !== undefined ||
    code === 'model_unavailable' ||
    code === 'model_rate_limited' ||
    (code === 'model_timeout' && !mayBill))

/** How long a call waits before the next round through its candidates. `round` counts from 1. */
export const planRetryWait = (
  { tried, refused, passedOver, isOver }: CallRound,
  call: { view: RegistryView; round: number; startedAtMs: number; source: FailureSource },
  { health, clock, retry, random }: WaitOptions,
) => {
  const { view, round, startedAtMs, source } = call
  const backoff = computeBackoffMs(retry, round, random)
  const findClosedMs = ({ candidate: { model, key }, error }: FailedRequest): number =>
    Math.max(
      error.retryAfterMs ?? 0,
      ...listHealthSubjects(model, key).map(({ subject, id }) => health.dueInMs(subject, id, source) ?? 0),
    )
  const retryable = tried
    .filter(({ error, isOver }) => error.retry && !isOver)
    .map((one) => ({ model: one.candidate.model, ms: Math.max(backoff, findClosedMs(one)) }))
  const limited = refused.map(({ candidate, retryAfterMs }) => ({ model: candidate.model, ms: retryAfterMs }))
  // a key at its limit is among the skipped too, and its limit holds although it is due for a probe
  const isLimited = ({ model, key_label }: SkippedCandidate): boolean =>
    refused.some(({ candidate: { model: one, key } }) => one.name === model && key?.label === key_label)
  const left = passedOver.filter((one) => !isLimited(one) && !isOver(one))
  const closed = listClosed(left, view, health, source)
  const timed = [...retryable, ...limited, ...closed.filter(({ state }) => state === 'cooling')]
  const nowMs = clock.monotonicMs()
  const inTime = ({ model, ms }: { model: ModelEntry; ms: number }): boolean =>
    nowMs + ms < startedAtMs + model.endpoint.timeouts.totalMs
  const soonest = (waits: readonly { ms: number }[]): number | null =>
    waits.length === 0 ? null : Math.min(...waits.map(({ ms }) => ms))

  const soonestMs = soonest(timed.filter(inTime))
  // a timer may fire a little early, while the candidate is still closed
  const ms = soonestMs === null ? null : Math.ceil(soonestMs) + 1
  const untilChange =
    tried.length === 0 && closed.some((one) => one.state === 'probing' && inTime({ ...one, ms: 0 }))
  return {
    /** Null: no candidate can answer within its time. */
    ms: untilChange ? Math.min(ms ?? pollMs, pollMs) : ms,
    /** The wait ends early when any health changes: a probe of another call is in flight, and no request was sent. */
    untilChange,
    /** When the first of them may be tried again, however long it takes; null: unknown. */
    earliestMs: soonest(timed),
    /** When a new call may be answered: no vendor is known to be closed after that. Null: waiting does not help. */
    outageMs: soonest([
      ...tried.filter(isOutage).map((one) => ({ ms: findClosedMs(one) })),
      ...limited,
      ...closed.map(({ state, ms: dueMs }) => ({ ms: state === 'probing' ? 0 : dueMs })),
    ]),
    /** A key has reached a limit, ours or the vendor's. */
    isLimited:
      refused.length > 0 ||
      tried.some(({ error }) => error.code === 'model_rate_limited' && error.retry) ||
      closed.some(({ subject }) => subject === 'key' || subject === 'key_model'),
  }
}

/** How long to wait before the next round. */
export type RetryWait = ReturnType<typeof planRetryWait>
