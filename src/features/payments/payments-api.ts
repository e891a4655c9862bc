import { LRUCache } from 'lru-cache'
import { type Database, hasRow, queryOne } from '../../infra/database/database.ts'
import { MasonError } from '../../state/errors.ts'
import type { Clock } from '../../state/ports/clock.ts'
import { listSigningKeys, type PublicSigningKey } from './keys/public-keys.ts'
import { type AdminOrder, orderForAdmin, readOrder, storeWebhook } from './ledger/orders.ts'
import { type PaymentTrail, readTrail } from './ledger/payment-queries.ts'
import type { PaymentWork } from './ports/work-hints.ts'
import { isWebhookForm } from './providers/card.ts'

/** What an admin decides of a payment. `amount` is in minor units; absent: all that is not refunded yet. */
export type AdminDecision =
  | { kind: 'refund'; amount?: number | undefined }
  | { kind: 'settle'; status: 'succeeded' | 'declined'; note: string; provider_ref?: string | undefined }

const waitMs = 5_000
/** An executor that is awake has carried an order out in some milliseconds. */
const pollMs = { first: 5, most: 100 }
/** Of one provider from one address, in a minute, at one process: a busy one sends some a second. */
const maxWebhooks = 3_000
/** Addresses that are counted at a time. */
const maxCounted = 10_000
const windowMs = 60_000

/**
 * What the API does about payments: it reads, stores what providers send, and orders. The executor moves the money; `wakeExecutor` is
 * called once there is work for it.
 */
export const createPaymentsApi = (
  database: Database,
  clock: Clock,
  wakeExecutor: (work: PaymentWork) => void = () => {},
) => {
  const counts = new LRUCache<string, { since: number; webhooks: number }>({ max: maxCounted })
  return {
    /** A payment of a business with all that is known of it. Null: no such payment. */
    readTrail: (businessId: string, paymentId: string): Promise<PaymentTrail | null> =>
      database.asBusiness(businessId, (sql) => readTrail(sql, businessId, paymentId)),
    /** The public keys of receipts, the one in use first. */
    signingKeys: (): Promise<PublicSigningKey[]> => listSigningKeys(database),
    /**
     * Stores a webhook as it came; the executor, which alone has the secret, verifies it. False: no such provider. Throws
     * `invalid_request` for one that is not signed or not of this time, which counts for nothing, and `too_many_requests`.
     */
    async receiveWebhook(
      providerId: string,
      headers: Record<string, string>,
      readBody: () => Promise<Uint8Array>,
      address: string,
    ): Promise<boolean> {
      if (!isWebhookForm(headers, clock.now()))
        throw new MasonError('invalid_request', 'this is not a signed webhook of the last 5 minutes', {
          remedy: 'send webhook-id, webhook-timestamp and webhook-signature of Standard Webhooks',
          detail: { errors: [{ pointer: '', detail: 'its headers are missing, wrong or of another time' }] },
        })
      if (!(await hasRow(database, 'SELECT FROM payment_providers WHERE provider_id = $1', [providerId])))
        return false
      const now = clock.monotonicMs()
      const sender = `${providerId} ${address}`
      const known = counts.get(sender)
      const count = known && now - known.since < windowMs ? known : { since: now, webhooks: 0 }
      counts.set(sender, count)
      if (++count.webhooks > maxWebhooks)
        throw new MasonError('too_many_requests', `this provider sent ${maxWebhooks} webhooks in a minute`, {
          remedy: 'send it again later',
          detail: { retry_after_s: Math.ceil((count.since + windowMs - now) / 1000) },
        })
      await storeWebhook(database, providerId, headers, await readBody())
      wakeExecutor('webhooks')
      return true
    },
    /** Orders what an admin decided and waits 5 s for the executor. Null: no such payment. Throws `invalid_request`. */
    async decide(paymentId: string, decision: AdminDecision) {
      const payment = await queryOne<Decided & { tenant: string }>(
        database,
        `SELECT tenant, status, amount_minor, refunded_minor, status = 'unknown' OR EXISTS (SELECT FROM payment_orders o
           WHERE o.payment_id = p.payment_id AND kind IN ('answer', 'capture', 'void', 'refund') AND done_at IS NULL)
           OR status = 'sent' AND EXISTS (SELECT FROM payment_providers v WHERE v.provider_id = p.provider_id
             AND p.created_at + v.window_ms * interval '1 millisecond' <= clock_timestamp()) AS is_unclear
         FROM payments p WHERE payment_id = $1`,
        [paymentId],
      )
      if (!payment) return null
      const order = toOrder(decision, payment)
      const orderId = await orderForAdmin(database, payment.tenant, paymentId, order)
      wakeExecutor('payments')
      const until = clock.monotonicMs() + waitMs
      for (let pauseMs = pollMs.first; ; pauseMs = Math.min(2 * pauseMs, pollMs.most)) {
        const outcome = (await readOrder(database, orderId))?.outcome ?? null
        if (outcome !== null || clock.monotonicMs() >= until)
          return { order_id: orderId, payment_id: paymentId, outcome }
        await clock.sleep(pauseMs)
      }
    },
  }
}

/** See `createPaymentsApi`. */
export type PaymentsApi = ReturnType<typeof createPaymentsApi>

type Decided = { status: string; amount_minor: number | null; refunded_minor: number; is_unclear: boolean }

const toOrder = (
  decision: AdminDecision,
  { status, amount_minor, refunded_minor, is_unclear }: Decided,
): AdminOrder => {
  const left = (amount_minor ?? 0) - refunded_minor
  const refuse = (pointer: string, detail: string): never => {
    throw new MasonError('invalid_request', `${pointer || 'the payment'}: ${detail}`, {
      detail: { errors: [{ pointer, detail }] },
    })
  }
  if (decision.kind === 'refund') {
    const { amount = left } = decision
    if (status !== 'succeeded') refuse('', `is ${status}: only one that succeeded can be refunded`)
    if (amount > left || amount === 0) refuse('/amount', `is ${amount}, and ${left} are left to refund`)
    return { kind: 'refund', amount_minor: amount }
  }
  if (!is_unclear) refuse('', `is ${status}, and nothing of it is unclear: there is nothing to settle`)
  const { note, provider_ref } = decision
  const text = provider_ref === undefined ? note : `${note} (at the provider: ${provider_ref})`
  return { kind: 'settle', status: decision.status, note: text }
}
