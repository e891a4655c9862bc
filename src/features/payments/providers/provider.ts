import { MasonError } from '../../../state/errors.ts'
import type { PaymentRequest } from '../ledger/orders.ts'
import type { MandatedPayment } from '../mandates/model.ts'
import type { Money } from '../mandates/money.ts'
import type { Violation } from '../mandates/violations.ts'

/** What an operation does: an `authorize` with `capture` takes the money at once. */
export type OperationKind = 'authorize' | 'capture' | 'void' | 'refund'

/**
 * What an operation asks of a provider. `amount` is in minor units. `provider_ref` names the payment at the provider; null
 * for authorize alone. `credential` is the opened token of the instrument; only authorize has one.
 */
export type ProviderOperation = {
  kind: OperationKind
  payment_id: string
  amount: Money
  payee: { id: string | null; name: string }
  provider_ref: string | null
  credential: string | null
  capture: boolean
  /** Of authorize alone. */
  order?: ApprovedOrder
}

/** A receipt that an agent sent, as it came. `problem`: why it does not count; null: it was verified, or AP2 0.1 has it unsigned. */
export type PeerReceipt = { kind: 'payment' | 'checkout'; receipt: unknown; problem: string | null }

/** What an authorization is for: the mandates as they were received, and what they say once verified. */
export type ApprovedOrder = {
  request: PaymentRequest
  payment: MandatedPayment
  /** The issuer of the trusted key that signed the cart or checkout. */
  payee_issuer: string
}

/**
 * What became of an operation. `declined`: it did not act and will not, for a reason in plain words. `pending`: a webhook or
 * a look-up says more later. `challenge`: the person must answer first; `text` is what they are asked, or the address of a redirect.
 */
export type ProviderAnswer =
  | {
      status: 'succeeded' | 'authorized' | 'voided' | 'refunded'
      provider_ref: string
      network_ref: string | null
      amount: Money
      receipts?: PeerReceipt[]
    }
  | { status: 'declined'; provider_ref: string | null; reason: string; receipts?: PeerReceipt[] }
  | { status: 'pending'; provider_ref: string }
  | { status: 'challenge'; provider_ref: string; challenge: { type: 'otp' | 'redirect'; text: string } }

/** A genuine webhook. `event_id` comes again with each delivery of it; `key` is that of the operation, null where unknown. */
export type ProviderEvent = {
  event_id: string
  key: string | null
  provider_ref: string
  answer: ProviderAnswer
}

/** It is not known whether the provider acted, and it will not say more: the payment is unknown at once. */
export class UnclearPaymentError extends MasonError {
  constructor(reason: string, cause?: unknown) {
    super('effect_unknown', reason, {
      remedy: 'find out what became of the payment where it was made, and settle it',
      cause,
    })
  }
}

/**
 * A payment provider. Every error that its functions throw means that it is not known whether the provider acted, also one of
 * `checkLease`, of a time limit, and of an answer that makes no sense: only an answer settles an operation.
 */
export type PaymentProvider = {
  /** `keyed`: it deduplicates keys for `windowMs`. `queryable`: what was sent is looked up before it is sent again. */
  class: 'keyed' | 'queryable'
  /** Milliseconds within which it deduplicates a key. */
  windowMs: number
  /** What it can do beside taking a payment at once; absent: all. */
  operations?: readonly OperationKind[]
  /** Why it cannot carry out an authorization that is otherwise verified. Runs before anything is reserved or signed. */
  findProblems?(operation: ProviderOperation): Promise<Violation[]>
  /** The bytes to store and send; pure, the same for the same operation. They hold the credential. */
  toRequest(operation: ProviderOperation): string
  /**
   * Sends bytes of `toRequest`. Resolves with an answer, a refusal too; throws only when it is not known whether it acted.
   * `checkLease` runs at the first byte; where it throws, nothing is sent.
   */
  send(request: string, key: string, checkLease: () => void, signal: AbortSignal): Promise<ProviderAnswer>
  /**
   * Shows the signed mandates to who issued the instrument, before the payment: no money moves, and it may be repeated. Resolves with
   * the credential that it gives for them, if any, or with why it refused.
   */
  present?(
    order: PaymentRequest,
    checkoutHash: string,
    key: string,
    signal: AbortSignal,
  ): Promise<{ credential: string | null } | { reason: string }>
  /** What became of a key, null when the provider never saw it. Compare the answer with `findAnswerError`. */
  lookup(key: string, signal: AbortSignal): Promise<ProviderAnswer | null>
  /**
   * Sends the answer of a challenge (an OTP): its own key, as any operation. Another `challenge` means a wrong answer and a
   * further try; `declined` means that the payment is. Compare the answer with `findAnswerError`.
   */
  answerChallenge(
    providerRef: string,
    answer: string,
    key: string,
    checkLease: () => void,
    signal: AbortSignal,
  ): Promise<ProviderAnswer>
  /**
   * Verifies signature and time of a webhook that arrived at `now`; null: not genuine, or no event of an operation. Header
   * names are in lower case.
   */
  readWebhook(headers: Record<string, string>, body: Uint8Array, now: Date): ProviderEvent | null
}

/** How a provider is reached. `window_ms`: how long it deduplicates a key; `timeout_ms`: how long one exchange may take. */
export type ProviderSettings = {
  base_url: string
  allow_private: boolean
  window_ms: number
  timeout_ms: number
}

/** What only the executor can open: the key of the provider's API, and the secret of its webhooks (`whsec_` and base64). */
export type ProviderSecrets = { api_key: string; webhook_secret: string }

/** The status of an operation that was done. */
export const toDoneStatus = ({ kind, capture }: Pick<ProviderOperation, 'kind' | 'capture'>) =>
  (
    ({
      authorize: capture ? 'succeeded' : 'authorized',
      capture: 'succeeded',
      void: 'voided',
      refund: 'refunded',
    }) as const
  )[kind]

/**
 * What is wrong with an answer to an operation, or null: another amount, another currency, or a status that this operation
 * cannot have. Such a payment becomes `unknown`, never `succeeded`.
 */
export const findAnswerError = (
  { kind, amount, capture }: Pick<ProviderOperation, 'kind' | 'amount' | 'capture'>,
  answer: ProviderAnswer,
): string | null => {
  if (answer.status === 'declined' || answer.status === 'pending') return null
  if (answer.status === 'challenge')
    return kind === 'authorize' ? null : `a challenge answers authorize alone, not ${kind}`
  const done = toDoneStatus({ kind, capture })
  if (answer.status !== done) return `the status is ${answer.status}, not ${done}`
  const { currency, minor } = answer.amount
  return currency === amount.currency && minor === amount.minor
    ? null
    : `the amount is ${minor} ${currency}, not ${amount.minor} ${amount.currency}`
}
