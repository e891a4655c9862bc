import type { WaitRequest } from '../../../state/ports/waits.ts'
import type { AgentRoute } from './agent-route.ts'
import type { OpenMandateTerms } from './open-mandate-terms.ts'
import type { LookUp } from './run-payments.ref.ts'

/** What a user lets an agent buy while they are not present. Amounts are in minor units of `currency`. */
export type OpenMandateLimits = {
  /** Of whom, as they name themselves in their checkouts. */
  merchants: { id: string; name: string; website: string | null }[]
  /** What, and how many of each: one of the ids. */
  items: { any_of: { id: string; title: string | null }[]; quantity: number }[]
  currency: string
  /** Of one payment. */
  max_minor: number
  /** Of all payments; null: no such limit. */
  budget_minor: number | null
  /** Null: without a budget it pays once. */
  recurrence: { frequency: string; max_occurrences: number | null } | null
  /** With what is paid. */
  instrument: { id: string; type: string }
  /** In seconds since 1970. */
  expires_at: number
}

/** One limit in plain words, from the bytes that are signed. */
export type LimitLine = { name: string; text: string }

/** The account of a user at an agent with the role of a credentials provider: it has the instrument, and an address. */
export type WalletAccount = { agent: string; user_email: string }

/** An open mandate that can be used, as the user signed it. `instrument`: the id of what pays. */
export type UsableMandate = Pick<OpenMandateLimits, 'items'> & {
  id: string
  limits: LimitLine[]
  provider_id: string
  instrument: string
  wallet: WalletAccount | null
}

/** The open mandates of the user of a run. No one but the executor of payments closes them. */
export type OpenMandates = {
  newId(): string
  /** The terms in plain words. Throws `invalid_request` with why no person can be asked for them. */
  describe(terms: OpenMandateTerms): Promise<LimitLine[]>
  /**
   * Asks the user to sign. `token`: the answer to a secret question, what is charged later; null where the provider needs none. The
   * outcome's status is `verified`, `refused`, `expired` or `failed`.
   */
  propose(id: string, terms: OpenMandateTerms, providerId: string, token: string | null): WaitRequest
  /** Those of the user that are neither revoked nor over, the latest first. */
  listUsable(): Promise<UsableMandate[]>
  /** The one of these that is named, or the only one. Throws `invalid_request` that lists all with their limits. */
  choose<Mandate extends UsableMandate>(usable: readonly Mandate[], named: string | undefined): Mandate
  /**
   * Orders the payment of a checkout that a merchant has signed, over the agents of `route` where it came over A2A: `find` looks both up.
   * Payee, amount and currency are the merchant's, instrument and wallet those that the user signed, and the limits are checked by the executor. The
   * outcome is what became of it; with `code: unresolved_constraint` the person can be asked.
   */
  pay(
    id: string,
    paymentId: string,
    find: LookUp<{ checkout: string; route: AgentRoute | null }>,
  ): WaitRequest
}

declare module '../../../state/ports/services.ts' {
  interface FeatureServices {
    mandates: OpenMandates
  }
}
