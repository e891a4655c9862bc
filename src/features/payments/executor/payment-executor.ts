import { queryOne } from '../../../infra/database/database.ts'
import { toDelayMs } from '../ledger/delays.ts'
import type { PaymentRequest } from '../ledger/orders.ts'
import type { PaymentOutcome } from '../ledger/payment-queries.ts'
import { type PaymentProvider, type ProviderAnswer, UnclearPaymentError } from '../providers/provider.ts'
import { busyViolation, createOrderCloser, isPatient, toSealedAnswer } from './close-order.ts'
import type { ExecutorServices } from './executor-services.ts'
import {
  addOperation,
  askProvider,
  PaymentCanceledError,
  PaymentLostError,
  type PaymentOperation,
  readOperations,
  sendOperation,
} from './operations.ts'
import {
  findOperationProblem,
  findOrderProblem,
  findUnclear,
  orderViolation,
  orNull,
} from './order-problems.ts'
import { toRefusedOutcome, toReleasedOutcome } from './outcomes.ts'
import {
  type Decision,
  decideAnswer,
  decideReleased,
  decideUnknown,
  decideUnknownAnswer,
  toFoundAnswer,
  toUnseenAnswer,
} from './payment-answers.ts'
import { showMandates, toShownCheck, toUnshownOutcome } from './presentation.ts'
import { createReceipt, type KnownMandate, readMandate } from './receipts.ts'
import { reservePayment } from './reservation.ts'
import { finishOrder, finishPresentation, refuseOrder, settle } from './settlement.ts'
import { createOrderVerifier, parsePaymentRequest, type Refusal, toRefusal } from './verify-order.ts'
import { type ClaimedPayment, claimPayment, type TakenOrder, yieldOrder, yieldPayment } from './work-queue.ts'

const defaultLeaseMs = 30_000
/** Of a lease, so that an executor whose clock runs slow lets go before another may claim. */
const leaseShare = 0.8

/** Carries out orders and payments that it was handed. `startExecutor` hands them over. */
export const createPaymentExecutor = (services: ExecutorServices, stopped: AbortSignal) => {
  const {
    database,
    clock,
    leaseMs = defaultLeaseMs,
    audience,
    signer,
    wake = () => {},
    onStep = () => {},
  } = services
  const verifier = createOrderVerifier(services.trust, audience)
  const closer = createOrderCloser(database, services.agentKey, audience)
  const toLeaseEnd = (): number => clock.monotonicMs() + leaseMs * leaseShare
  const toSignal = (): AbortSignal => AbortSignal.any([stopped, AbortSignal.timeout(leaseMs * 0.7)])

  /** Ends an order to pay with a receipt, before anything was reserved. */
  const decline = async (
    order: TakenOrder,
    outcome: PaymentOutcome,
    request: PaymentRequest | null,
    detail: Record<string, unknown>,
  ): Promise<void> => {
    const { version = '0.2', payment: token = '' } = request ?? {}
    const none = { amount: null, provider_ref: null, network_ref: null, skipped: [] }
    const facts = { version, token, outcome, ...none }
    const receipt = await createReceipt({ ...facts, now: clock.now() }, signer)
    await refuseOrder(database, order, { status: 'declined', outcome, version, receipt, detail }, wake)
  }

  const refuse = (order: TakenOrder, refusal: Refusal, request: PaymentRequest | null): Promise<void> =>
    decline(order, toRefusedOutcome(order.payment_id, refusal), request, { ...refusal })

  const release = (order: TakenOrder): Promise<void> =>
    refuseOrder(
      database,
      order,
      {
        status: 'released',
        outcome: toReleasedOutcome(order.payment_id),
        version: null,
        receipt: null,
        detail: { reason: 'canceled' },
      },
      wake,
    )

  const pay = async (order: TakenOrder): Promise<void> => {
    if (order.canceled_at) return release(order)
    const now = Math.floor((services.mandateTime?.() ?? order.now).getTime() / 1000)
    const made = await closer.close(order, now)
    if ('refusal' in made) return refuse(order, made.refusal, null)
    const request = parsePaymentRequest(made.request)
    if (!request) return refuse(order, toRefusal([orderViolation('request', 'is no payment')]), null)
    const verdict = await verifier.verify(order.tenant, request, now)
    if (!verdict.ok) return refuse(order, verdict.refusal, request)
    await onStep('verified')
    const refuseFor = (field: string, text: string): Promise<void> =>
      refuse(order, toRefusal([orderViolation(field, text)]), request)
    const use = { businessId: order.tenant, paymentId: order.payment_id }
    const provider = await orNull(services.openProvider(request.provider_id, use), 'not_found')
    if (!provider) return refuseFor('provider_id', 'names no provider: add it first')
    const { answer } = made
    const credential =
      answer && (await orNull(services.unseal(answer.sealed, answer.purpose), 'secret_unreadable'))
    if (answer && credential === null)
      return refuseFor(
        'credential',
        'is not for this payment and the user who approved it: choose the instrument again',
      )
    const { payment, payee_issuer } = verdict.value
    const approved = { request, payment, payee_issuer }
    const operation = {
      kind: 'authorize' as const,
      payment_id: order.payment_id,
      amount: payment.amount,
      payee: { id: payment.payee.id, name: payment.payee.name },
      provider_ref: null,
      credential,
      capture: request.capture,
      order: approved,
    }
    const problems = (await provider.findProblems?.(operation)) ?? []
    if (problems.length > 0) return refuse(order, toRefusal(problems), request)
    const shown = await showMandates(provider, order, approved, toSignal())
    if (shown && 'reason' in shown)
      return decline(order, toUnshownOutcome(order, approved, shown.reason), request, shown)
    if (shown) await onStep('shown')
    const bytes = provider.toRequest(shown ? { ...operation, ...shown } : operation)
    const leaseEndsAt = toLeaseEnd()
    const checks = shown ? [...verdict.value.checks, toShownCheck(approved)] : verdict.value.checks
    const verified = { ...verdict.value, checks }
    const reserved = await reservePayment(database, order, request, verified, bytes, leaseMs)
    if (reserved === 'lost') return
    if (reserved === 'canceled') return release(order)
    if (reserved === 'busy')
      return isPatient(order)
        ? yieldOrder(database, order, retryMs)
        : refuse(order, toRefusal([busyViolation()]), request)
    if ('refusal' in reserved) return refuse(order, reserved.refusal, request)
    await onStep('reserved')
    const { skipped } = verdict.value
    const known = { token: request.payment, skipped }
    await carryOn(reserved.payment, leaseEndsAt, { ...reserved, known, provider })
  }

  /** Writes a decision with its receipt. False: another executor has the payment. */
  const apply = async (
    payment: ClaimedPayment,
    decision: Decision,
    known?: KnownMandate,
  ): Promise<boolean> => {
    const { receives, ...change } = decision
    if (!receives || !change.outcome) return settle(database, payment, change, wake)
    const mandate = known ?? (await readMandate(database, payment.payment_id))
    const receipt = await createReceipt(
      {
        version: payment.version,
        ...mandate,
        outcome: change.outcome,
        amount: { currency: payment.currency, minor: payment.amount_minor },
        provider_ref: change.provider_ref ?? payment.provider_ref,
        network_ref: change.network_ref ?? null,
        now: clock.now(),
      },
      signer,
    )
    return settle(database, payment, { ...change, receipt }, wake)
  }

  const createCarrier = async (
    payment: ClaimedPayment,
    leaseEndsAt: number,
    answerPurpose = '',
    provider?: PaymentProvider,
  ) => ({
    sql: database,
    provider:
      provider ?? (await services.openProvider(payment.provider_id, { paymentId: payment.payment_id })),
    clock,
    leaseEndsAt,
    signal: toSignal(),
    unseal: (sealed: string) => services.unseal(sealed, answerPurpose),
  })

  /** Goes on with a payment that this executor has: sends it, or looks up what became of it. */
  const carryOn = async (
    payment: ClaimedPayment,
    leaseEndsAt: number,
    fresh?: { operation: PaymentOperation; known: KnownMandate; provider: PaymentProvider },
  ): Promise<void> => {
    const operation = fresh?.operation ?? (await readOperations(database, payment.payment_id))[0]
    if (!operation) return
    try {
      const carrier = await createCarrier(payment, leaseEndsAt, '', fresh?.provider)
      const isSent = operation.status === 'done' || payment.status === 'unknown'
      const silentMs = Math.min(payment.silent_ms, operation.age_ms ?? 0)
      await onStep('sending')
      const lookup = () => carrier.provider.lookup(operation.operation_id, carrier.signal)
      const ask = async () =>
        isSent ? lookup() : ((await sendOperation(payment, operation, carrier)) ?? lookup())
      const answer = await askProvider(ask, silentMs, carrier.provider)
      await onStep('answered')
      const current = isSent ? payment : { ...payment, status: 'sent' as const }
      const decision = answer
        ? decideAnswer(current, operation, answer, isSent ? 'lookup' : 'answer')
        : isSent && (silentMs < carrier.provider.windowMs || payment.status === 'unknown')
          ? null
          : decideUnknown(current, 'the provider does not know it and the time to send it again is over')
      if (decision) await apply(current, decision, fresh?.known)
      else await yieldPayment(database, payment, toDelayMs(payment.tries), answer !== null)
      await onStep('settled')
    } catch (error) {
      if (error instanceof PaymentCanceledError)
        return void (await apply(
          payment,
          decideReleased(operation.operation_id, toReleasedOutcome(payment.payment_id)),
        ))
      if (error instanceof PaymentLostError) return
      const isUnclear = error instanceof UnclearPaymentError
      const isNew = isUnclear && payment.status !== 'unknown'
      if (isNew && (await apply(payment, decideUnknown(payment, error.message)))) return
      await yieldPayment(database, payment, toDelayMs(payment.tries))
      if (!isUnclear || isNew) throw error
    }
  }

  /** An order about a payment that was made: carried out under the payment's own lease, at its own key. */
  const operate = async (order: TakenOrder): Promise<void> => {
    const leaseEndsAt = toLeaseEnd()
    const payment = await claimPayment(database, order.payment_id, leaseMs)
    if (!payment) return yieldOrder(database, order, retryMs)
    try {
      await carryOut(order, payment, leaseEndsAt)
    } catch (error) {
      if (error instanceof PaymentLostError) return
      await yieldPayment(database, payment, toDelayMs(payment.tries))
      await yieldOrder(database, order, toDelayMs(order.takes))
      throw error
    }
  }

  const carryOut = async (order: TakenOrder, payment: ClaimedPayment, leaseEndsAt: number): Promise<void> => {
    const end = async (message: string): Promise<void> => {
      await finishOrder(database, order, { status: 'refused', message }, wake)
      await yieldPayment(database, payment, toDelayMs(payment.tries))
    }
    const operations = await readOperations(database, payment.payment_id)
    const authorization = operations[0]
    const existing = operations.find(({ order_id }) => order_id === order.order_id)
    const open = () => createCarrier(payment, leaseEndsAt, toSealedAnswer(order)?.purpose)
    const isSettled = order.kind === 'settle'
    const windowMs = isSettled && payment.status === 'sent' ? (await open()).provider.windowMs : Infinity
    const unclear = isSettled ? findUnclear(payment, operations, windowMs) : undefined
    const problem = existing
      ? findOperationProblem(existing, payment)
      : findOrderProblem(order, payment, operations, unclear)
    if (problem) return end(problem)
    if (unclear) return settleByOperator(order, payment, unclear)
    if (!authorization) return end('The payment has no authorization.')
    const { kind } = order as { kind: Exclude<PaymentOperation['kind'], 'authorize'> }
    const carrier = await open()
    if (kind !== 'answer' && carrier.provider.operations?.includes(kind) === false)
      return end(`The provider cannot ${kind} a payment: ask the merchant.`)
    if (!existing) {
      const amount = kind === 'refund' ? Number(order.request.amount_minor) : payment.amount_minor
      const request =
        kind === 'answer'
          ? (order.sealed ?? '')
          : carrier.provider.toRequest({
              kind,
              payment_id: payment.payment_id,
              amount: { currency: payment.currency, minor: amount },
              payee: payment.payee,
              provider_ref: payment.provider_ref,
              credential: null,
              capture: true,
            })
      const operation = {
        order_id: order.order_id,
        kind,
        amount_minor: amount,
        request,
        capture: authorization.capture,
      }
      await addOperation(database, payment, operation)
    }
    const operation = (await readOperations(database, payment.payment_id)).find(
      ({ order_id }) => order_id === order.order_id,
    )
    if (!operation) throw new PaymentLostError()
    await onStep('sending')
    const lookup = () => carrier.provider.lookup(operation.operation_id, carrier.signal)
    /** An answer that is for another payment or user is sent to no one: the person is asked again. */
    const isForeign =
      kind === 'answer' &&
      operation.status === 'intent' &&
      (await orNull(carrier.unseal(order.sealed ?? ''), 'secret_unreadable')) === null
    const ask = async (): Promise<ProviderAnswer | null> => {
      if (isForeign) return toUnseenAnswer(payment, operation)
      return operation.status === 'intent' || operation.status === 'sent'
        ? ((await sendOperation(payment, operation, carrier)) ??
            (await lookup()) ??
            toUnseenAnswer(payment, operation))
        : await lookup()
    }
    // a person waits for an answer of a challenge; what an admin ordered stays open, and they settle it
    const asking = kind === 'answer' ? askProvider(ask, operation.age_ms ?? 0, carrier.provider) : ask()
    const answer = await asking.catch((error: unknown) => {
      if (error instanceof UnclearPaymentError) return error
      throw error
    })
    await onStep('answered')
    const decision =
      answer instanceof UnclearPaymentError
        ? decideUnknownAnswer(payment, operation, answer.message)
        : answer && decideAnswer(payment, operation, answer, 'answer')
    if (decision) await apply(payment, decision)
    else await yieldPayment(database, payment, toDelayMs(payment.tries))
    if (!decision?.order) await yieldOrder(database, order, toDelayMs(order.takes))
  }

  /** What an operator found out about an operation. The buyer never decides it. */
  const settleByOperator = async (
    order: TakenOrder,
    payment: ClaimedPayment,
    operation: PaymentOperation,
  ): Promise<void> => {
    const { provider_ref } = payment
    const found = toFoundAnswer(payment, operation, order.request.status === 'succeeded')
    const decision = decideAnswer(payment, operation, found, 'operator')
    if (!decision) throw new PaymentLostError()
    const note = String(order.request.note ?? '').slice(0, 1000)
    await apply(payment, {
      ...decision,
      provider_ref,
      order: { id: order.order_id, outcome: decision.order?.outcome ?? (decision.outcome as PaymentOutcome) },
      event: {
        kind: 'settled',
        detail: { order_id: order.order_id, operation: operation.kind, status: found.status, note },
      },
    })
  }

  return {
    async runOrder(order: TakenOrder): Promise<void> {
      try {
        await onStep('taken')
        if (order.kind === 'pay') await pay(order)
        else if (order.kind === 'present') await finishPresentation(database, order, wake)
        else await operate(order)
      } catch (error) {
        await yieldOrder(database, order, toDelayMs(order.takes)).catch(() => {})
        throw error
      }
    },
    runPayment: (payment: ClaimedPayment, claimedAt: number): Promise<void> =>
      carryOn(payment, claimedAt + leaseMs * leaseShare),
    /** What a genuine webhook says of an operation. False: the payment is busy, and the message waits. */
    async applyEvent(
      key: string | null,
      providerId: string,
      providerRef: string,
      answer: ProviderAnswer,
    ): Promise<boolean> {
      const found = await queryOne<{ payment_id: string }>(
        database,
        `SELECT o.payment_id FROM payment_operations o JOIN payments p USING (payment_id)
         WHERE p.provider_id = $2 AND CASE WHEN $1::text IS NULL THEN p.provider_ref = $3 AND o.kind = 'authorize' ELSE o.operation_id = $1 END`,
        [key, providerId, providerRef],
      )
      if (!found) return true
      const payment = await claimPayment(database, found.payment_id, leaseMs)
      if (!payment) return false
      const operations = await readOperations(database, found.payment_id)
      const operation = operations.find((one) =>
        key === null ? one.kind === 'authorize' : one.operation_id === key,
      )
      const isOver = operation?.status === 'done' && operation.kind !== 'authorize'
      const decision = operation && !isOver ? decideAnswer(payment, operation, answer, 'webhook') : null
      const isApplied = decision?.from.includes(payment.status) && (await apply(payment, decision))
      if (!isApplied) await yieldPayment(database, payment, toDelayMs(payment.tries))
      return true
    },
  }
}

/** See `createPaymentExecutor`. */
export type PaymentExecutor = ReturnType<typeof createPaymentExecutor>

/** A payment that another executor has is tried again after this. */
const retryMs = 300
