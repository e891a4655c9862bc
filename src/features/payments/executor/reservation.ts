import { type Database, hasRow, queryOne } from '../../../infra/database/database.ts'
import {
  isCheckViolation,
  isUniqueViolation,
  isValueRefused,
} from '../../../infra/database/database-errors.ts'
import { sha256 } from '../../../infra/lib/ids.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import type { PaymentRequest } from '../ledger/orders.ts'
import type { Spent } from '../mandates/v2/types.ts'
import { createViolation, type Violation } from '../mandates/violations.ts'
import { endedViolation, type OpenMandateEnd } from './close-order.ts'
import { type PaymentOperation, toOperationId } from './operations.ts'
import { toDemoFacts } from './receipts.ts'
import { type Refusal, toRefusal, usedViolation, type VerifiedOrder } from './verify-order.ts'
import type { ClaimedPayment, TakenOrder } from './work-queue.ts'

/** Only who took it last carries an order out; a cancel that comes now waits, and counts until the first send. */
const orderStatement = `
  SELECT canceled_at IS NOT NULL AS canceled FROM payment_orders
  WHERE order_id = $1 AND takes = $2 AND done_at IS NULL FOR UPDATE`

/** Locks what was spent under the mandate until the transaction ends, so that two payments under it decide one after the other. */
const lockSpendStatement = `
  INSERT INTO mandate_spend (spend_id, tenant, currency, max_minor, max_uses) VALUES ($1, $2, $3, $4::bigint, $5::int)
  ON CONFLICT (spend_id) DO UPDATE SET spend_id = excluded.spend_id
  RETURNING reserved_minor + spent_minor AS minor, reserved_uses + spent_uses AS uses`

/** After the lock, in a statement of its own: it sees what was committed while the lock was waited for. */
const lastUseStatement = `
  SELECT extract(epoch FROM max(created_at))::double precision AS last_used_at FROM payments
  WHERE spend_id = $1 AND status IN ('reserved', 'sent', 'succeeded', 'unknown')`

const isFreeNonce = `nonce = $nonce AND tenant = $tenant AND used_at IS NULL AND expires_at > clock_timestamp()`

/** What follows once `spend` has taken the amount and `nonce` the nonce. */
const reserveSql = (taken: string): string => `
  WITH ${taken}, payment AS (
    INSERT INTO payments (payment_id, tenant, order_id, run_id, plan_seq, call_index, status, version, mandate_key, mandate_hash, spend_id,
      amount_minor, currency, payee, payee_issuer, checkout_id, checkout_hash, provider_id, lease_until, skipped_checks, open_mandate_id,
      cart_id)
    SELECT $payment_id, $tenant, $order_id, $run_id, $plan_seq::int, $call_index::int, 'reserved', $version, $mandateKey, $mandateHash,
      spend_id, $minor::bigint, $currency, $payee::json, $payee_issuer, $checkout_id, $checkoutHash, $provider_id,
      clock_timestamp() + $leaseMs::int * interval '1 millisecond', $skipped::json, $open_mandate_id, $cart_id FROM spend
    RETURNING payment_id, tenant, order_id, status, version, spend_id, amount_minor, currency, payee, provider_id, provider_ref,
      is_authorized, refunded_minor, challenge, epoch, tries, 0 AS silent_ms
  ), operation AS (
    INSERT INTO payment_operations (operation_id, tenant, payment_id, order_id, kind, amount_minor, currency, request, request_hash, capture)
    SELECT $operationId, tenant, payment_id, order_id, 'authorize', amount_minor, currency, $bytes::bytea, $bytesHash, $capture::boolean
    FROM payment
  ), tokens AS (
    INSERT INTO mandates (payment_id, kind, tenant, raw, issuer_key, signing_hash)
    SELECT payment_id, t.kind, tenant, t.raw, t.issuer_key, t.signing_hash
    FROM payment, json_to_recordset($tokens::json) AS t (kind text, raw text, issuer_key text, signing_hash text)
  ), event AS (
    INSERT INTO payment_events (tenant, payment_id, kind, detail) SELECT tenant, payment_id, 'reserved', $detail::json FROM payment
  ), done AS (
    UPDATE payment_orders SET done_at = clock_timestamp(), sealed = NULL FROM payment
    WHERE payment_orders.order_id = payment.order_id
  )
  SELECT * FROM payment`

const reserveStatement = reserveSql(`nonce AS (
    UPDATE payment_nonces SET used_at = clock_timestamp(), payment_id = $payment_id WHERE ${isFreeNonce} RETURNING nonce
  ), spend AS (
    UPDATE mandate_spend SET reserved_minor = reserved_minor + $minor::bigint, reserved_uses = reserved_uses + 1
    FROM nonce WHERE spend_id = $spendId RETURNING spend_id
  )`)

/** For a mandate that pays once: where it has a row, nothing is taken. The row it adds is what others wait for. */
const reserveFirstStatement = reserveSql(`held AS (
    SELECT order_id FROM payment_orders
    WHERE order_id = $order_id AND takes = $takes AND done_at IS NULL AND canceled_at IS NULL FOR UPDATE
  ), free AS (
    SELECT nonce FROM payment_nonces, held WHERE ${isFreeNonce} FOR UPDATE OF payment_nonces
  ), spend AS (
    INSERT INTO mandate_spend (spend_id, tenant, currency, max_minor, max_uses, reserved_minor, reserved_uses)
    SELECT $spendId, $tenant, $currency, $max_minor::bigint, $max_uses::int, $minor::bigint, 1 FROM free
    ON CONFLICT (spend_id) DO NOTHING RETURNING spend_id
  ), nonce AS (
    UPDATE payment_nonces SET used_at = clock_timestamp(), payment_id = $payment_id FROM spend WHERE nonce = $nonce
  )`)

const findUsedStatement = `
  SELECT EXISTS (SELECT FROM payments WHERE mandate_key = $1 AND mandate_hash = $2) AS mandate,
    EXISTS (SELECT FROM payments WHERE payee_issuer = $3 AND (checkout_id = $4 OR cart_id = $5)
      AND status IN ('reserved', 'sent', 'succeeded', 'unknown')) AS checkout`

/** A revocation waits for this lock, or this for it. */
const lockOpenStatement = `
  SELECT revoked_at IS NOT NULL AS revoked, expires_at <= clock_timestamp() AS expired FROM open_mandates
  WHERE mandate_id = $1 AND status = 'active' FOR UPDATE`

/** After that lock, in a statement of its own, as `lastUseStatement`. An index says the same. */
const liveStatement = `SELECT FROM payments WHERE open_mandate_id = $1 AND status IN ('reserved', 'sent', 'unknown')`

const lockOpenMandate = async (sql: Sql, id: string): Promise<Violation | null> => {
  const row = await queryOne<OpenMandateEnd>(sql, lockOpenStatement, [id])
  return row && !row.revoked && !row.expired ? null : endedViolation(row)
}

const nothingSpent: Spent = { amount_minor: 0, uses: 0, last_used_at: null }

type Reserved =
  | { payment: ClaimedPayment; operation: PaymentOperation }
  | { refusal: Refusal }
  | 'lost'
  | 'canceled'
  | 'busy'

/**
 * Decides by what was spent and reserves, in one transaction: the spending of the mandate, its nonce, the payment, its tokens and the
 * bytes to send, or nothing. The lease begins with it. `lost`: another executor took the order. `busy`: a payment under the same open
 * mandate has no outcome yet.
 */
export const reservePayment = async (
  database: Database,
  order: TakenOrder,
  request: PaymentRequest,
  verified: VerifiedOrder,
  bytes: string,
  leaseMs: number,
): Promise<Reserved> => {
  const { payment, spend, tokens, checks, skipped } = verified
  const { currency, minor } = payment.amount
  const [mandateKey = '', mandateHash = ''] = (tokens[0]?.identity ?? '').split('.')
  const operationId = toOperationId(order.order_id)
  const refuse = (violations: Violation[]): Reserved => ({ refusal: toRefusal(violations) })
  const toValues = (spent: Spent) => ({
    payment_id: order.payment_id,
    nonce: request.nonce,
    tenant: order.tenant,
    minor,
    spendId: spend.id,
    order_id: order.order_id,
    run_id: order.run_id,
    plan_seq: order.plan_seq,
    call_index: order.call_index,
    version: payment.version,
    mandateKey,
    mandateHash,
    currency,
    payee: JSON.stringify({ id: payment.payee.id, name: payment.payee.name }),
    payee_issuer: verified.payee_issuer,
    checkout_id: verified.checkout_id,
    checkoutHash: payment.checkout.hash,
    provider_id: request.provider_id,
    leaseMs,
    operationId,
    bytes: Buffer.from(bytes),
    bytesHash: sha256(bytes),
    tokens: JSON.stringify(
      tokens.map(({ kind, raw, identity }) => {
        const [issuer_key, signing_hash] = identity.split('.')
        return { kind, raw, issuer_key, signing_hash }
      }),
    ),
    detail: JSON.stringify({ checks, spent, ...toDemoFacts(skipped) }),
    capture: request.capture ?? true,
    skipped: skipped.length > 0 ? JSON.stringify(skipped) : null,
    open_mandate_id: order.open_mandate_id,
    cart_id: verified.cart_id,
  })
  const toReserved = (row: ClaimedPayment): Reserved => ({
    payment: row,
    operation: {
      operation_id: operationId,
      order_id: order.order_id,
      kind: 'authorize',
      amount_minor: minor,
      currency,
      capture: request.capture ?? true,
      request: Buffer.from(bytes),
      status: 'intent',
      age_ms: null,
      answers: 0,
    },
  })
  try {
    if (
      spend.max_uses === 1 &&
      order.open_mandate_id === null &&
      verified.checkSpent(nothingSpent).length === 0
    ) {
      const row = await queryOne<ClaimedPayment>(database, reserveFirstStatement, {
        ...toValues(nothingSpent),
        takes: order.takes,
        max_minor: spend.max_minor,
        max_uses: spend.max_uses,
      })
      if (row) return toReserved(row)
    }
    return await database.transaction(async (sql): Promise<Reserved> => {
      const { open_mandate_id: openId } = order
      if (openId !== null) {
        const ended = await lockOpenMandate(sql, openId)
        if (ended) throw new RolledBackError({ refusal: toRefusal([ended]) })
        if (await hasRow(sql, liveStatement, [openId])) throw new RolledBackError('busy')
      }
      const [held, spent, last] = await Promise.all([
        queryOne<{ canceled: boolean }>(sql, orderStatement, [order.order_id, order.takes]),
        queryOne<{ minor: number; uses: number }>(sql, lockSpendStatement, [
          spend.id,
          order.tenant,
          currency,
          spend.max_minor,
          spend.max_uses,
        ]),
        queryOne<{ last_used_at: number | null }>(sql, lastUseStatement, [spend.id]),
      ])
      if (!held) throw new RolledBackError('lost')
      if (held.canceled) throw new RolledBackError('canceled')
      const facts = {
        amount_minor: Number(spent?.minor),
        uses: Number(spent?.uses),
        last_used_at: last?.last_used_at ?? null,
      }
      const violations = verified.checkSpent(facts)
      if (violations.length > 0) throw new RolledBackError({ refusal: toRefusal(violations) })
      const row = await queryOne<ClaimedPayment>(sql, reserveStatement, toValues(facts))
      if (!row) throw new RolledBackError({ refusal: toRefusal([nonceViolation()]) })
      return toReserved(row)
    })
  } catch (error) {
    if (error instanceof RolledBackError) {
      const { result } = error
      return typeof result === 'object' && 'refusal' in result ? explain(result) : result
    }
    if (isCheckViolation(error)) return refuse([budgetViolation()])
    if (isValueRefused(error)) return refuse([valueViolation()])
    if (!isUniqueViolation(error)) throw error
    return explain({ refusal: toRefusal([usedViolation()]) })
  }

  /** Whatever guard was first: a mandate or checkout that was paid is the reason that helps. */
  async function explain(result: { refusal: Refusal }): Promise<Reserved> {
    const used = await queryOne<{ mandate: boolean; checkout: boolean }>(database, findUsedStatement, [
      mandateKey,
      mandateHash,
      verified.payee_issuer,
      verified.checkout_id,
      verified.cart_id,
    ])
    if (used?.mandate) return refuse([usedViolation()])
    if (used?.checkout) return refuse([paidViolation()])
    return result
  }
}

class RolledBackError extends Error {
  readonly result: Reserved

  constructor(result: Reserved) {
    super('rolled back')
    this.result = result
  }
}

const nonceViolation = (): Violation =>
  createViolation(
    'nonce_used',
    'nonce',
    'was not given out by Mason for this business, has expired or was used: have the person sign a new mandate',
    'invalid_credential',
  )
const paidViolation = (): Violation =>
  createViolation('checkout_paid', 'checkout', 'is paid or being paid: look at the earlier payment')
const valueViolation = (): Violation =>
  createViolation(
    'value_refused',
    'order',
    'has an id, name or limit that cannot be stored: it is too long, too large or has characters that no text has',
  )
const budgetViolation = (): Violation =>
  createViolation(
    'budget_exceeded',
    'mandate',
    'has less left than this: pay less, or have the person sign a new one',
    'unresolved_constraint',
  )
