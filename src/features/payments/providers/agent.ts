import { queryOne } from '../../../infra/database/database.ts'
import { isMasonError, MasonError } from '../../../state/errors.ts'
import type { AgentMessage, AgentReply } from '../../../state/ports/agents.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import { toPlainLine } from '../../../state/text/plain-line.ts'
import { explainFailure } from '../../ap2-failures.ts'
import { ap2Keys, ap2Texts } from '../../ap2-wire.ts'
import type { PaymentAgents } from '../../payment-agents.ts'
import type { PaymentRequest } from '../ledger/orders.ts'
import { paymentDraftSchema } from '../mandates/v1/types.ts'
import { createViolation, readBy } from '../mandates/violations.ts'
import { createSigners } from '../trust/signers.ts'
import type { Trust } from '../trust/trust.ts'
import { type AgentOrder, toChallengeMessage, toPaymentMessage, toPresentation } from './agent-messages.ts'
import { readReceipts } from './agent-receipts.ts'
import { findAgent, findRouteProblems } from './agent-routes.ts'
import {
  type PaymentProvider,
  type PeerReceipt,
  type ProviderAnswer,
  UnclearPaymentError,
} from './provider.ts'

/** What a provider of agents works with. */
export type AgentProviderParts = { sql: Sql; agents: PaymentAgents; trust: Trust }

type Settings = { window_ms: number }

/** A payment as it was reserved, with its mandates as they were verified. */
type Purchase = {
  tenant: string
  version: AgentOrder['version']
  /** Read here: the database reads no JSON that has U+0000 or half a surrogate pair, which texts of agents may have. */
  request: Pick<AgentOrder, 'route'>
  tokens: { payment: string; cart: string; checkout: string }
  provider_ref: string | null
  payee_issuer: string
  amount_minor: number
  currency: string
  authorization: string
  age_s: number | null
  now: number
}

const purchaseStatement = `
  SELECT o.tenant, o.request, p.version, p.provider_ref, p.payee_issuer, p.amount_minor, p.currency, a.operation_id AS authorization,
    extract(epoch FROM clock_timestamp() - a.first_sent_at)::float8 AS age_s, extract(epoch FROM clock_timestamp())::float8 AS now,
    (SELECT json_object_agg(kind, raw) FROM mandates m WHERE m.payment_id = p.payment_id) AS tokens
  FROM payment_orders o JOIN payments p USING (payment_id) JOIN payment_operations a USING (payment_id)
  WHERE o.payment_id = $1 AND o.kind = 'pay' AND a.kind = 'authorize'`

const createUnclearError = (what: string, cause?: unknown): MasonError =>
  new UnclearPaymentError(`the agent of the merchant ${what}`, cause)

/** An agent that is not reached for so long is asked further; the person reads that it is unknown. */
const maxSilenceS = 60

const maxChallengeChars = 500
/** What the agent asks the person for, in its words: its data, or the texts of AP2 alone. */
const readChallenge = ({ data, texts }: AgentReply): { type: 'otp'; text: string } | null => {
  const asked = data.find((part) => part[ap2Keys.challenge] !== undefined)?.[ap2Keys.challenge]
  const shown =
    asked !== null && typeof asked === 'object' && !Array.isArray(asked) ? asked.display_text : asked
  const known = texts.filter((text) => text === ap2Texts.challenge || text === ap2Texts.wrongChallenge)
  const wrong = texts.includes(ap2Texts.wrongChallenge) ? [ap2Texts.wrongChallenge] : []
  const said = typeof shown === 'string' ? [...wrong, shown] : known
  const text = toPlainLine(said.join(' '), maxChallengeChars)
  return text === '' ? null : { type: 'otp', text }
}

/** Why an agent took nothing. Its words stay out. */
const explainRefusal = (agent: string, { is_unreached, texts }: AgentReply): string =>
  is_unreached
    ? `${agent} did not answer: Mason could not reach it and sent nothing. Try again later`
    : `${agent} refused: ${explainFailure(texts) ?? 'it gave a reason that Mason does not know'}`

/** Whether an id of an agent is stored as it is. */
const isReference = (text: string): boolean => /^[^\p{Cc}\p{Cs}\ufffd]{1,200}$/u.test(text)

const toOrder = ({ version, request: { route }, tokens }: Purchase): AgentOrder =>
  version === '0.1'
    ? { version, route, payment: tokens.payment, cart: tokens.cart }
    : { version, route, payment: tokens.payment, checkout: tokens.checkout }

/** The agent that has the token of a mandate of 0.1: it is among what the person signed. */
const readTokenAddress = (order: PaymentRequest): string | null => {
  const read = order.version === '0.1' ? readBy(paymentDraftSchema, order.payment) : null
  const token = read?.ok ? read.value.payment_mandate_contents.payment_response.details?.token : null
  const { url } = (token ?? {}) as { url?: unknown }
  return typeof url === 'string' && URL.canParse(url) ? new URL(url).origin : null
}

/**
 * Opens the provider of a payment over A2A: the agent of the merchant that signed the cart takes it. Amount and payee are in the
 * signed texts alone.
 */
export const openAgentProvider = (
  { window_ms }: Settings,
  { businessId, paymentId }: { businessId: string; paymentId: string },
  { sql, agents, trust }: AgentProviderParts,
): PaymentProvider => {
  const readPurchase = async (): Promise<Purchase> => {
    const row = await queryOne<Purchase>(sql, purchaseStatement, [paymentId])
    if (row) return row
    throw new MasonError('not_found', `there is no payment "${paymentId}"`)
  }

  const decline = (reply: AgentReply, provider_ref: string, receipts: PeerReceipt[]): ProviderAnswer => {
    // an agent that failed may have acted before; one that refused did not. "extension" may be about its goods or its machines
    const words = reply.texts.filter((text) => !/extension/i.test(text))
    if (explainFailure(words) === null && reply.state !== 'rejected')
      throw createUnclearError('says that the payment failed, and not whether it took money')
    const reason = explainRefusal('the agent of the merchant', reply)
    return { status: 'declined', provider_ref, receipts, reason }
  }

  const toAnswer = async (reply: AgentReply, key: string, purchase: Purchase): Promise<ProviderAnswer> => {
    const provider_ref = reply.task_id ?? purchase.provider_ref ?? key
    if (!isReference(provider_ref)) throw createUnclearError('names a task by an invalid id')
    if (purchase.provider_ref !== null && provider_ref !== purchase.provider_ref)
      throw createUnclearError('answered about another task')
    const { tenant, payee_issuer, now } = purchase
    const order = toOrder(purchase)
    const amount = { currency: purchase.currency, minor: Number(purchase.amount_minor) }
    if (reply.state === 'submitted' || reply.state === 'working' || reply.state === 'auth-required') {
      if (reply.task_id === null) throw createUnclearError('goes on without a task')
      return { status: 'pending', provider_ref }
    }
    if (reply.state === 'input-required') {
      const challenge = readChallenge(reply)
      if (!challenge) throw createUnclearError('asks for something that Mason does not know')
      return { status: 'challenge', provider_ref, challenge }
    }
    const found = await createSigners(trust).withTrust(tenant, (findKeys, merchants) =>
      readReceipts(reply, { findKeys, merchants, now, order, amount, payee_issuer }),
    )
    const receipts = found.map(({ receipt }) => receipt)
    const ofPayment = found.flatMap(({ receipt, reading }) => (receipt.kind === 'payment' ? [reading] : []))
    for (const { problem } of ofPayment)
      if (problem !== null) throw createUnclearError(`sent a receipt that does not count: ${problem}`)
    const paid = ofPayment.find((reading) => 'network_ref' in reading)
    const refusal = found.find(({ reading }) => reading.problem === null && reading.error !== null)?.reading
    if (paid && (refusal || reply.state !== 'completed'))
      throw createUnclearError('refused a payment and sent a receipt that it was made')
    if (refusal && 'error' in refusal)
      return {
        status: 'declined',
        provider_ref,
        receipts,
        reason: `the payment processor refused it: ${explainFailure(reply.texts) ?? refusal.error}`,
      }
    if (reply.state !== 'completed') return decline(reply, provider_ref, receipts)
    if (!paid && (order.version === '0.2' || !reply.texts.includes(ap2Texts.success)))
      throw createUnclearError('says that it is done and sent no receipt')
    const network_ref = paid?.network_ref && isReference(paid.network_ref) ? paid.network_ref : null
    return { status: 'succeeded', provider_ref, network_ref, amount, receipts }
  }

  /** Shows a mandate to a credentials provider; of 0.2 it gives a token for it. */
  const show = async (
    tenant: string,
    message: AgentMessage,
    version: AgentOrder['version'],
    key: string,
    beforeSend: () => void,
    signal: AbortSignal,
  ): Promise<{ credential: string | null } | { reason: string }> => {
    const reply = await agents.send(tenant, message, key, beforeSend, signal)
    const token = reply.data.find((part) => part[ap2Keys.token] !== undefined)?.[ap2Keys.token]
    if (reply.state === 'submitted' || reply.state === 'working')
      throw new MasonError('effect_unknown', 'the credentials provider works on it')
    const isDone = reply.state === 'completed'
    if (isDone && version === '0.1') return { credential: null }
    if (isDone && typeof token === 'string' && token !== '') return { credential: token }
    return { reason: explainRefusal('the credentials provider', reply) }
  }

  return {
    class: 'queryable',
    windowMs: window_ms,
    operations: ['authorize'],
    async findProblems({ order, capture }) {
      if (!order) return []
      if (order.request.route && !capture)
        return [createViolation('no_route', 'capture', 'must be true: an agent takes the money at once')]
      return findRouteProblems(agents, businessId, order)
    },
    toRequest({ order, credential }) {
      if (!order?.request.route) throw new MasonError('invalid_request', 'the order names no agent')
      const agentOrder = order.request as AgentOrder
      // what the executor closed itself is shown to no one before it is reserved
      const isUnseen = agentOrder.version === '0.2' && credential === null
      const token_from = isUnseen && toPresentation(agentOrder, order.payment.checkout.hash)
      const message = toPaymentMessage(agentOrder, credential)
      return JSON.stringify({ ...message, ...(token_from && { token_from }) })
    },
    async present(order, checkoutHash, key, signal) {
      const { route } = order
      if (!route?.credentials_agent) return { reason: 'no credentials provider is named' }
      const provider = await findAgent(agents, businessId, route.credentials_agent, 'credentials-provider')
      if (typeof provider === 'string') return { reason: provider }
      if (order.version === '0.1' && readTokenAddress(order) !== provider.origin)
        return { reason: 'the payment token is of another credentials provider' }
      const message = toPresentation(order as AgentOrder, checkoutHash)
      return show(businessId, message, order.version, key, () => {}, signal)
    },
    async send(request, key, checkLease, signal) {
      const purchase = await readPurchase()
      const { token_from, ...message } = JSON.parse(request) as AgentMessage & { token_from?: AgentMessage }
      if (token_from) {
        const provider = await findAgent(agents, purchase.tenant, token_from.agent, 'credentials-provider')
        const shown =
          typeof provider === 'string'
            ? { reason: provider }
            : await show(purchase.tenant, token_from, '0.2', `${key}-token`, checkLease, signal)
        // the merchant has not got it, and only this message would have brought it
        if ('reason' in shown) return { status: 'declined', provider_ref: null, reason: shown.reason }
        message.parts = [...message.parts, { data: { [ap2Keys.token]: shown.credential } }]
      }
      return toAnswer(await agents.send(purchase.tenant, message, key, checkLease, signal), key, purchase)
    },
    async lookup(key, signal) {
      const purchase = await readPurchase()
      const { tenant, provider_ref } = purchase
      const message = { ...toPaymentMessage(toOrder(purchase), null), parts: [] }
      const readTask = async (id: string): Promise<ProviderAnswer> =>
        toAnswer(await agents.readTask(tenant, message.agent, id, signal), key, purchase)
      try {
        if (provider_ref !== null && key === purchase.authorization) return await readTask(provider_ref)
        const ids = provider_ref === null ? {} : { task_id: provider_ref }
        const reply = await agents.lookup(tenant, { ...message, ...ids }, key, signal)
        return reply && (await toAnswer(reply, key, purchase))
      } catch (error) {
        if (error instanceof UnclearPaymentError) throw error
        const cannotSay = isMasonError(error, 'effect_unknown')
        // whether the task got the answer is not known: what it says now counts
        if (cannotSay && provider_ref !== null && key !== purchase.authorization)
          return readTask(provider_ref)
        if (cannotSay || (provider_ref === null && (purchase.age_s ?? 0) > maxSilenceS))
          throw createUnclearError('cannot say what became of the payment', error)
        throw error
      }
    },
    async answerChallenge(providerRef, answer, key, checkLease, signal) {
      const purchase = await readPurchase()
      const { tenant } = purchase
      const message = toChallengeMessage(toOrder(purchase), providerRef, answer)
      const reply = await agents.send(tenant, message, key, checkLease, signal)
      // a refusal is of this answer: an earlier one may have been right
      if (reply.state !== 'rejected') return toAnswer(reply, key, purchase)
      const current = await agents.readTask(tenant, message.agent, providerRef, signal).catch((error) => {
        if (!isMasonError(error, 'effect_unknown')) throw error
        throw createUnclearError('refused the answer and no longer knows the payment', error)
      })
      return toAnswer(current, key, purchase)
    },
    readWebhook: () => null,
  }
}
