import { randomBytes } from 'node:crypto'
import type { Clock } from '../../../state/ports.ts'
import { estimateTokens } from '../../../state/tokens.ts'
import type { Candidate } from '../call-ports.ts'
import { verdictOf } from '../health/blame.ts'
import type { Health } from '../health/health.ts'
import type {
  Caller,
  KeyEntry,
  Meter,
  MeteredUsage,
  ModelAsk,
  Provider,
  ProviderOutcome,
  Registry,
  Reservation,
  Reserved,
  ResultDelta,
  Settlement,
} from '../ports.ts'
import type { Fault } from '../wire/faults.ts'
import { estimateOf, estimateOfResult } from './estimate.ts'
import { withoutKey } from './failure.ts'

export type RequestParts = {
  providers: Record<'openai' | 'http', Provider>
  meter: Meter
  health: Health
  clock: Clock
  registry: Pick<Registry, 'view'>
  /** Takes known secrets out of what vendors say. */
  redact(text: string): string
}

/** What one provider request is about. */
export type OneRequest = {
  candidate: Candidate
  ask: ModelAsk
  role: string
  caller: Caller
  usedIds: readonly string[]
  endsAtMs: number
  onDelta(delta: ResultDelta): void
  onRaw?(raw: unknown): void
  /** An admin's own: it counts for health whatever the state was. */
  anyway?: boolean
}

/** After the end of a call its last request may still be on its way to the ledger. */
const settlingMs = 60_000

const reservationOf = (
  { candidate, ask, role, caller, endsAtMs }: OneRequest,
  nowMs: number,
): Reservation => ({
  request_id: `req_${randomBytes(12).toString('hex')}`,
  caller,
  role,
  model: candidate.model,
  key: candidate.key,
  estimate: estimateOf(ask, candidate),
  expiresInMs: Math.max(0, endsAtMs - nowMs) + settlingMs,
})

/** Rotated or deleted while it was used: what its old secret met says nothing of the one that serves now. */
const isReplaced = ({ view }: Pick<Registry, 'view'>, key: KeyEntry | null): boolean => {
  if (key === null) return false
  const now = view.keysByVendor.get(key.vendor_id)?.find(({ id }) => id === key.id)
  return now?.secret?.reveal() !== key.secret?.reveal()
}

/** A fault as it may be shown. A refusal of a secret that was replaced meanwhile is worth another round. */
const shownFault = (
  fault: Fault,
  key: KeyEntry | null,
  { registry, redact }: Pick<RequestParts, 'registry' | 'redact'>,
): Fault => ({
  ...fault,
  what: redact(withoutKey(fault.what, key)),
  retry: fault.retry || (fault.code === 'model_unauthorized' && isReplaced(registry, key)),
})

/** Tells health what became of a request; what was probed and told nothing is free for the next probe. */
const judge = (
  health: Health,
  { model, key, probes }: Candidate,
  fault: Fault | null,
  { anyway, replaced = false }: { anyway: boolean; replaced?: boolean },
): void => {
  const verdict = verdictOf(fault)
  const error = { code: fault?.code ?? '', message: `the model server ${fault?.what ?? ''}` }
  const asked = fault?.retryAfterMs === undefined ? {} : { retryAfterMs: fault.retryAfterMs }
  if (key !== null) {
    const isProbe = probes.key
    if (verdict.key === 'good') health.succeeded('key', key.id, { isProbe, anyway })
    else if (verdict.key !== 'unknown' && !replaced)
      health.failed(
        'key',
        key.id,
        { kind: verdict.key, ...error, ...(verdict.key === 'cool' && asked) },
        { isProbe },
      )
    else if (isProbe) health.release('key', key.id)
  }
  const isProbe = probes.endpoint
  const { id } = model.endpoint
  if (verdict.endpoint === 'good') health.succeeded('endpoint', id, { isProbe, anyway })
  else if (verdict.endpoint === 'bad')
    health.failed('endpoint', id, { kind: 'cool', ...error, ...asked }, { isProbe })
  else if (isProbe) health.release('endpoint', id)
}

/** Gives back what was claimed for a request that was not made. */
export const releaseProbes = (health: Health, { model, key, probes }: Candidate): void => {
  if (probes.key && key !== null) health.release('key', key.id)
  if (probes.endpoint) health.release('endpoint', model.endpoint.id)
}

type Heard = { usage: MeteredUsage | null; text: string; bytes: boolean; sent: boolean }

const settlementOf = (
  outcome: ProviderOutcome | null,
  estimate: Reservation['estimate'],
  heard: Heard,
  ms: number,
): Settlement => {
  const usage = (outcome?.ok ? outcome.result.usage : outcome?.usage) ?? heard.usage
  const completion_tokens = outcome?.ok ? estimateOfResult(outcome.result) : estimateTokens(heard.text)
  // who is left in the middle, or is too slow, bills what he was sent, though nobody waited for his answer
  const left = outcome === null ? heard.sent : !outcome.ok && outcome.fault.mayBill === true
  const came = outcome?.ok === true || heard.bytes || left
  return {
    status: outcome === null ? 'aborted' : outcome.ok ? 'succeeded' : 'failed',
    error_code: outcome?.ok === false ? outcome.fault.code : null,
    usage,
    estimate: came ? { prompt_tokens: estimate.prompt_tokens, completion_tokens } : null,
    ms,
  }
}

const nothingSent = { status: 'aborted', error_code: null, usage: null, estimate: null, ms: 0 } as const

/** Who leaves does not wait for a slow database; what it grants after that is given back. */
const reserve = async (meter: Meter, reservation: Reservation, signal: AbortSignal): Promise<Reserved> => {
  signal.throwIfAborted()
  const reserved = meter.reserve(reservation)
  let leave = (): void => {}
  const left = new Promise<never>((_, reject) => {
    leave = () => reject(signal.reason)
    signal.addEventListener('abort', leave)
  })
  try {
    return await Promise.race([reserved, left])
  } catch (error) {
    const giveBack = ({ granted }: Reserved) => granted && meter.settle(reservation, nothingSent)
    reserved.then(giveBack).catch(() => {})
    throw error
  } finally {
    signal.removeEventListener('abort', leave)
  }
}

export type Made = { outcome: ProviderOutcome; usage: MeteredUsage | null; ms: number }

/**
 * One provider request: reserved before, settled after, judged by health. Gives the limit that refused it, or its
 * outcome. Rejects only when the caller aborts, and then it is metered too.
 */
export const makeRequest = async (
  parts: RequestParts,
  request: OneRequest,
  signal: AbortSignal,
): Promise<Extract<Reserved, { granted: false }> | Made> => {
  const { providers, meter, health, clock } = parts
  const { candidate, ask, usedIds, endsAtMs, onDelta, onRaw, anyway = false } = request
  const { model, key } = candidate
  const provider = providers[model.endpoint.protocol]
  const begin = async () => {
    // first, or what was reserved would be sent later than it counts
    if (key !== null) await provider.prepare?.()
    const reservation = reservationOf(request, clock.monotonicMs())
    return { reservation, reserved: await reserve(meter, reservation, signal) }
  }
  const { reservation, reserved } = await begin().catch((error: unknown) => {
    releaseProbes(health, candidate)
    throw error
  })
  if (!reserved.granted) return reserved
  const startedAtMs = clock.monotonicMs()
  const heard: Heard = { usage: null, text: '', bytes: false, sent: !signal.aborted }
  let { probes } = candidate
  let outcome: ProviderOutcome | null = null
  try {
    const sent = await provider.send(
      {
        model,
        key,
        ask,
        endsAtMs,
        usedIds,
        onDelta(delta) {
          // the first piece of an answer proves both: whoever waits for the probe need not wait for its end
          if (probes.key || probes.endpoint) {
            judge(health, { ...candidate, probes }, null, { anyway })
            probes = { key: false, endpoint: false }
          }
          heard.bytes = true
          heard.text += delta.text + delta.reasoning
          onDelta(delta)
        },
        onUsage: (usage) => {
          heard.usage = usage
        },
        ...(onRaw && { onRaw }),
      },
      signal,
    )
    outcome = sent.ok ? sent : { ...sent, fault: shownFault(sent.fault, key, parts) }
    const fault = outcome.ok ? null : outcome.fault
    const replaced = fault !== null && isReplaced(parts.registry, key)
    judge(health, { ...candidate, probes }, fault, { anyway, replaced })
    const ms = clock.monotonicMs() - startedAtMs
    return { outcome, usage: (outcome.ok ? outcome.result.usage : outcome.usage) ?? heard.usage, ms }
  } catch (error) {
    releaseProbes(health, { ...candidate, probes })
    throw error
  } finally {
    meter.settle(
      reservation,
      settlementOf(outcome, reservation.estimate, heard, Math.round(clock.monotonicMs() - startedAtMs)),
    )
  }
}
