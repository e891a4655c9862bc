import type { Database } from '../../../infra/database/database.ts'
import type { Clock } from '../../../state/ports/clock.ts'
import type { Log } from '../../../state/ports/log.ts'
import type { SigningKey } from '../mandates/tokens/keys.ts'
import type { PaymentProvider } from '../providers/provider.ts'
import type { ProviderUse } from '../providers/provider-rows.ts'
import type { Trust } from '../trust/trust.ts'
import type { ReceiptSigner } from './receipts.ts'
import type { WakeRun } from './settlement.ts'

/** What the executor works with. `database` is under the role `mason_payments`. */
export type ExecutorServices = {
  database: Database
  trust: Trust
  /** Throws `not_found` for a provider that has ended or is not of the business of a new payment. */
  openProvider(providerId: string, use?: ProviderUse): Promise<PaymentProvider>
  /** Opens what was sealed to the executor for a purpose. */
  unseal(sealed: string, purpose: string): Promise<string>
  signer: ReceiptSigner
  /** The private key that open mandates name as their agent's; null: it is not that of Mason. */
  agentKey?(jwk: unknown): Promise<SigningKey | null>
  /** Whom mandates and carts are for, when Mason verifies them. */
  audience: string
  /** Decides one consent that was answered; null where none is there. */
  decideConsent?(): Promise<unknown>
  /** Signs one agent card that waits for it; false where none does. */
  signCard?(): Promise<boolean>
  wake?: WakeRun
  /** In place of the clock of the database, by which mandates are valid: for tests, whose mandates have a fixed time. */
  mandateTime?(): Date
  clock: Clock
  log: Log
  leaseMs?: number
  /** Called between steps; tests throw from it, as if the process died there. */
  onStep?(step: ExecutorStep): void | Promise<void>
}

/** A moment at which an executor may die. */
export type ExecutorStep = 'taken' | 'verified' | 'shown' | 'reserved' | 'sending' | 'answered' | 'settled'
