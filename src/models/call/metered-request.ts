import { randomBytes } from 'node:crypto'
import { sha256 } from '../../infra/lib/ids.ts'
import { unlessAborted } from '../../state/deadline.ts'
import type { Clock } from '../../state/ports/clock.ts'
import { estimateTokens } from '../../state/text/tokens.ts'
import { collectCallIds } from '../chat/chat-request.ts'
import type { ModelHealth } from '../health/model-health.ts'
import { type Candidate, type FailureSource, listHealthSubjects } from '../ports/call-ports.ts'
import {
  type CanonicalRequest,
  type KeyEntry,
  type Meter,
  type MeteredUsage,
  type ModelCaller,
  noMeteredUsage,
  type PendingJob,
  type Provider,
  type ProviderOutcome,
  type Registry,
  type Reservation,
  type ReservationResult,
  type ResultDelta,
  type Settlement,
} from '../ports/model-ports.ts'
import { createUnsentOutcome, type ProviderError } from '../transport/provider-errors.ts'
import { redactKey } from './call-errors.ts'
import { judgeRequest } from './error-verdicts.ts'
import { openReplyEnd } from './reply-end.ts'
import { openThoughts } from './thoughts.ts'
import { estimateRequest, estimateResult } from './token-estimate.ts'

/** What every provider request needs. */
export type RequestServices = {
  providers: Record<'openai' | 'http', Provider>
  meter: Meter
  health: ModelHealth
  clock: Clock
  registry: Pick<Registry, 'view'>
  /** Removes known secrets from the words of vendors. */
  redact(text: string): string
}

/** One provider request: its candidate, its content and who pays. */
export type MeteredRequest = {
  candidate: Candidate
  ask: CanonicalRequest
  role: string
  caller: ModelCaller
  endsAtMs: number
  onDelta(delta: ResultDelta): void
  onRaw?(raw: unknown): void
  beforeSubmit?: () => void
  /** What was sent on of its text cannot be taken back. */
  oneShot?: boolean
  /** Absent: made of the caller and the content. */
  source?: FailureSource
  /** A test by an admin: its result counts for health whatever the state was. */
  anyway?: boolean
}

/** After the end of a call its last request may still have to reach the ledger. */
const settlingMs = 60_000

const toReservation = (
  { candidate, ask, role, caller, endsAtMs }: MeteredRequest,
  nowMs: number,
): Reservation => ({
  request_id: `req_${randomBytes(12).toString('hex')}`,
  caller,
  role,
  tool: caller.visit?.tool ?? null,
  visit_id: caller.visit?.id ?? null,
  model: candidate.model,
  key: candidate.key,
  estimate: estimateRequest(ask, candidate),
  expiresInMs: Math.max(0, endsAtMs - nowMs) + settlingMs,
})

/** Whether the key was rotated or deleted during the request: a refusal of its old secret says nothing about the new one. */
const isReplaced = ({ view }: Pick<Registry, 'view'>, key: KeyEntry | null): boolean => {
  if (key === null) return false
  const now = view.keysByVendor.get(key.vendor_id)?.find(({ id }) => id === key.id)
  return now?.secret?.reveal() !== key.secret?.reveal()
}

/** Redacts an error. A refusal of a secret that was replaced meanwhile is retried. */
const redactError = (
  error: ProviderError,
  key: KeyEntry | null,
  { registry, redact }: Pick<RequestServices, 'registry' | 'redact'>,
): ProviderError => ({
  ...error,
  what: redact(redactKey(error.what, key)),
  retry: error.retry || (error.code === 'model_unauthorized' && isReplaced(registry, key)),
})

/** Whose requests these are, as health tells failures apart. */
export const toFailureSource = (
  { business_id, run_id }: ModelCaller,
  { messages, input, query, prompt }: CanonicalRequest,
): FailureSource => {
  let hash: string | undefined
  return {
    business: business_id,
    run: run_id,
    prompt() {
      hash ??= sha256(JSON.stringify([messages, input, query, prompt]))
      return hash
    },
  }
}

type Report = { source: FailureSource; anyway: boolean; replaced?: boolean }

/** Reports the result of a request to health; a probe without a verdict is released for the next one. */
const reportHealth = (
  health: ModelHealth,
  candidate: Candidate,
  ask: CanonicalRequest,
  error: ProviderError | null,
  { source, anyway, replaced = false }: Report,
): void => {
  const { model, key, probes, only } = candidate
  const verdicts = judgeRequest(error, ask)
  const failure = { code: error?.code ?? '', message: `the model server ${error?.what ?? ''}` }
  for (const { subject, id } of listHealthSubjects(model, key)) {
    const isProbe = probes.some((one) => one.subject === subject && one.id === id)
    const isOfKey = subject === 'key' || subject === 'key_model'
    const verdict = replaced && isOfKey && verdicts[subject] !== 'good' ? 'unknown' : verdicts[subject]
    if (verdict === 'good') health.succeeded(subject, id, { isProbe, anyway, source })
    else if (verdict === 'unknown' || (subject === 'model' && verdict.kind === 'disable' && only.model)) {
      // without another model a refusal is better than a closed one: its words say why
      if (isProbe) health.release(subject, id)
    } else {
      const { kind, isCertain, isStrong, byModel } = verdict
      const isNamed = kind === 'cool' && !byModel && error?.retryAfterMs !== undefined
      health.failed(
        subject,
        id,
        { kind, ...failure, ...(isNamed && { retryAfterMs: error.retryAfterMs }) },
        {
          isProbe,
          isStrong: isStrong === true,
          isOnly: only.model && (only.key || !isOfKey),
          // a probe of an admin has no content of a business
          ...(!isCertain && !anyway && { source }),
          ...(byModel && { model: model.id }),
        },
      )
    }
  }
}

/** Releases the probes that were claimed for a request that was not sent. */
export const releaseProbes = (health: ModelHealth, { probes }: Pick<Candidate, 'probes'>): void => {
  for (const { subject, id } of probes) health.release(subject, id)
}

/** `cut`: its end came before that of the stream, so `text` is what the vendor has written. */
type ReceivedSoFar = { usage: MeteredUsage | null; text: string; bytes: boolean; sent: boolean; cut: boolean }

/** What the vendor has counted; of a reply that was cut, only what came with its end. */
const readUsage = (outcome: ProviderOutcome | null, received: ReceivedSoFar): MeteredUsage | null =>
  (outcome?.ok ? outcome.result.usage : outcome?.usage) ?? (received.cut ? null : received.usage)

const toSettlement = (
  outcome: ProviderOutcome | null,
  estimate: Reservation['estimate'],
  received: ReceivedSoFar,
  ms: number,
): Settlement => {
  const usage = readUsage(outcome, received)
  const completion_tokens =
    outcome?.ok && !received.cut ? estimateResult(outcome.result) : estimateTokens(received.text)
  // a vendor may bill a request that was aborted or timed out, although no answer was read
  const mayBill = outcome === null ? received.sent : !outcome.ok && outcome.error.mayBill === true
  const isBillable = outcome?.ok === true || received.bytes || mayBill
  return {
    status: outcome === null ? 'aborted' : outcome.ok ? 'succeeded' : 'failed',
    error_code: outcome?.ok === false ? outcome.error.code : null,
    usage,
    estimate: isBillable ? { prompt_tokens: estimate.prompt_tokens, completion_tokens } : null,
    ms,
  }
}

/** What a reply that was cut has taken: the run counts it too. Null for any other. */
const estimateCut = ({ estimate }: Reservation, { cut, text }: ReceivedSoFar): MeteredUsage | null => {
  if (!cut) return null
  const { prompt_tokens } = estimate
  const completion_tokens = estimateTokens(text)
  const total_tokens = prompt_tokens + completion_tokens
  return { ...noMeteredUsage, prompt_tokens, completion_tokens, total_tokens }
}

const nothingSent = { status: 'aborted', error_code: null, usage: null, estimate: null, ms: 0 } as const

/** Reserves, but stops waiting when the caller aborts; a reservation granted after that is released. */
const reserve = async (
  meter: Meter,
  reservation: Reservation,
  signal: AbortSignal,
): Promise<ReservationResult> => {
  signal.throwIfAborted()
  const reserved = meter.reserve(reservation)
  return unlessAborted(reserved, signal).catch((error: unknown) => {
    const release = ({ granted }: ReservationResult) => granted && meter.settle(reservation, nothingSent)
    reserved.then(release).catch(() => {})
    throw error
  })
}

/** The outcome of a request that was sent, with its usage and its duration in milliseconds. */
export type MeteredOutcome = { outcome: ProviderOutcome; usage: MeteredUsage | null; ms: number }

/**
 * Sends one provider request: reserved before, settled after, reported to health. Returns the limit that refused it, or
 * its outcome. Rejects only when the caller aborts, and then it is metered too.
 */
export const sendMeteredRequest = async (
  services: RequestServices,
  request: MeteredRequest,
  signal: AbortSignal,
): Promise<Extract<ReservationResult, { granted: false }> | MeteredOutcome> => {
  const { providers, meter, health, clock } = services
  const { candidate, ask, endsAtMs, onDelta, onRaw, beforeSubmit, oneShot, anyway = false } = request
  const { source = toFailureSource(request.caller, ask) } = request
  const { model, key } = candidate
  const provider = providers[model.endpoint.protocol]
  const begin = async () => {
    // before the reservation, or the request would be sent later than it counts
    if (key !== null) await provider.prepare?.()
    const reservation = toReservation(request, clock.monotonicMs())
    return { reservation, reserved: await reserve(meter, reservation, signal) }
  }
  const { reservation, reserved } = await begin().catch((error: unknown) => {
    releaseProbes(health, candidate)
    throw error
  })
  if (!reserved.granted) return reserved
  const startedAtMs = clock.monotonicMs()
  const received: ReceivedSoFar = { usage: null, text: '', bytes: false, sent: !signal.aborted, cut: false }
  const end = ask.end && openReplyEnd(ask.end, clock, onDelta)
  // the language of the dialogue has thoughts of its own
  const thoughts = end ? undefined : openThoughts(oneShot !== true, onDelta)
  let { probes } = candidate
  let outcome: ProviderOutcome | null = null
  try {
    const sent = await provider.send(
      {
        model,
        key,
        ask,
        endsAtMs,
        usedIds: collectCallIds(ask.messages),
        onDelta(delta) {
          received.bytes = true
          received.text = (delta.restart ? '' : received.text) + delta.text + delta.reasoning
          ;(end ?? thoughts)?.take(delta)
        },
        // the first part of an answer proves all: calls that wait for the probe need not wait for its end
        onAnswer() {
          if (probes.length === 0) return
          reportHealth(health, { ...candidate, probes }, ask, null, { source, anyway })
          probes = []
        },
        ...(end && { over: end.signal }),
        onUsage: (usage) => {
          received.usage = usage
        },
        ...(onRaw && { onRaw }),
        ...(beforeSubmit && { beforeSubmit }),
      },
      signal,
    )
    received.cut = end?.signal.aborted === true
    outcome = sent.ok
      ? { ok: true, result: (end ?? thoughts)?.finish(sent.result) ?? sent.result }
      : { ...sent, error: redactError(sent.error, key, services) }
    const error = outcome.ok ? null : outcome.error
    const replaced = error !== null && isReplaced(services.registry, key)
    reportHealth(health, { ...candidate, probes }, ask, error, { source, anyway, replaced })
    const ms = clock.monotonicMs() - startedAtMs
    return { outcome, usage: readUsage(outcome, received) ?? estimateCut(reservation, received), ms }
  } catch (error) {
    releaseProbes(health, { ...candidate, probes })
    throw error
  } finally {
    end?.close()
    meter.settle(
      reservation,
      toSettlement(outcome, reservation.estimate, received, Math.round(clock.monotonicMs() - startedAtMs)),
    )
  }
}

/**
 * Polls a job that `candidate` made. Its submission was metered; a usage that the vendor reports with the
 * result is metered too, once however often the result is read.
 */
export const pollMeteredJob = async (
  services: RequestServices,
  request: MeteredRequest,
  jobId: string,
  signal: AbortSignal,
): Promise<ProviderOutcome | PendingJob> => {
  const { providers, meter, clock } = services
  const { candidate, ask, endsAtMs, onDelta } = request
  const { model, key } = candidate
  const provider = providers[model.endpoint.protocol]
  const startedAtMs = clock.monotonicMs()
  const sent = await provider.poll?.({ model, key, ask, endsAtMs, usedIds: [], onDelta }, jobId, signal)
  if (sent === undefined)
    return createUnsentOutcome('model_bad_request', 'cannot be asked: its protocol knows no jobs')
  if ('againInMs' in sent) return sent
  if (!sent.ok) return { ...sent, error: redactError(sent.error, key, services) }
  const { usage } = sent.result
  const hash = sha256(JSON.stringify([model.endpoint.id, jobId]))
  if (usage !== null)
    meter.settle(
      { ...toReservation(request, startedAtMs), request_id: `req_job_${hash.slice(0, 24)}` },
      { status: 'succeeded', error_code: null, usage, estimate: null, ms: clock.monotonicMs() - startedAtMs },
    )
  return sent
}
