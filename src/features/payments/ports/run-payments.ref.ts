import type { Blobs } from '../../../state/ports/blobs.ts'
import type { WaitRequest } from '../../../state/ports/waits.ts'
import type { Json } from '../../../state/runtime-state.ts'
import type { AgentRoute } from './agent-route.ts'

/** What a merchant signed: a cart of AP2 0.1 as JSON, or a checkout of AP2 0.2 as a JWT. `id` is the merchant's. */
export type SignedCart = { version: '0.1' | '0.2'; id: string; text: string }

/**
 * How a cart is to be paid. `method`: one that the cart names; null: its first. `alias` and `token`: the instrument that the person
 * chose at a credentials provider, and in AP2 0.1 its token.
 */
export type PaymentChoice = {
  payment_id: string
  method: string | null
  alias?: string
  token?: { value: string; url: string }
}

/**
 * What a person is asked to sign, as texts that stay as they are. AP2 0.1: the merchant's signed cart, the contents of the payment mandate,
 * and the instrument that the person chose, which these do not name. AP2 0.2: the merchant's signed checkout and the closed payment mandate.
 */
export type UnsignedPayment =
  | { version: '0.1'; cart: string; payment: string; instrument?: string | undefined }
  | { version: '0.2'; checkout: string; payment: string }

/** Who would be paid how much, as the signed bytes say. `payee` is whose trusted key signed them. */
export type PaymentDraft = { payee: string; total: string }

/** What became of a payment. `receipt`: whether Mason's signed receipt of it was found and verified; null: there is none. */
export type PaymentResult = {
  status: string
  message: string
  code: string | null
  amount: { minor: number; currency: string } | null
  payee: string | null
  receipt: 'verified' | 'invalid' | null
}

/** An amount in minor units, and as a person reads it: `$1,234.56`. */
export type Price = { currency: string; minor: number; text: string }

/**
 * A cart or checkout of a merchant, to look at: nothing of it is verified. `signed`: what it can be paid by, where the merchant signed
 * it, with the id that the payment names it by. Names are one line without hidden characters.
 */
export type MerchantOffer = {
  version: '0.1' | '0.2'
  cart_id: string
  label: string
  total: Price
  /** What the total is made of: the product, then for example shipping. */
  lines: { label: string; price: Price; refund_days: number | null }[]
  expires_at: string | null
  /** The shortest of the total and of items beyond the `lines`; each of these may have its own. */
  refund_days: number | null
  merchant: string | null
  signed: { id: string; document: Json } | null
}

/** What the data parts of an agent's reply say, by the keys of AP2. `problems`: why carts in it cannot be read. */
export type ReplyParts = {
  offers: MerchantOffer[]
  problems: string[]
  /** Ways to pay that the merchant takes, as it sent them. */
  methods: Json[]
  address: Json | null
  aliases: string[] | null
  token: string | null
  risk_data: string | null
}

/**
 * Looks something up in the results of a run when a wait is started, and not at the visits after it. It reads blobs in the
 * transaction of the wait.
 */
export type LookUp<Value> = (blobs: Pick<Blobs, 'read'>) => Promise<Value>

/** The payments of one run. Payee, amount and currency are in no argument: they are those of the signed cart. */
export type Payments = {
  /** Reads what an agent answered, in both versions of AP2 and with the older names of members. */
  readParts(data: readonly { [key: string]: Json }[]): ReplyParts
  newId(): string
  /** The name of the tool that has the person approve a payment. */
  approvalTool: string
  /** By which the business can pay; `agent`: the agent of a merchant. */
  listProviders(): Promise<{ id: string; name: string; kind: 'card' | 'agent' }[]>
  /** Who would be paid how much. Throws `invalid_request` for a cart that cannot be paid, with why. The cart is known until the run is parked. */
  draft(cart: SignedCart, choice: PaymentChoice): Promise<PaymentDraft>
  /**
   * Asks the person to approve the payment; the outcome's status is `verified`, `refused`, `expired` or `failed`. The cart is that of the
   * last `draft` of this payment, else `findCart` looks it up and it is verified. Throws as `draft`.
   */
  requestConsent(
    paymentId: string,
    findCart: LookUp<SignedCart>,
    findChoice: LookUp<PaymentChoice>,
  ): WaitRequest
  /**
   * Orders an approved payment. `by`: the answer to a secret question, or the agents, of which the credentials provider is shown the
   * mandates first. The outcome is what became of it.
   */
  pay(
    paymentId: string,
    providerId: string,
    by: { token: string } | { findRoute: LookUp<AgentRoute> },
  ): WaitRequest
  /** Sends the answer to what a provider asks the person for: that to a secret question. */
  answer(paymentId: string, answer: string): WaitRequest
  /** What became of a payment, with its receipt checked. Throws `not_found`. */
  readResult(paymentId: string): Promise<PaymentResult>
}

declare module '../../../state/ports/services.ts' {
  interface FeatureServices {
    payments: Payments
  }
}
