import { randomBytes } from 'node:crypto'
import { forgetAnswer } from '../../../engine/runs/input-answers.ts'
import { queryOne, type RunKey } from '../../../infra/database/database.ts'
import type { CallRef } from '../../../state/ports/run-log.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import type { AgentRoute } from '../ports/agent-route.ts'
import { newPaymentId, newPaymentOrderId } from '../ports/ids.ts'

/** What is paid, as the tokens were received. `payment` and `cart` are JSON texts; chains of AP2 0.2 are SD-JWTs. */
export type MandatePair =
  | { version: '0.1'; payment: string; cart: string }
  | {
      version: '0.2'
      payment: string
      checkout: string
      /** For whom the checkout mandate is and its nonce, where the merchant is another verifier than Mason. */
      checkout_audience?: string
      checkout_nonce?: string
    }

/** An order to pay: the executor verifies all of it again. */
export type PaymentRequest = MandatePair & {
  provider_id: string
  /** What Mason gave out for this mandate: see `createNonce`. */
  nonce: string
  /** False: the money is held, and a later order captures or voids it. */
  capture?: boolean
  /** For a payment over A2A. */
  route?: AgentRoute | undefined
}

/** An order to pay a checkout under open mandates: the executor closes them, and verifies all of it. */
export type OpenPaymentRequest = {
  version: '0.2-open'
  open_mandate_id: string
  /** The JWT that the merchant signed. */
  checkout: string
  nonce: string
  /** Over which agents, where the merchant is one. */
  route?: AgentRoute
}

/** What an admin orders for a payment. `settle` says what became of one that is unknown. Amounts are in minor units. */
export type AdminOrder =
  | { kind: 'capture' | 'void' }
  | { kind: 'refund'; amount_minor: number }
  | { kind: 'settle'; status: 'succeeded' | 'declined'; note: string }

const insertStatement = `
  INSERT INTO payment_orders (order_id, tenant, kind, payment_id, run_id, plan_seq, call_index, request, sealed, open_mandate_id)
  VALUES ($orderId, $tenant, $kind, $paymentId, $run_id, $plan_seq, $index, $request, $sealed, $openMandateId)
  ON CONFLICT (tenant, run_id, plan_seq, call_index, kind) WHERE run_id IS NOT NULL DO NOTHING RETURNING payment_id`

/** What only orders of calls have, some of them. */
const noCall = { run_id: null, plan_seq: null, index: null, sealed: null, openMandateId: null }

/**
 * Orders the payment of a call and returns its id; the same call orders once. Call it in the transaction that starts the wait of kind
 * `payment` for `paymentId`. `credential` is what `context.ask` gave for a secret question, from which it is removed.
 */
export const orderPayment = async (
  sql: Sql,
  { tenant, run_id }: RunKey,
  { plan_seq, index }: CallRef,
  request: PaymentRequest | OpenPaymentRequest,
  { paymentId = newPaymentId(), credential = null }: { paymentId?: string; credential?: string | null } = {},
): Promise<string> => {
  const inserted = await queryOne<{ payment_id: string }>(sql, insertStatement, {
    orderId: newPaymentOrderId(),
    tenant,
    kind: 'pay',
    paymentId,
    run_id,
    plan_seq,
    index,
    request: JSON.stringify(request),
    sealed: credential,
    openMandateId: request.version === '0.2-open' ? request.open_mandate_id : null,
  })
  if (inserted) {
    if (credential !== null) await forgetAnswer(sql, tenant, run_id, plan_seq, index)
    return inserted.payment_id
  }
  const earlier = await queryOne<{ payment_id: string }>(
    sql,
    `SELECT payment_id FROM payment_orders
     WHERE tenant = $1 AND run_id = $2 AND plan_seq = $3 AND call_index = $4 AND kind = 'pay'`,
    [tenant, run_id, plan_seq, index],
  )
  return earlier?.payment_id ?? ''
}

/**
 * Orders that the answer of a person (an OTP) is sent to the provider that asked for it, and removes it from the question. `answer`
 * is what `context.ask` gave for a secret question. Call it in the transaction that starts the wait of kind `payment`.
 */
export const orderAnswer = async (
  sql: Sql,
  { tenant, run_id }: RunKey,
  { plan_seq, index }: CallRef,
  paymentId: string,
  answer: string,
): Promise<void> => {
  await sql.query(insertStatement, {
    ...noCall,
    orderId: newPaymentOrderId(),
    tenant,
    kind: 'answer',
    paymentId,
    run_id,
    plan_seq,
    index,
    request: '{}',
    sealed: answer,
  })
  await forgetAnswer(sql, tenant, run_id, plan_seq, index)
}

/** Orders what an admin decided about a payment; returns the id of the order, which `readOrder` follows. */
export const orderForAdmin = async (
  sql: Sql,
  tenant: string,
  paymentId: string,
  { kind, ...request }: AdminOrder,
): Promise<string> => {
  const orderId = newPaymentOrderId()
  await sql.query(insertStatement, {
    ...noCall,
    orderId,
    tenant,
    kind,
    paymentId,
    request: JSON.stringify(request),
  })
  return orderId
}

/** What became of an order: null while it is not done. */
export const readOrder = async (
  sql: Sql,
  orderId: string,
): Promise<{ outcome: { status: string; message: string } | null } | null> =>
  queryOne(sql, 'SELECT outcome FROM payment_orders WHERE order_id = $1', [orderId])

/** A mandate is signed within this time after its nonce was given out. In milliseconds. */
const nonceLifetimeMs = 3_600_000

/** A nonce for one mandate, which Mason expects in it as its verifier. It is good once, for an hour. */
export const createNonce = async (
  sql: Sql,
  tenant: string,
  lifetimeMs = nonceLifetimeMs,
): Promise<string> => {
  const nonce = randomBytes(24).toString('base64url')
  await sql.query(
    `INSERT INTO payment_nonces (nonce, tenant, expires_at)
     VALUES ($1, $2, clock_timestamp() + $3::int * interval '1 millisecond')`,
    [nonce, tenant, lifetimeMs],
  )
  return nonce
}

/** Stores a webhook of a provider as it came. The executor verifies it. Header names are in lower case. */
export const storeWebhook = async (
  sql: Sql,
  providerId: string,
  headers: Record<string, string>,
  body: Uint8Array,
): Promise<void> =>
  void (await sql.query('INSERT INTO payment_inbox (provider_id, headers, body) VALUES ($1, $2, $3)', [
    providerId,
    JSON.stringify(headers),
    body,
  ]))
