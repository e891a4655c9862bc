/**
 * The closed set of things that can go wrong, distinguished by `code` and never by text.
 * `remedy` says the next step to take; `detail` is data a program can use.
 */
export const errorCodes = [
  // requests
  'malformed_json',
  'invalid_request',
  'unauthorized',
  'forbidden',
  'not_found',
  'idempotency_conflict',
  'session_of_another_user',
  'run_ended',
  'run_not_failed',
  'has_effects',
  'has_payments',
  'no_prompt',
  'input_answered',
  'already_exists',
  'in_use',
  'upload_offset',
  'quota_exceeded',
  'budget_exhausted',
  'payload_too_large',
  'too_many_requests',
  // models
  'model_unauthorized',
  'model_rate_limited',
  'model_unavailable',
  'model_timeout',
  'model_bad_reply',
  'model_bad_request',
  'model_content_filtered',
  'model_context_too_long',
  'model_unreadable_answer',
  'no_model_available',
  // runs
  'bad_tool_call',
  'poison',
  'expired',
  'cancelled',
  'node_failed',
  'lease_lost',
  'input_expired',
  'effect_unknown',
  'effect_refused',
  // the machine
  'invalid_settings',
  'egress_refused',
  'secret_unreadable',
  'invalid_graph',
  'database_unavailable',
  'queue_unavailable',
  'server_unreachable',
  'data_dir_locked',
  'internal',
] as const

/** One of `errorCodes`. */
export type ErrorCode = (typeof errorCodes)[number]

/**
 * An error with a code, a message that says what is wrong and a remedy that says what to do.
 *
 * @example
 * ```ts
 * import { MasonError } from 'mason-runtime'
 *
 * throw new MasonError('invalid_settings', 'SHOP_URL is not set', { remedy: 'set it to the address of the shop' })
 * ```
 */
export class MasonError extends Error {
  readonly code: ErrorCode
  readonly remedy: string | undefined
  readonly detail: unknown

  constructor(
    code: ErrorCode,
    message: string,
    options: { remedy?: string; detail?: unknown; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause })
    this.name = 'MasonError'
    this.code = code
    this.remedy = options.remedy
    this.detail = options.detail
  }
}

/** `invalid_settings`: what is wrong with a setting, or a file of the product, and what to do. */
export const toSettingsError = (message: string, remedy: string, cause?: unknown): MasonError =>
  new MasonError('invalid_settings', message, { remedy, cause })

/**
 * Thrown by the `send` of a side effect where nothing happened: the provider refused, or nothing was sent. The call gets the
 * message as its error, and the model goes on. Any other error says that it is not known whether the provider acted.
 *
 * @example
 * ```ts
 * import { EffectRefusedError, type EffectRequest } from 'mason-runtime'
 *
 * const send: EffectRequest['send'] = async (body, key, checkLease, signal) => {
 *   checkLease()
 *   const headers = { 'Idempotency-Key': key }
 *   const response = await fetch('https://pay.example/refunds', { method: 'POST', body, headers, signal })
 *   if (response.status === 402) throw new EffectRefusedError('the card has expired')
 *   return response.text()
 * }
 * ```
 */
export class EffectRefusedError extends MasonError {
  constructor(message: string, options: { remedy?: string; cause?: unknown } = {}) {
    super('effect_refused', message || 'the provider refused it', options)
    this.name = 'EffectRefusedError'
  }
}

/**
 * Whether this is a MasonError, of one of the codes where any are named.
 *
 * @example
 * ```ts
 * import { isMasonError } from 'mason-runtime'
 *
 * const isGone = (error: unknown): boolean => isMasonError(error, 'not_found')
 * ```
 */
export const isMasonError = (error: unknown, ...codes: ErrorCode[]): error is MasonError =>
  error instanceof MasonError && (codes.length === 0 || codes.includes(error.code))

/** A refusal by a budget that ends so soon that a job or a schedule waits for it. */
export const passesSoon = (error: unknown): boolean =>
  isMasonError(error, 'budget_exhausted') && (error.detail as { retry_after_s: number }).retry_after_s <= 60

/** The message of anything thrown, with that of its cause where it says nothing itself. */
export const toErrorMessage = (error: unknown): string => {
  const none = 'an error without a message'
  try {
    if (typeof error !== 'object' || error === null) return String(error ?? '') || none
    const { message, cause, errors, name } = error as Partial<AggregateError>
    const text = message ?? (error instanceof Error ? '' : JSON.stringify(error))
    const deeper = cause ?? errors?.[0]
    if (deeper === undefined || (text !== '' && text !== 'fetch failed')) return text || name || none
    return [text, toErrorMessage(deeper)].filter(Boolean).join(': ')
  } catch {
    return none
  }
}

/** Anything thrown, as one of ours. */
export const toMasonError = (error: unknown, code: ErrorCode = 'internal'): MasonError =>
  error instanceof MasonError ? error : new MasonError(code, toErrorMessage(error), { cause: error })
