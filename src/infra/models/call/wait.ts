import type { Clock } from '../../../state/ports.ts'
import type { Candidate, PassedOver } from '../call-ports.ts'
import type { Health } from '../health/health.ts'
import type { ModelEntry, RegistryView } from '../ports.ts'
import { backoffMs, type Retry } from '../wire/retry.ts'
import type { Tried } from './failure.ts'

/** How one round through the candidates ended without an answer. */
export type Round = {
  /** Requests that failed. */
  tried: readonly Tried[]
  /** Keys whose limits refused. */
  refused: readonly { candidate: Candidate; limit: string; retryAfterMs: number }[]
  /** By the chooser and by the call. */
  passedOver: readonly PassedOver[]
}

export type WaitOptions = {
  health: Health
  clock: Clock
  retry: Retry
  random: () => number
}

export type Wait = {
  /** Null: no candidate is worth waiting for within its time. */
  ms: number | null
  /** It ends early when the health of anything changes: a half-open call of others is under way, nothing was asked. */
  untilChange: boolean
  /** When the first of them may be tried again, however long it is; null: nobody knows. */
  earliestMs: number | null
}

/** The longest sleep between two looks at a half-open call of other processes. */
const lookMs = 1000

type Closed = { model: ModelEntry; state: 'cooling' | 'probing'; ms: number }

/** Keys and endpoints among the passed over that open by themselves soon. Disabled ones do not. */
const closedOf = (passedOver: readonly PassedOver[], view: RegistryView, health: Health): Closed[] =>
  passedOver.flatMap(({ model: name, key_label }) => {
    const model = view.models.get(name)
    if (model === undefined) return []
    const key = (view.keysByVendor.get(model.vendor.id) ?? []).find(({ label }) => label === key_label)
    const subjects = [['endpoint', model.endpoint.id] as const, ...(key ? [['key', key.id] as const] : [])]
    const standings = subjects.flatMap(([subject, id]) => {
      const standing = health.stateOf(subject, id)
      return standing === null ? [] : [{ state: standing.state, ms: health.dueInMs(subject, id) ?? 0 }]
    })
    const worst =
      standings.find(({ state }) => state === 'disabled') ?? standings.toSorted((a, b) => b.ms - a.ms)[0]
    return worst === undefined || worst.state === 'disabled'
      ? []
      : [{ model, state: worst.state, ms: worst.ms }]
  })

/** How long a call waits before it goes round its candidates again. `round` counts from 1. */
export const waitOf = (
  { tried, refused, passedOver }: Round,
  { view, round, startedAtMs }: { view: RegistryView; round: number; startedAtMs: number },
  { health, clock, retry, random }: WaitOptions,
): Wait => {
  const backoff = backoffMs(retry, round, random)
  const again = tried.flatMap(({ candidate: { model, key }, fault }) => {
    if (!fault.retry) return []
    const closedMs = Math.max(
      health.dueInMs('endpoint', model.endpoint.id) ?? 0,
      key === null ? 0 : (health.dueInMs('key', key.id) ?? 0),
    )
    return [{ model, ms: Math.max(backoff, fault.retryAfterMs ?? 0, closedMs) }]
  })
  const limited = refused.map(({ candidate, retryAfterMs }) => ({ model: candidate.model, ms: retryAfterMs }))
  // a key at its limit stands among the passed over too, and its limit holds though it is due for a probe
  const isLimited = ({ model, key_label }: PassedOver): boolean =>
    refused.some(({ candidate: { model: one, key } }) => one.name === model && key?.label === key_label)
  const closed = closedOf(
    passedOver.filter((one) => !isLimited(one)),
    view,
    health,
  )
  const timed = [...again, ...limited, ...closed.filter(({ state }) => state === 'cooling')]
  const nowMs = clock.monotonicMs()
  const inTime = ({ model, ms }: { model: ModelEntry; ms: number }): boolean =>
    nowMs + ms < startedAtMs + model.endpoint.timeouts.totalMs
  const soonest = (waits: readonly { ms: number }[]): number | null =>
    waits.length === 0 ? null : Math.min(...waits.map(({ ms }) => ms))

  const soonestMs = soonest(timed.filter(inTime))
  // timers may ring a little early, and then what is awaited would still be closed
  const ms = soonestMs === null ? null : Math.ceil(soonestMs) + 1
  const untilChange =
    tried.length === 0 && closed.some((one) => one.state === 'probing' && inTime({ ...one, ms: 0 }))
  return {
    ms: untilChange ? Math.min(ms ?? lookMs, lookMs) : ms,
    untilChange,
    earliestMs: soonest(timed),
  }
}
