import { queryOne } from '../../../infra/database/database.ts'
import { isDatabaseUnavailable } from '../../../infra/database/database-errors.ts'
import { sha256 } from '../../../infra/lib/ids.ts'
import { sendEffect } from '../../../state/effect-protocol.ts'
import { MasonError } from '../../../state/errors.ts'
import type { Clock } from '../../../state/ports/clock.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import { type PaymentProvider, type ProviderAnswer, UnclearPaymentError } from '../providers/provider.ts'
import type { ClaimedPayment } from './work-queue.ts'

/** One request to a provider. `request` is null when it is over. */
export type PaymentOperation = {
  operation_id: string
  order_id: string
  kind: 'authorize' | 'capture' | 'void' | 'refund' | 'answer'
  amount_minor: number
  currency: string
  capture: boolean
  request: Uint8Array | null
  status: 'intent' | 'sent' | 'done' | 'unknown'
  age_ms: number | null
  /** How many answers of a challenge its payment has. */
  answers: number
}

/** What carries an operation out, until when by the monotonic clock. */
export type Carrier = {
  sql: Sql
  provider: PaymentProvider
  clock: Clock
  leaseEndsAt: number
  signal: AbortSignal
  /** Opens the answer of a person. */
  unseal(sealed: string): Promise<string>
}

const columns = `operation_id, order_id, kind, amount_minor, currency, capture, request, status,
  (extract(epoch FROM clock_timestamp() - first_sent_at) * 1000)::float8 AS age_ms,
  (count(*) FILTER (WHERE kind = 'answer') OVER ())::int AS answers`

/** The idempotency key of an order at the provider. */
export const toOperationId = (orderId: string): string => `op_${sha256(orderId).slice(0, 40)}`

/** The operations of a payment, the first first. */
export const readOperations = async (sql: Sql, paymentId: string): Promise<PaymentOperation[]> =>
  (
    await sql.query<PaymentOperation>(
      `SELECT ${columns} FROM payment_operations WHERE payment_id = $1 ORDER BY created_at`,
      [paymentId],
    )
  ).rows

/** The payment is locked, not just read: a claim comes before or after. A cancel of its order locks the order. */
const sentStatement = `
  WITH mine AS (
    SELECT payment_id FROM payments WHERE payment_id = $1 AND epoch = $2 AND lease_until > clock_timestamp() FOR UPDATE
  ), allowed AS (
    UPDATE payment_orders o SET sent_at = COALESCE(o.sent_at, clock_timestamp()) FROM mine
    WHERE o.payment_id = mine.payment_id AND o.kind = 'pay' AND (o.canceled_at IS NULL OR o.sent_at IS NOT NULL) RETURNING o.payment_id
  ), operation AS (
    UPDATE payment_operations o SET status = 'sent', sends = sends + 1, first_sent_at = COALESCE(first_sent_at, clock_timestamp())
    FROM allowed WHERE o.operation_id = $3 AND o.status IN ('intent', 'sent') RETURNING o.tenant, o.payment_id, o.kind, o.sends
  ), payment AS (
    UPDATE payments p SET status = 'sent', updated_at = clock_timestamp()
    FROM operation WHERE p.payment_id = operation.payment_id AND p.status = 'reserved'
  ), event AS (
    INSERT INTO payment_events (tenant, payment_id, kind, detail)
    SELECT tenant, payment_id, 'sent', json_build_object('operation', kind, 'key', $3::text, 'sends', sends) FROM operation
  )
  SELECT (SELECT count(*) FROM mine)::int AS mine, (SELECT count(*) FROM operation)::int AS sent`

/** This executor no longer has the payment, or may not: it lets go of it. */
export class PaymentLostError extends MasonError {
  constructor() {
    super('lease_lost', 'another executor may have this payment by now')
  }
}
/** The order was canceled before the first byte. */
export class PaymentCanceledError extends Error {}

/** See `sendEffect`: an answer, or null where it is not known what became of it. Throws while it may be tried again. */
export const sendOperation = async (
  { payment_id, epoch, provider_ref }: ClaimedPayment,
  operation: PaymentOperation,
  { sql, provider, clock, leaseEndsAt, signal, unseal }: Carrier,
): Promise<ProviderAnswer | null> => {
  const checkLease = (): void => {
    if (clock.monotonicMs() >= leaseEndsAt) throw new PaymentLostError()
  }
  const store = {
    async markSent() {
      const row = await queryOne<{ mine: number; sent: number }>(sql, sentStatement, [
        payment_id,
        epoch,
        operation.operation_id,
      ])
      if (!row?.mine) throw new PaymentLostError()
      if (!row.sent) throw new PaymentCanceledError()
      checkLease()
    },
    markUnknown: async () => {},
  }
  const stored = {
    key: operation.operation_id,
    request: operation.request ?? new Uint8Array(),
    status: operation.status === 'sent' ? ('sent' as const) : ('intent' as const),
    age_ms: operation.age_ms,
  }
  const target = {
    class: provider.class,
    windowMs: provider.windowMs,
    lookup: () => provider.lookup(operation.operation_id, signal),
    send: async (request: string, key: string, check: () => void, until: AbortSignal) =>
      operation.kind === 'answer'
        ? provider.answerChallenge(provider_ref ?? '', await unseal(request), key, check, until)
        : provider.send(request, key, check, until),
  }
  return sendEffect(stored, target, store, checkLease, signal)
}

/**
 * What a provider says. Where it failed for all of the time in which it knows keys, nothing is sent again and no one else would ever say
 * more: then an error means that it is not known.
 */
export const askProvider = async (
  ask: () => Promise<ProviderAnswer | null>,
  silentMs: number,
  { windowMs }: PaymentProvider,
): Promise<ProviderAnswer | null> => {
  try {
    return await ask()
  } catch (error) {
    const isOwn =
      error instanceof PaymentLostError ||
      error instanceof PaymentCanceledError ||
      isDatabaseUnavailable(error)
    if (isOwn || error instanceof UnclearPaymentError || silentMs < windowMs) throw error
    throw new UnclearPaymentError('the provider does not say what became of it', error)
  }
}

const operationStatement = `
  WITH mine AS (
    UPDATE payments SET refunded_minor = refunded_minor + CASE WHEN $5 = 'refund' THEN $6::bigint ELSE 0 END
    WHERE payment_id = $1 AND epoch = $2 AND NOT EXISTS (SELECT FROM payment_operations WHERE order_id = $4) RETURNING *
  )
  INSERT INTO payment_operations (operation_id, tenant, payment_id, order_id, kind, amount_minor, currency, request, request_hash, capture)
  SELECT $3, tenant, payment_id, $4, $5, $6::bigint, currency, $7::bytea, $8, $9::boolean FROM mine`

/** Adds the operation of an order, once. A refund counts from here on, so that two never give back more than was paid. */
export const addOperation = async (
  sql: Sql,
  { payment_id, epoch }: ClaimedPayment,
  operation: Pick<PaymentOperation, 'order_id' | 'kind' | 'amount_minor' | 'capture'> & { request: string },
): Promise<void> =>
  void (await sql.query(operationStatement, [
    payment_id,
    epoch,
    toOperationId(operation.order_id),
    operation.order_id,
    operation.kind,
    operation.amount_minor,
    Buffer.from(operation.request),
    sha256(operation.request),
    operation.capture,
  ]))
