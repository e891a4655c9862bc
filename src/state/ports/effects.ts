/**
 * What a side effect needs: bytes fixed before the first send, and how to find out what became of them.
 *
 * @example
 * ```ts
 * import type { EffectRequest } from 'mason-runtime'
 *
 * const refund: EffectRequest = {
 *   class: 'keyed',
 *   windowMs: 86_400_000,
 *   request: JSON.stringify({ order: 'SO-1' }),
 *   async send(body, key, checkLease, signal) {
 *     checkLease()
 *     const headers = { 'Idempotency-Key': key }
 *     const response = await fetch('https://pay.example/refunds', { method: 'POST', body, headers, signal })
 *     return response.text()
 *   },
 * }
 * ```
 */
export type EffectRequest = {
  /** keyed: the provider dedupes by our key within `windowMs`; queryable: `lookup` knows; manual: neither. */
  class: 'keyed' | 'queryable' | 'manual'
  windowMs?: number
  request: string
  /** The response is stored when it comes, not only with the action: the call goes on with it after a take-over. */
  storesResponse?: true
  /**
   * Resolves with the provider's response, a refusal too, or throws an `EffectRefusedError` where nothing happened. Any other
   * error says that it is not known whether it acted.
   * `checkLease` throws `lease_lost` where another worker may have the call by now: call it in the moment before the
   * first byte, as the `beforeSend` of egress is.
   */
  send(request: string, key: string, checkLease: () => void, signal: AbortSignal): Promise<string>
  /** The response of an earlier send, or null when the provider never saw it. */
  lookup?(key: string, signal: AbortSignal): Promise<string | null>
}

/** A side effect whose outcome is unknown, as its error names it; `sends` counts how often it was sent. */
export type UnknownEffect = { effect_id: string; sends: number }

/** What a call gets as the response of a side effect that an operator confirmed, without knowing the provider's own. */
export const confirmedResponse = 'confirmed by an operator'

/** The settled side effect of a call, committed with its action. */
export type EffectResult = { effect_id: string; response: string }
