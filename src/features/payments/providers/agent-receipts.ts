import type { AgentReply } from '../../../state/ports/agents.ts'
import { ap2Keys } from '../../ap2-wire.ts'
import { findSigner, type Verification } from '../mandates/tokens/chain.ts'
import { parseJws } from '../mandates/tokens/jws.ts'
import { attempt } from '../mandates/tokens/token-error.ts'
import { paymentDraftSchema, paymentReceiptV1Schema } from '../mandates/v1/types.ts'
import { verifyReceipt } from '../mandates/verify/receipts.ts'
import { readBy, type Violation } from '../mandates/violations.ts'
import { findMerchant, type MerchantKey } from '../trust/signers.ts'
import type { AgentOrder } from './agent-messages.ts'
import type { PeerReceipt } from './provider.ts'

/** What the receipts of agents say of a payment. */

/** Which payment it was, and who may sign about it. */
export type ReceiptExpectation = Pick<Verification, 'findKeys' | 'now'> & {
  order: AgentOrder
  amount: { currency: string; minor: number }
  payee_issuer: string
  merchants: readonly MerchantKey[]
}

/** What one receipt means. `error`: the payment was refused, with the protocol's code. */
type Reading =
  | { problem: string }
  | { problem: null; error: string }
  | { problem: null; error: null; network_ref: string | null }

const isCode = (text: unknown): text is string => typeof text === 'string' && /^[a-z0-9_]{1,50}$/.test(text)
const toError = (code: unknown): Reading => ({
  problem: null,
  error: isCode(code) ? code : 'payment_declined',
})
const toProblem = ([first]: readonly Violation[]): Reading => ({
  problem: first?.message ?? 'cannot be read',
})

/** Plain JSON in AP2 0.1; a JWT is verified. Its time and the ids that Mason does not use may be missing. */
const readV1 = (receipt: unknown, { order, amount, findKeys, now }: ReceiptExpectation): Reading => {
  const violations: Violation[] = []
  const value =
    typeof receipt === 'string'
      ? attempt(violations, () => {
          const jws = parseJws(receipt, 'receipt')
          findSigner(jws, 'payment-processor', findKeys)
          return jws.payload
        })
      : receipt
  if (violations.length > 0) return toProblem(violations)
  const defaults = { timestamp: new Date(now * 1000).toISOString(), payment_id: 'unnamed' }
  const read = readBy(paymentReceiptV1Schema, JSON.stringify({ ...defaults, ...(value as object) }))
  const mandate = readBy(paymentDraftSchema, order.payment)
  if (!read.ok) return toProblem(read.violations)
  const { payment_mandate_id, amount: paid, payment_status: status } = read.value
  if (!mandate.ok || payment_mandate_id !== mandate.value.payment_mandate_contents.payment_mandate_id)
    return { problem: 'it is the receipt of another payment' }
  if (status.merchant_confirmation_id === undefined) return toError(null)
  if (paid.currency !== amount.currency || paid.minor !== amount.minor)
    return { problem: 'it is about another amount' }
  return { problem: null, error: null, network_ref: status.network_confirmation_id ?? null }
}

const readV2 = (
  receipt: unknown,
  kind: PeerReceipt['kind'],
  { order, findKeys, now, merchants, payee_issuer }: ReceiptExpectation,
): Reading => {
  if (typeof receipt !== 'string' || order.version !== '0.2') return { problem: 'it is no signed receipt' }
  const verdict = verifyReceipt(receipt, kind, kind === 'payment' ? order.payment : order.checkout, {
    findKeys,
    now,
  })
  if (!verdict.ok) return toProblem(verdict.violations)
  if (kind === 'checkout' && findMerchant(receipt, merchants)?.issuer !== payee_issuer)
    return { problem: 'it is signed by another merchant' }
  const { value } = verdict
  if (value.status === 'Error') return toError(value.error)
  const network = 'network_confirmation_id' in value ? value.network_confirmation_id : null
  return { problem: null, error: null, network_ref: typeof network === 'string' ? network : null }
}

/** The receipts in a reply, wherever they are, each with what it means. */
export const readReceipts = (
  { data }: AgentReply,
  expected: ReceiptExpectation,
): { reading: Reading; receipt: PeerReceipt }[] =>
  data.flatMap((part) =>
    (['payment', 'checkout'] as const).flatMap((kind) => {
      const name = kind === 'payment' ? ap2Keys.paymentReceipt : ap2Keys.checkoutReceipt
      if (!(name in part)) return []
      const receipt: unknown = part[name]
      const reading =
        expected.order.version === '0.1' ? readV1(receipt, expected) : readV2(receipt, kind, expected)
      return [{ reading, receipt: { kind, receipt, problem: reading.problem } }]
    }),
  )
