import type { MandatedPayment } from '../model.ts'
import type { PaymentMandateV2 } from './types.ts'

/** The payment of a closed mandate of AP2 0.2, which is bound to its checkout by `transaction_id`. */
export const toMandatedPayment = (mandate: PaymentMandateV2): MandatedPayment => ({
  version: '0.2',
  amount: { currency: mandate.payment_amount.currency, minor: mandate.payment_amount.amount },
  payee: { id: mandate.payee.id, name: mandate.payee.name, website: mandate.payee.website ?? null },
  payer: { name: null, email: null, phone: null },
  instrument: { type: mandate.payment_instrument.type, id: mandate.payment_instrument.id, details: null },
  checkout: { id: mandate.transaction_id, cart_id: mandate.transaction_id, hash: mandate.transaction_id },
  expiresAt: mandate.exp ?? null,
  executionDate: mandate.execution_date ?? null,
})

/**
 * Whether a receipt is of a mandate: AP2's text hashes the last hop with its disclosures, its SDK the JWT alone (AP2.md 1.5, row 17).
 */
export const isReceiptOf = (
  { reference }: { reference?: unknown },
  { sdHash, jwtHash }: { sdHash: string; jwtHash: string },
): boolean => reference === jwtHash || reference === sdHash
