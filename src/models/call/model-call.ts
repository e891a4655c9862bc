import type { Log } from '../../state/ports/log.ts'
import { collectCallIds } from '../chat/chat-request.ts'
import type {
  Candidate,
  ModelAttempt,
  ModelResponse,
  ModelSelector,
  SkippedCandidate,
} from '../ports/call-ports.ts'
import {
  addMeteredUsage,
  type CanonicalRequest,
  type ModelCaller,
  type ModelEntry,
  noMeteredUsage,
  type RegistryView,
  type ResultDelta,
  toPlainUsage,
} from '../ports/model-ports.ts'
import type { ModelChooser } from '../routing/model-chooser.ts'
import { mayHaveActed, type ProviderError } from '../transport/provider-errors.ts'
import type { CallCounts } from './call-counts.ts'
import { createCallError, type FailedRequest } from './call-errors.ts'
import { isRequestError } from './error-messages.ts'
import { type RequestServices, releaseProbes, sendMeteredRequest } from './metered-request.ts'
import { isStopRefusal, withStop } from './reply-end.ts'
import type { CallRound } from './retry-wait.ts'
import type { StopRefusals } from './stop-refusals.ts'
import type { UnreadAnswers } from './unread-answers.ts'

/**
 * The same request with the reasoning of this model's own vendor only: for another vendor it is a private format, and it
 * is confidential. docs/decisions/0017.
 */
const keepVendorReasoning = (
  ask: CanonicalRequest,
  { vendor }: Pick<ModelEntry, 'vendor'>,
  { models }: Pick<RegistryView, 'models'>,
): CanonicalRequest => {
  const isForeign = (message: CanonicalRequest['messages'][number]): boolean =>
    message.role === 'assistant' &&
    message.reasoning !== undefined &&
    models.get(message.reasoning.by)?.vendor.id !== vendor.id
  if (!ask.messages.some(isForeign)) return ask
  const messages = ask.messages.map((message) => {
    if (!isForeign(message) || message.role !== 'assistant') return message
    const { reasoning: _, ...rest } = message
    return rest
  })
  return { ...ask, messages }
}

/** What every call needs. */
export type CallServices = RequestServices & {
  chooser: ModelChooser
  unread: UnreadAnswers
  /** Absent: a refusal of `stop` is known to its call only. */
  stops?: StopRefusals
  counts?: CallCounts
  log: Log
}

/** One call: which model, what it is asked, on whose behalf, and where its text goes. */
export type ModelCall = {
  selector: ModelSelector
  ask: CanonicalRequest
  caller: ModelCaller
  onDelta(delta: ResultDelta, attempt: number): void
}

/** What an error makes useless: the key or the endpoint for this round, or the model for this call. */
const findErrorScope = ({ code }: ProviderError): 'key' | 'endpoint' | 'model' => {
  if (code === 'model_unauthorized' || code === 'model_rate_limited') return 'key'
  return code === 'model_bad_request' || code === 'model_unreadable_answer' ? 'model' : 'endpoint'
}

/** Milliseconds that a probe may take beyond the timeout of its first byte. */
const probeSlackMs = 1000

const toCandidateKey = ({ model, key }: Candidate): string => JSON.stringify([model.id, key?.id ?? null])

/** Starts one call. It keeps its failed requests, its attempts and its usage over all rounds. */
export const startCall = (
  services: CallServices,
  { selector, ask, caller, onDelta }: ModelCall,
  signal: AbortSignal,
) => {
  const { chooser, health, clock, log, counts, unread, stops } = services
  const startedAtMs = clock.monotonicMs()
  const usedIds = collectCallIds(ask.messages)
  const attempts: ModelAttempt[] = []
  /** The last failure of each candidate. */
  const tried = new Map<string, FailedRequest>()
  /** Models that do not exist, or whose answers cannot be read. */
  const useless = new Set<string>()
  let usage = noMeteredUsage
  let requests = 0
  let hasEmitted = false
  /** How often a reply replaced its own text: a new attempt for those who follow it. */
  let restarts = 0

  /** Deltas are best effort: a listener that throws does not harm the call. */
  const emit = (delta: ResultDelta, attempt: number): void => {
    hasEmitted = true
    if (delta.restart) restarts += 1
    try {
      onDelta(delta, attempt + restarts)
    } catch (error) {
      log.warn({ role: selector.role, error: String(error) }, 'a listener for streamed text threw')
    }
  }

  /** Claims the probes that a candidate needs. False: another call has one of them. */
  const claimProbes = async ({ model, key, probes }: Candidate): Promise<boolean> => {
    const forMs = model.endpoint.timeouts.firstByteMs + probeSlackMs
    if (probes.endpoint && !(await health.claim('endpoint', model.endpoint.id, forMs))) return false
    if (!probes.key || key === null || (await health.claim('key', key.id, forMs))) return true
    if (probes.endpoint) health.release('endpoint', model.endpoint.id)
    return false
  }

  const failed = (candidate: Candidate, error: ProviderError, place?: string): FailedRequest => {
    const { model, key } = candidate
    const one = { candidate, error: error }
    const message = `the model server ${error.what}`
    attempts.push({ model: model.name, key_label: key?.label ?? null, code: error.code, message })
    tried.set(toCandidateKey(candidate), one)
    const mayHaveJob = selector.beforeSubmit !== undefined && mayHaveActed(error)
    const isFinal = isRequestError(error) && error.retryNow !== true
    if (isFinal || mayHaveJob || (hasEmitted && selector.oneShot === true))
      throw createCallError(one, { attempts: requests, usage: toPlainUsage(usage), place, mayHaveJob })
    return one
  }

  /** Asks one candidate. Throws an error that another candidate could not fix. */
  const askCandidate = async (
    candidate: Candidate,
  ): Promise<ModelResponse | FailedRequest | CallRound['refused'][number]> => {
    const { model } = candidate
    using _busy = chooser.busy(model.id)
    let entry = model
    for (;;) {
      const attempt = requests + 1
      const asked = withStop(keepVendorReasoning(ask, model, services.registry.view), entry)
      const sent = await sendMeteredRequest(
        services,
        {
          candidate,
          ask: asked,
          role: selector.role,
          caller,
          usedIds,
          endsAtMs: startedAtMs + model.endpoint.timeouts.totalMs,
          onDelta: (delta) => emit(delta, attempt),
          ...(selector.beforeSubmit && { beforeSubmit: selector.beforeSubmit }),
          ...(selector.oneShot && { oneShot: true }),
        },
        signal,
      )
      if ('granted' in sent) {
        releaseProbes(health, candidate)
        return { candidate, limit: sent.limit, retryAfterMs: sent.retryAfterMs }
      }
      requests = attempt
      const { outcome } = sent
      usage = addMeteredUsage(usage, sent.usage ?? noMeteredUsage)
      const code = outcome.ok ? 'ok' : outcome.error.code
      counts?.modelRequest(
        { vendor: model.vendor.name, model: model.name, code },
        sent.usage ?? noMeteredUsage,
        sent.ms,
      )
      if (outcome.ok) {
        if (tried.size > 0 && !tried.has(toCandidateKey(candidate))) counts?.fallback()
        const key_id = candidate.key?.id ?? null
        return { result: outcome.result, model: model.name, key_id, usage, attempts }
      }
      if (outcome.place !== undefined) unread.keep(model, outcome.place, outcome.raw ?? '')
      const isRefusedStop = ask.end && !entry.refuses_stop && isStopRefusal(outcome.error)
      if (isRefusedStop) {
        stops?.note(model)
        entry = { ...model, refuses_stop: true }
      }
      const error = isRefusedStop ? { ...outcome.error, retryNow: true } : outcome.error
      const one = failed(candidate, error, outcome.place)
      if (error.retryNow !== true) return one
    }
  }

  return {
    startedAtMs,
    tried: tried as ReadonlyMap<string, FailedRequest>,
    spent: () => ({ attempts: requests, usage: toPlainUsage(usage) }),
    /** Asks the candidates one after the other. Returns the answer, or how all of them ended. */
    async runRound(
      candidates: Iterable<Candidate>,
      skipped: readonly SkippedCandidate[],
    ): Promise<{ response: ModelResponse } | CallRound> {
      const ofRound: FailedRequest[] = []
      const refused: CallRound['refused'][number][] = []
      const passedOver: SkippedCandidate[] = []
      const down = new Set<string>()
      for (const candidate of candidates) {
        const { model, key } = candidate
        const pass = (reason: string, publicReason?: string): void => {
          passedOver.push({
            model: model.name,
            key_label: key?.label ?? null,
            reason,
            ...(publicReason && { publicReason }),
          })
        }
        const isLate = clock.monotonicMs() >= startedAtMs + model.endpoint.timeouts.totalMs
        if (useless.has(model.id)) pass('another key would not help')
        else if (down.has(model.endpoint.id)) pass('its endpoint failed with another key just now')
        else if (isLate && requests > 0) pass('no time was left for it')
        else if (!(await claimProbes(candidate))) pass('is being tried by another call')
        else {
          const end = await askCandidate(candidate)
          if ('result' in end) return { response: end }
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
          const scope = findErrorScope(end.error)
          if (scope === 'endpoint') down.add(model.endpoint.id)
          if (scope === 'model') useless.add(model.id)
        }
      }
      return { tried: ofRound, refused, passedOver: [...skipped, ...passedOver] }
    },
  }
}
