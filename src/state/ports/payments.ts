import type { WaitRequest } from './waits.ts'

/** What a merchant signed: a cart of AP2 0.1 as JSON, or a checkout of AP2 0.2 as a JWT. `id` is the merchant's. */
export type SignedCart = { version: '0.1' | '0.2'; id: string; text: string }

/** How a cart is to be paid. `method`: one that the cart names; null: its first. */
export type PaymentChoice = { payment_id: string; method: string | null }

/**
 * What a person is asked to sign, as texts that stay as they are. AP2 0.1: the merchant's signed cart and the contents of the
 * payment mandate. AP2 0.2: the merchant's signed checkout and the closed payment mandate.
 */
export type UnsignedPayment =
  | { version: '0.1'; cart: string; payment: string }
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

/** The payments of one run. Payee, amount and currency are in no argument: they are those of the signed cart. */
export type Payments = {
  newId(): string
  /** By which the business can pay. */
  listProviders(): Promise<{ id: string; name: string }[]>
  /** Who would be paid how much. Throws `invalid_request` for a cart that cannot be paid, with why. */
  draft(cart: SignedCart, choice: PaymentChoice): Promise<PaymentDraft>
  /** Asks the person to approve the payment; the outcome's status is `verified`, `refused`, `expired` or `failed`. Throws as `draft`. */
  requestConsent(cart: SignedCart, choice: PaymentChoice): WaitRequest
  /** Orders an approved payment. `token`: the answer to a secret question. The outcome is what became of it. */
  pay(paymentId: string, providerId: string, token: string): WaitRequest
  /** Sends the answer to what a provider asks the person for: that to a secret question. */
  answer(paymentId: string, answer: string): WaitRequest
  /** What became of a payment, with its receipt checked. Throws `not_found`. */
  readResult(paymentId: string): Promise<PaymentResult>
}

declare module './services.ts' {
  interface Services {
    payments: Payments
  }
}
