import type { Log } from '../../state/ports/log.ts'
import type {
  Candidate,
  FailureSource,
  ModelAttempt,
  ModelResponse,
  ModelSelector,
  SkippedCandidate,
} from '../ports/call-ports.ts'
import {
  addMeteredUsage,
  type CanonicalRequest,
  type MeteredUsage,
  type ModelCaller,
  type ModelEntry,
  noMeteredUsage,
  type RegistryView,
  type ResultDelta,
  toPlainUsage,
} from '../ports/model-ports.ts'
import type { ModelChoice, ModelChooser } from '../routing/choose-model-and-key.ts'
import { mayHaveActed, type ProviderError } from '../transport/provider-errors.ts'
import { maxRequests, type RetryPolicy } from '../transport/retry-policy.ts'
import { createCallError, type FailedRequest } from './call-errors.ts'
import {
  findErrorScope,
  isFinalForCandidate,
  isFinalForModel,
  isOfModel,
  isRequestError,
  toCandidateKey,
} from './error-verdicts.ts'
import {
  type RequestServices,
  releaseProbes,
  sendMeteredRequest,
  toFailureSource,
} from './metered-request.ts'
import { isStopRefusal, withStop } from './reply-end.ts'
import type { CallRound } from './retry-wait.ts'
import type { StopRefusals } from './stop-refusals.ts'
import type { UnreadAnswers } from './unread-answers.ts'

/** Counts the model calls of this process, for /metrics. */
type CallCounts = {
  /** One request to a vendor, which took `ms`; `code` is `ok` or the code of its error. */
  modelRequest(about: { vendor: string; model: string; code: string }, usage: MeteredUsage, ms: number): void
  /** A call that a candidate other than the first one answered. */
  fallback(): void
}

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
  /** How often a call asks one candidate, and how long it waits between. */
  retry: RetryPolicy
  log: Log
}

/** One call: which model, what it is asked, on whose behalf, and where its text goes. */
export type ModelCall = {
  selector: ModelSelector
  ask: CanonicalRequest
  caller: ModelCaller
  onDelta(delta: ResultDelta, attempt: number): void
}

/** Milliseconds that a probe may take beyond the timeout of its first byte. */
const probeSlackMs = 1000

/** Starts one call. It keeps its failed requests, its attempts and its usage over all rounds. */
export const startCall = (
  services: CallServices,
  { selector, ask, caller, onDelta }: ModelCall,
  signal: AbortSignal,
) => {
  const { health, clock, log, counts, unread, stops, retry } = services
  const startedAtMs = clock.monotonicMs()
  const source: FailureSource = {
    ...toFailureSource(caller, ask),
    excuses: (subject, id) => subject === 'key' && refusedKeys.get(id)?.length === 1,
  }
  const attempts: ModelAttempt[] = []
  /** The last failure of each candidate. */
  const tried = new Map<string, FailedRequest>()
  /** How often each candidate was asked the same, and those that get no other request of this call. */
  const timesAsked = new Map<string, number>()
  const over = new Set<string>()
  /** Models that do not exist, that cannot write what is asked, or whose answers cannot be read. */
  const useless = new Set<string>()
  /** Keys that were refused with a model: a gateway may have meant the key of that model's own vendor. */
  const refusedKeys = new Map<string, FailedRequest[]>()
  /** The refusal of the request itself, after which one other vendor is asked. */
  let refusal: FailedRequest | undefined
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
  const claimProbes = async ({ model, probes }: Candidate): Promise<boolean> =>
    probes.length === 0 || health.claim(probes, model.endpoint.timeouts.firstByteMs + probeSlackMs)

  const failed = (candidate: Candidate, error: ProviderError, place?: string): FailedRequest => {
    const { model, key } = candidate
    const one = { candidate, error: error }
    const message = `the model server ${error.what}`
    attempts.push({ model: model.name, key_label: key?.label ?? null, code: error.code, message })
    tried.set(toCandidateKey(candidate), one)
    const mayHaveJob = selector.beforeSubmit !== undefined && mayHaveActed(error)
    const isResult = error.code === 'model_content_filtered' && error.retryNow !== true
    if (isResult || mayHaveJob || (hasEmitted && selector.oneShot === true))
      throw createCallError(one, { attempts: requests, usage: toPlainUsage(usage), place, mayHaveJob })
    return one
  }

  /** The model with a first-byte limit that leaves time for `rest` others. */
  const withTimeLeft = (model: ModelEntry, rest: number): ModelEntry => {
    const { endpoint } = model
    const { firstByteMs, totalMs } = endpoint.timeouts
    const shareMs = Math.ceil((startedAtMs + totalMs - clock.monotonicMs()) / (rest + 1))
    if (firstByteMs <= shareMs) return model
    return { ...model, endpoint: { ...endpoint, timeouts: { ...endpoint.timeouts, firstByteMs: shareMs } } }
  }

  /** An answer with a key that another model's request had seen refused: it is that model that the key may not use. */
  const clearKey = ({ key }: Candidate): void => {
    if (key === null) return
    const [before] = refusedKeys.get(key.id) ?? []
    if (before === undefined) return
    const { candidate, error } = before
    health.succeeded('key', key.id, { isProbe: false, anyway: true })
    health.failed(
      'key_model',
      `${key.id} ${candidate.model.id}`,
      { kind: 'disable', code: error.code, message: `the model server ${error.what}` },
      { isProbe: false },
    )
  }

  /** Asks one candidate. Throws an error that another candidate could not fix. */
  const askCandidate = async (
    chosen: Candidate,
    rest: number,
  ): Promise<ModelResponse | FailedRequest | CallRound['refused'][number]> => {
    let candidate = chosen
    const { model } = candidate
    const name = toCandidateKey(candidate)
    using _busy = services.chooser.busy(model.id)
    let entry = model
    for (;;) {
      const attempt = requests + 1
      const asked = withStop(keepVendorReasoning(ask, model, services.registry.view), entry)
      const sent = await sendMeteredRequest(
        services,
        {
          candidate: { ...candidate, model: withTimeLeft(model, rest) },
          ask: asked,
          role: selector.role,
          caller,
          source,
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
      const took = sent.usage ?? noMeteredUsage
      usage = addMeteredUsage(usage, took)
      const code = outcome.ok ? 'ok' : outcome.error.code
      counts?.modelRequest({ vendor: model.vendor.name, model: model.name, code }, took, sent.ms)
      if (outcome.ok) {
        if (tried.size > 0 && !tried.has(name)) counts?.fallback()
        clearKey(candidate)
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
      // its probes have their verdict
      candidate = { ...chosen, probes: [] }
      const mayGoOn = requests < maxRequests
      if (error.retryNow === true && mayGoOn) continue
      const times = (timesAsked.get(name) ?? 0) + 1
      timesAsked.set(name, times)
      if (times >= retry.attempts || !mayGoOn) over.add(name)
      // the next try may be written well
      else if (error.meaning === 'bad_output') continue
      if (isFinalForCandidate(error)) over.add(name)
      return one
    }
  }

  /** Why a candidate is not asked in this round; null: it is. */
  const findPassReason = ({ model, key }: Candidate, down: ReadonlySet<string>): string | null => {
    const refused = key === null ? [] : (refusedKeys.get(key.id) ?? [])
    if (refusal?.candidate.model.vendor.id === model.vendor.id) return 'its vendor refused the request'
    if (useless.has(model.id)) return 'another key would not help'
    if (down.has(model.endpoint.id)) return 'its endpoint failed just now'
    if (down.has(model.id)) return 'it failed with another key just now'
    if (refused.some(({ candidate }) => candidate.model.id === model.id) || refused.length > 1)
      return 'its key was refused just now'
    if (over.has(toCandidateKey({ model, key }))) return 'it was asked often enough'
    if (requests >= maxRequests) return `the call has sent ${maxRequests} requests`
    const isLate = clock.monotonicMs() >= startedAtMs + model.endpoint.timeouts.totalMs
    return isLate && requests > 0 ? 'no time was left for it' : null
  }

  /** Notes what an error makes useless, for this round or for the call. */
  const noteFailure = (one: FailedRequest, down: Set<string>): void => {
    const { error, candidate } = one
    const { model, key } = candidate
    const scope = findErrorScope(error)
    if (scope === 'endpoint') down.add(model.endpoint.id)
    if (scope === 'model') down.add(model.id)
    if (isFinalForModel(error)) useless.add(model.id)
    if (scope === 'key' && key !== null && !error.retry && (candidate.only.key || refusedKeys.has(key.id)))
      refusedKeys.set(key.id, [...(refusedKeys.get(key.id) ?? []), one])
  }

  return {
    startedAtMs,
    source,
    tried: tried as ReadonlyMap<string, FailedRequest>,
    spent: () => ({ attempts: requests, usage: toPlainUsage(usage) }),
    /** Asks the candidates one after the other, each once. Returns the answer, or how all of them ended. */
    async runRound(choice: ModelChoice): Promise<{ response: ModelResponse } | CallRound> {
      const ofRound: FailedRequest[] = []
      const refused: CallRound['refused'][number][] = []
      const passedOver: SkippedCandidate[] = []
      const models = new Set<string>()
      const down = new Set<string>()
      for (const candidate of choice.candidates) {
        const { model, key } = candidate
        const pass = (reason: string, publicReason?: string): void => {
          passedOver.push({
            model: model.name,
            key_label: key?.label ?? null,
            reason,
            ...(publicReason && { publicReason }),
          })
        }
        const reason = findPassReason(candidate, down)
        if (reason !== null) pass(reason)
        else if (!(await claimProbes(candidate))) pass('is being tried by another call')
        else {
          models.add(model.id)
          const end = await askCandidate(candidate, choice.models - models.size)
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
          noteFailure(end, down)
          // one other vendor may see the request in another way
          if (refusal !== undefined) break
          if (isRequestError(end.error) && !isOfModel(end.error)) refusal = end
        }
      }
      const own = refusal && [...tried.values()].find(({ error }) => isRequestError(error))
      if (own) throw createCallError(own, { attempts: requests, usage: toPlainUsage(usage) })
      // what another key of a model cannot answer either is worth no wait
      const failures = ofRound
        .filter(({ candidate: { model }, error }) => !useless.has(model.id) || isFinalForModel(error))
        .map((one) => ({ ...one, isOver: over.has(toCandidateKey(one.candidate)) }))
      const isOver = (skipped: SkippedCandidate): boolean =>
        [...tried].some(([id, { candidate }]) => {
          const isSame = over.has(id) && (candidate.key?.label ?? null) === skipped.key_label
          return candidate.model.name === skipped.model && (useless.has(candidate.model.id) || isSame)
        })
      return { tried: failures, refused, passedOver: [...choice.passedOver, ...passedOver], isOver }
    },
  }
}
