import { type Database, queryOne } from '../../../infra/database/database.ts'
import { toCredentialPurpose } from '../keys/sealed-texts.ts'
import type { PaymentProvider } from '../providers/provider.ts'
import type { ProviderUse } from '../providers/provider-rows.ts'
import type { SealedFor } from './close-order.ts'
import { endWaitOfOrder, type WakeRun } from './settlement.ts'
import { type OrderVerifier, parsePaymentRequest } from './verify-order.ts'
import type { TakenOrder } from './work-queue.ts'

/** An agent that gave no answer is asked so often; then the run ends with that. */
const maxTakes = 5

type Presented = { status: 'presented' | 'refused'; message: string }

/** The credential that a credentials provider gave for the mandates of a payment, sealed; null: none. */
export const readPresented = async (database: Database, paymentId: string): Promise<SealedFor | null> => {
  const row = await queryOne<{ tenant: string; sealed: string | null }>(
    database,
    `SELECT tenant, sealed FROM payment_orders WHERE payment_id = $1 AND kind = 'present' AND done_at IS NOT NULL
     ORDER BY done_at DESC LIMIT 1`,
    [paymentId],
  )
  return row?.sealed ? { sealed: row.sealed, purpose: toCredentialPurpose(row.tenant, paymentId) } : null
}

type Parts = {
  database: Database
  openProvider(providerId: string, use: ProviderUse): Promise<PaymentProvider>
  seal(text: string, purpose: string): Promise<string>
  mandateTime?(): Date
  verifier: OrderVerifier
  wake: WakeRun
  toSignal(): AbortSignal
}

/**
 * Shows the signed mandates of an order to the credentials provider, after verifying them. No money moves: after a broken connection
 * it is repeated, under the same id.
 */
export const createPresenter = ({
  database,
  openProvider,
  seal,
  mandateTime,
  verifier,
  wake,
  toSignal,
}: Parts) => {
  const finish = (order: TakenOrder, outcome: Presented, sealed: string | null = null): Promise<void> =>
    endWaitOfOrder(database, order, outcome, wake, (sql) =>
      sql.query(
        `WITH mine AS (
           UPDATE payment_orders SET done_at = clock_timestamp(), outcome = $3::json, sealed = $4
           WHERE order_id = $1 AND takes = $2 AND done_at IS NULL RETURNING tenant, payment_id
         ), event AS (
           INSERT INTO payment_events (tenant, payment_id, kind, detail) SELECT tenant, payment_id, $5, $3::json FROM mine
         )
         SELECT payment_id FROM mine`,
        [order.order_id, order.takes, JSON.stringify(outcome), sealed, outcome.status],
      ),
    )
  const refuse = (order: TakenOrder, reason: string): Promise<void> =>
    finish(order, { status: 'refused', message: `The payment cannot go on: ${reason}. Nothing is paid.` })

  return async (order: TakenOrder): Promise<void> => {
    const { tenant, payment_id } = order
    if (order.canceled_at) return refuse(order, 'it was canceled')
    const request = parsePaymentRequest(order.request)
    if (!request) return refuse(order, 'the order cannot be read')
    const now = Math.floor((mandateTime?.() ?? order.now).getTime() / 1000)
    const verdict = await verifier.verify(tenant, request, now)
    if (!verdict.ok) return refuse(order, verdict.refusal.violations.map(({ message }) => message).join('; '))
    const provider = await openProvider(request.provider_id, { businessId: tenant, paymentId: payment_id })
    const { hash } = verdict.value.payment.checkout
    try {
      const answer = await provider.present?.(request, hash, order.order_id, toSignal())
      if (answer && 'reason' in answer) return await refuse(order, answer.reason)
      const sealed = answer?.credential
        ? await seal(answer.credential, toCredentialPurpose(tenant, payment_id))
        : null
      await finish(order, { status: 'presented', message: 'The mandate was sent.' }, sealed)
    } catch (error) {
      if (order.takes < maxTakes) throw error
      await refuse(order, 'the credentials provider does not answer')
    }
  }
}
