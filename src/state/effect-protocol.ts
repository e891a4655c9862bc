/** A side effect whose intent and bytes are stored. `key` names it at the provider; `age_ms` counts from its first send. */
export type StoredEffect = {
  key: string
  request: Uint8Array
  status: 'intent' | 'sent'
  age_ms: number | null
}

/** How its row is changed, under the fence of who carries it out. */
export type EffectStore = {
  /** Notes that it is about to be sent. Throws where another process has it by now. */
  markSent(): Promise<void>
  /** Notes that it is not known what became of it. */
  markUnknown(): Promise<void>
}

/** A provider, as far as sending goes: it knows keys for `windowMs`, or looks up what became of one, or neither. */
export type EffectTarget<Response> = {
  class: 'keyed' | 'queryable' | 'manual'
  windowMs?: number
  /** Throws only when it is not known whether it acted. `checkLease` runs at the first byte. */
  send(request: string, key: string, checkLease: () => void, signal: AbortSignal): Promise<Response>
  lookup?(key: string, signal: AbortSignal): Promise<Response | null>
}

/** Share of a provider's idempotency window within which the same key is used again. */
const safeWindowShare = 0.8

/**
 * Sends a stored side effect as exactly once as its provider allows; null: it is not known what became of it, and it is not sent
 * again. One in status `sent` was sent by a process that may have died: it is sent again under its key within four fifths of the
 * window, or looked up first, or else unknown. `checkLease` throws when this process was frozen too long: it runs after a look-up and
 * before the first byte. Runs' effects and payments share it.
 */
export const sendEffect = async <Response>(
  effect: StoredEffect,
  target: EffectTarget<Response>,
  store: EffectStore,
  checkLease: () => void,
  signal: AbortSignal,
): Promise<Response | null> => {
  const decision = effect.status === 'sent' ? decideResend(effect, target) : 'send'
  if (decision === 'unknown') {
    await store.markUnknown()
    return null
  }
  signal.throwIfAborted()
  await store.markSent()
  if (decision !== 'send') {
    // last before the send: it still sees what another process sent while the database was slow
    const response = await decision.lookup(effect.key, signal)
    if (response !== null) return response
    signal.throwIfAborted()
    checkLease()
  }
  return target.send(new TextDecoder().decode(effect.request), effect.key, checkLease, signal)
}

type ResendDecision<Response> = 'send' | 'unknown' | { lookup: NonNullable<EffectTarget<Response>['lookup']> }

/** What may be done with an effect in status `sent`. */
const decideResend = <Response>(
  { age_ms }: StoredEffect,
  target: EffectTarget<Response>,
): ResendDecision<Response> => {
  if (target.class === 'keyed')
    return (age_ms ?? 0) < safeWindowShare * (target.windowMs ?? 0) ? 'send' : 'unknown'
  if (target.class !== 'queryable' || !target.lookup) return 'unknown'
  return { lookup: target.lookup.bind(target) }
}
