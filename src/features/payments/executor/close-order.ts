import { z } from 'zod'
import { type Database, queryOne } from '../../../infra/database/database.ts'
import { MasonError } from '../../../state/errors.ts'
import { toAnswerPurpose, toQuestion } from '../keys/sealed-texts.ts'
import type { JsonObject } from '../mandates/tokens/encoding.ts'
import type { SigningKey } from '../mandates/tokens/keys.ts'
import { TokenError } from '../mandates/tokens/token-error.ts'
import { buildCheckoutPayment } from '../mandates/v2/checkout-payment.ts'
import { closeOpenMandates, type OpenMandatePair, readOpenPayment } from '../mandates/v2/open-mandates.ts'
import { createViolation, type Violation } from '../mandates/violations.ts'
import { type Refusal, toRefusal } from './verify-order.ts'
import type { TakenOrder } from './work-queue.ts'

/** Why an open mandate pays nothing more; null: it was never signed, or was deleted. */
export type OpenMandateEnd = { revoked: boolean; expired: boolean } | null

type Row = OpenMandatePair & {
  provider_id: string
  sealed: string | null
  user_id: string
  question: string | null
  expires_at_s: number
  /** The bytes that the user signed. */
  content: string | null
}

/** Whether it is revoked or over is decided under the lock of the reservation. */
const readStatement = `
  SELECT m.checkout, m.payment, m.provider_id, m.sealed, m.user_id, m.question, extract(epoch FROM m.expires_at)::float8 AS expires_at_s, c.content
  FROM open_mandates m LEFT JOIN consents c ON c.tenant = m.tenant AND c.payment_id = m.mandate_id
  WHERE m.mandate_id = $1 AND m.tenant = $2 AND m.status = 'active'`

/** What a worker wrote: which checkout, over which agents, and no amount. */
const requestSchema = z.object({
  checkout: z.string().min(1),
  nonce: z.string().min(1),
  route: z.looseObject({}).optional(),
})

/** In seconds: the payment follows at once. */
const lifetimeS = 3600

const signedSchema = z.object({ wallet: z.object({ agent: z.string(), user_email: z.string() }).optional() })

/** The account whose instrument pays, in the bytes that the user signed; none where they signed none. */
const readAccount = ({ content }: Row) => {
  const { wallet } = signedSchema.parse(JSON.parse(content ?? '{}'))
  return { credentials_agent: wallet?.agent ?? null, user_email: wallet?.user_email ?? null }
}

/** A text that was encrypted to the executor, and what it must be for. */
export type SealedFor = { sealed: string; purpose: string }

/** The answer to a secret question that an order brings: it is for this payment, its user and the call that ordered. */
export const toSealedAnswer = (order: TakenOrder): SealedFor | null => {
  const { sealed, tenant: business_id, user_id, payment_id, run_id, plan_seq, call_index } = order
  if (sealed === null) return null
  const question = toQuestion(run_id, plan_seq, call_index)
  return { sealed, purpose: toAnswerPurpose({ business_id, user_id: user_id ?? '', payment_id, question }) }
}

/** What is paid: an order's own request, or one with open mandates that were closed for it. `answer`: what is charged. */
type ClosedOrder = { request: unknown; answer: SealedFor | null } | { refusal: Refusal }

/**
 * Closes open mandates for the checkout of an order, with the agent's key: payee, amount and currency are the merchant's, from its
 * signed bytes. It decides nothing about them: the chains are verified as any other order is. What was closed and not reserved was
 * shown to no one, so another attempt closes anew.
 */
export const createOrderCloser = (
  database: Database,
  agentKey: (jwk: unknown) => Promise<SigningKey | null> = async () => null,
  audience: string,
) => ({
  async close(order: TakenOrder, now: number): Promise<ClosedOrder> {
    const { open_mandate_id: id, tenant, request } = order
    if (id === null) return { request, answer: toSealedAnswer(order) }
    const refuse = (...violations: Violation[]): ClosedOrder => ({ refusal: toRefusal(violations) })
    const row = await queryOne<Row>(database, readStatement, [id, tenant])
    if (!row) return refuse(endedViolation(null))
    const asked = requestSchema.safeParse(request)
    if (!asked.success)
      return refuse(createViolation('invalid_order', 'request', 'names no checkout: send the merchant’s'))
    const { checkout: checkoutJwt, nonce, route } = asked.data
    try {
      const { agent, instrument } = readOpenPayment(row.payment)
      const key = await agentKey(agent)
      if (!key)
        return refuse(
          createViolation(
            'agent_missing_key',
            'payment.cnf',
            'is no key of this agent: ask for a new mandate',
          ),
        )
      const payment = buildCheckoutPayment(checkoutJwt, instrument ?? { id: 'card', type: 'card' })
      const options = {
        audience,
        nonce,
        iat: now,
        exp: Math.min(now + lifetimeS, Math.floor(row.expires_at_s)),
      }
      const chosen = { checkoutJwt, payment: JSON.parse(payment) as JsonObject }
      const closed = await closeOpenMandates(row, chosen, options, key)
      const { provider_id } = row
      const by = route && { route: { ...route, ...readAccount(row), alias: instrument?.id ?? null } }
      const { sealed, user_id, question } = row
      const use = { business_id: tenant, user_id, payment_id: id, question: question ?? '' }
      const answer = sealed === null ? null : { sealed, purpose: toAnswerPurpose(use) }
      return { request: { version: '0.2', ...closed, provider_id, nonce, ...by }, answer }
    } catch (error) {
      if (error instanceof TokenError) return refuse(error.violation)
      if (!(error instanceof MasonError) || error.code !== 'invalid_request') throw error
      return refuse(createViolation('invalid_checkout', 'checkout', `cannot be paid: ${error.message}`))
    }
  },
})

/** The violation of an open mandate that pays nothing more. */
export const endedViolation = (end: OpenMandateEnd): Violation =>
  end === null
    ? createViolation(
        'mandate_unknown',
        'open_mandate',
        'was not signed by the user, or deleted: ask for a new one',
      )
    : end.revoked
      ? createViolation(
          'mandate_revoked',
          'open_mandate',
          'was revoked by the user: ask before you propose a new one',
        )
      : createViolation('mandate_expired', 'open_mandate', 'is over: ask the user for a new one')

/** For about two minutes, an order waits for the outcome of another payment under its open mandate. */
export const isPatient = ({ takes }: Pick<TakenOrder, 'takes'>): boolean => takes < 400

/** Never a second closed mandate before the outcome of the first: the person can decide meanwhile. */
export const busyViolation = (): Violation =>
  createViolation(
    'mandate_in_use',
    'open_mandate',
    'is used by a payment without an outcome yet: ask the person to approve this one',
    'unresolved_constraint',
  )
