import { compactVerify } from 'jose/jws/compact/verify'
import { importJWK } from 'jose/key/import'
import { createBlobs } from '../../../files/blobs/blobs.ts'
import { queryOne } from '../../../infra/database/database.ts'
import { MasonError } from '../../../state/errors.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import type { WaitRequest } from '../../../state/ports/waits.ts'
import { keepWithView, type Viewed } from '../../keep-with-view.ts'
import { askConsent } from '../consent/consents.ts'
import { readFacts } from '../consent/content.ts'
import type { IssuedMandates } from '../consent/decide-consents.ts'
import { readOffer } from '../consent/offers.ts'
import { listSigningKeys } from '../keys/public-keys.ts'
import { orderAnswer, orderPayment } from '../ledger/orders.ts'
import { readPayment } from '../ledger/payment-queries.ts'
import { newPaymentId } from '../ports/ids.ts'
import type { Payments, SignedCart } from '../ports/run-payments.ref.ts'
import type { PaymentWork } from '../ports/work-hints.ts'
import { readReplyParts } from './reply-parts.ts'
import { createPaymentMandate } from './signed-cart.ts'

/** The run that pays, and for whom. */
export type RunOfPayments = { tenant: string; run_id: string; user_id: string }

/** A person has this long to approve a payment. */
export const consentLifetimeMs = 30 * 60_000

/** The mandates that the executor signed once the person had approved. */
const readIssued = async (sql: Sql, tenant: string, paymentId: string): Promise<IssuedMandates> => {
  const row = await queryOne<{ issued: IssuedMandates }>(
    sql,
    `SELECT issued FROM consents WHERE tenant = $1 AND payment_id = $2 AND status = 'verified'`,
    [tenant, paymentId],
  )
  if (row) return row.issued
  throw new MasonError('invalid_request', `no person has approved payment "${paymentId}"`, {
    remedy: 'ask for it again',
  })
}

/** Whether a receipt is about this payment and signed by a key of this Mason. */
const verifyReceipt = async (sql: Sql, receipt: string, paymentId: string): Promise<boolean> => {
  const keys = await listSigningKeys(sql)
  try {
    const { payload } = await compactVerify(receipt, ({ kid }) => {
      const key = keys.find((one) => one.kid === kid)
      if (!key) throw new Error('signed by an unknown key')
      return importJWK(key)
    })
    return JSON.parse(Buffer.from(payload).toString()).payment_id === paymentId
  } catch {
    return false
  }
}

/** Waits for what becomes of a payment or an open mandate. */
export const waitForPayment = (refId: string, start: NonNullable<WaitRequest['start']>): WaitRequest => ({
  kind: 'payment',
  refId,
  neverExpires: true,
  start,
})

/** The same for an order: `wakeExecutor` is called once it is committed. */
export const createOrderWaits =
  (wakeExecutor: (work: PaymentWork) => void): typeof waitForPayment =>
  (refId, start) => ({ ...waitForPayment(refId, start), onStarted: () => wakeExecutor('payments') })

type Provider = Awaited<ReturnType<Payments['listProviders']>>[number]
const keepProviders = keepWithView<Provider[]>()

/** Those that a business may pay by. */
export const listProviders = (registry: Viewed, sql: Sql, tenant: string): Promise<Provider[]> =>
  keepProviders(registry, tenant, async () => {
    const statement = 'SELECT provider_id AS id, name, kind FROM list_payment_providers($1)'
    return (await sql.query<Provider>(statement, [tenant])).rows
  })

/** The payments of a run, with mandates for `audience`: it asks and orders, and holds no secret. The executor verifies and pays. */
export const createRunPayments = (
  sql: Sql,
  { tenant, run_id, user_id }: RunOfPayments,
  audience: string,
  wakeExecutor: (work: PaymentWork) => void,
  registry: Viewed,
): Payments => {
  const run = { tenant, run_id }
  const waitForOrder = createOrderWaits(wakeExecutor)
  let drafted: { paymentId: string; cart: SignedCart } | null = null
  return {
    newId: newPaymentId,
    approvalTool: 'create_payment_mandate',
    readParts: readReplyParts,
    listProviders: () => listProviders(registry, sql, tenant),
    async draft(cart, choice) {
      const facts = await readOffer(sql, tenant, createPaymentMandate(cart, choice), audience)
      drafted = { paymentId: choice.payment_id, cart }
      return { payee: facts.payee_issuer, total: facts.total }
    },
    requestConsent: (payment_id, findCart, findChoice) =>
      waitForPayment(payment_id, async (transaction) => {
        const blobs = createBlobs(transaction, run)
        const cart = drafted?.paymentId === payment_id ? drafted.cart : null
        const request = createPaymentMandate(cart ?? (await findCart(blobs)), await findChoice(blobs))
        const bound = { tenant, user_id, run_id, payment_id, audience, lifetimeMs: consentLifetimeMs }
        await askConsent(transaction, request, bound, cart && readFacts(request))
      }),
    pay: (paymentId, provider_id, by) =>
      waitForOrder(paymentId, async (transaction, call) => {
        const route = 'findRoute' in by ? { route: await by.findRoute(createBlobs(transaction, run)) } : {}
        const credential = 'token' in by ? by.token : null
        const request = { ...(await readIssued(transaction, tenant, paymentId)), provider_id, ...route }
        await orderPayment(transaction, run, call, request, { paymentId, credential })
      }),
    answer: (paymentId, answer) =>
      waitForOrder(paymentId, (transaction, call) => orderAnswer(transaction, run, call, paymentId, answer)),
    async readResult(paymentId) {
      const payment = await readPayment(sql, tenant, paymentId)
      if (!payment) throw new MasonError('not_found', `there is no payment "${paymentId}"`)
      const { status, outcome, amount, payee, receipt } = payment
      const isVerified = receipt !== null && (await verifyReceipt(sql, receipt, paymentId))
      return {
        status,
        message: outcome?.message ?? '',
        code: outcome?.code ?? null,
        amount,
        payee: payee?.name ?? null,
        receipt: receipt === null ? null : isVerified ? 'verified' : 'invalid',
      }
    },
  }
}
