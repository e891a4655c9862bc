import type { Log } from '../../../state/ports.ts'
import type { Answered, Attempt, Candidate, PassedOver, Wanted } from '../call-ports.ts'
import type { Chooser } from '../choose/choose.ts'
import { usedCallIds } from '../openai/ask.ts'
import type { Caller, ModelAsk, ResultDelta } from '../ports.ts'
import { addMetered, noMetered, plainUsage } from '../usage.ts'
import type { Fault } from '../wire/faults.ts'
import type { CallCounts } from './counts.ts'
import { failureOf, type Tried } from './failure.ts'
import { withOwnReasoning } from './reasoning.ts'
import { makeRequest, type RequestParts, releaseProbes } from './request.ts'
import { isOfRequest } from './told.ts'
import type { UnreadAnswers } from './unread.ts'
import type { Round } from './wait.ts'

export type CallParts = RequestParts & {
  chooser: Chooser
  unread: UnreadAnswers
  counts: CallCounts
  log: Log
}

export type Call = {
  wanted: Wanted
  ask: ModelAsk
  caller: Caller
  onDelta(delta: ResultDelta, attempt: number): void
}

/** How far a fault reaches: what else need not be tried in this round, or with a model in this call. */
const reachOf = ({ code }: Fault): 'key' | 'endpoint' | 'model' => {
  if (code === 'model_unauthorized' || code === 'model_rate_limited') return 'key'
  return code === 'model_bad_request' || code === 'model_unreadable_answer' ? 'model' : 'endpoint'
}

/** What a half-open call may take beside its first byte until it tells anything. */
const probeSlackMs = 1000

const nameOf = ({ model, key }: Candidate): string => JSON.stringify([model.id, key?.id ?? null])

/** One call under way: what it asked of whom so far, and what that cost. */
export const beginCall = (parts: CallParts, { wanted, ask, caller, onDelta }: Call, signal: AbortSignal) => {
  const { chooser, health, clock, log, counts, unread } = parts
  const startedAtMs = clock.monotonicMs()
  const usedIds = usedCallIds(ask.messages)
  const attempts: Attempt[] = []
  /** The last word of each candidate that was asked. */
  const tried = new Map<string, Tried>()
  /** Models that are not there, or whose answers cannot be read. */
  const useless = new Set<string>()
  let usage = noMetered
  let requests = 0
  let shown = false

  /** Deltas are best effort: a listener that throws does not harm the call. */
  const tell = (delta: ResultDelta, attempt: number): void => {
    shown = true
    try {
      onDelta(delta, attempt)
    } catch (error) {
      log.warn({ role: wanted.role, error: String(error) }, 'a listener for streamed text threw')
    }
  }

  /** Takes the half-open calls that a candidate needs. False: another call has one of them. */
  const claimProbes = async ({ model, key, probes }: Candidate): Promise<boolean> => {
    const forMs = model.endpoint.timeouts.firstByteMs + probeSlackMs
    if (probes.endpoint && !(await health.claim('endpoint', model.endpoint.id, forMs))) return false
    if (!probes.key || key === null || (await health.claim('key', key.id, forMs))) return true
    if (probes.endpoint) health.release('endpoint', model.endpoint.id)
    return false
  }

  const failed = (candidate: Candidate, fault: Fault, place?: string): Tried => {
    const { model, key } = candidate
    const one = { candidate, fault }
    const message = `the model server ${fault.what}`
    attempts.push({ model: model.name, key_label: key?.label ?? null, code: fault.code, message })
    tried.set(nameOf(candidate), one)
    if ((isOfRequest(fault) && fault.again !== true) || (shown && wanted.oneShot === true))
      throw failureOf(one, { attempts: requests, usage: plainUsage(usage), place })
    return one
  }

  /** Asks one candidate. Throws what no other candidate could mend. */
  const goTo = async (candidate: Candidate): Promise<Answered | Tried | Round['refused'][number]> => {
    const { model } = candidate
    using _busy = chooser.busy(model.id)
    for (;;) {
      const attempt = requests + 1
      const made = await makeRequest(
        parts,
        {
          candidate,
          ask: withOwnReasoning(ask, model, parts.registry.view),
          role: wanted.role,
          caller,
          usedIds,
          endsAtMs: startedAtMs + model.endpoint.timeouts.totalMs,
          onDelta: (delta) => tell(delta, attempt),
        },
        signal,
      )
      if ('granted' in made) {
        releaseProbes(health, candidate)
        return { candidate, limit: made.limit, retryAfterMs: made.retryAfterMs }
      }
      requests = attempt
      const { outcome } = made
      usage = addMetered(usage, made.usage ?? noMetered)
      counts.request(model, outcome.ok ? 'ok' : outcome.fault.code, made.usage ?? noMetered)
      if (outcome.ok) {
        if (tried.size > 0 && !tried.has(nameOf(candidate))) counts.fallback()
        return { result: outcome.result, model: model.name, usage, attempts }
      }
      if (outcome.place !== undefined) unread.keep(model, outcome.place, outcome.raw ?? '')
      const one = failed(candidate, outcome.fault, outcome.place)
      if (outcome.fault.again !== true) return one
    }
  }

  return {
    startedAtMs,
    tried: tried as ReadonlyMap<string, Tried>,
    spent: () => ({ attempts: requests, usage: plainUsage(usage) }),
    /** Asks the candidates one after the other: the answer, or how all of them ended. */
    async goRound(
      candidates: Iterable<Candidate>,
      chosenNot: readonly PassedOver[],
    ): Promise<{ answered: Answered } | Round> {
      const ofRound: Tried[] = []
      const refused: Round['refused'][number][] = []
      const passedOver: PassedOver[] = []
      const down = new Set<string>()
      for (const candidate of candidates) {
        const { model, key } = candidate
        const pass = (why: string, told?: string): void => {
          passedOver.push({ model: model.name, key_label: key?.label ?? null, why, ...(told && { told }) })
        }
        const isLate = clock.monotonicMs() >= startedAtMs + model.endpoint.timeouts.totalMs
        if (useless.has(model.id)) pass('another key would not mend it')
        else if (down.has(model.endpoint.id)) pass('its endpoint failed with another key just now')
        else if (isLate && requests > 0) pass('no time was left for it')
        else if (!(await claimProbes(candidate))) pass('is being tried by another call')
        else {
          const end = await goTo(candidate)
          if ('result' in end) return { answered: end }
          if ('limit' in end) {
            refused.push(end)
            const seconds = Math.ceil(end.retryAfterMs / 1000)
            pass(
              `its limit ${end.limit} is reached for the next ${seconds} s`,
              `its limit ${end.limit} is reached`,
            )
            continue
          }
          ofRound.push(end)
          const reach = reachOf(end.fault)
          if (reach === 'endpoint') down.add(model.endpoint.id)
          if (reach === 'model') useless.add(model.id)
        }
      }
      return { tried: ofRound, refused, passedOver: [...chosenNot, ...passedOver] }
    },
  }
}
