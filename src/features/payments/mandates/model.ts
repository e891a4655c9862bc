import type { Money } from './money.ts'

/** A payment that a person approved, whichever version its mandate has: what is charged, to whom, until when. */
export type MandatedPayment = {
  version: '0.1' | '0.2'
  amount: Money
  payee: { id: string | null; name: string; website: string | null }
  /** Contact data of AP2 0.1; who signed is in the token. */
  payer: { name: string | null; email: string | null; phone: string | null }
  /** `type` is a method of AP2 0.1 (`CARD`) or a type of instrument; `details` hold the credential token, and are opaque. */
  instrument: { type: string; id: string | null; details: Record<string, unknown> | null }
  /**
   * The one checkout that is paid: one live payment per payee and checkout, over both versions. `cart_id`: of AP2 0.1 the cart's own
   * id beside that of its payment request, `id`; both pay once.
   */
  checkout: { id: string; cart_id: string; hash: string }
  /** In epoch seconds, null where the mandate has no end. The executor requires one. */
  expiresAt: number | null
  /** ISO 8601; null: at once. */
  executionDate: string | null
}
