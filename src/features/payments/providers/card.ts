import { createHmac, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import type { Egress } from '../../../infra/egress/egress-port.ts'
import { parseJsonOrText } from '../../../infra/lib/json-text.ts'
import { type MasonError, toSettingsError } from '../../../state/errors.ts'
import { createJsonExchange, createUnclearError, type EgressInit } from './json-exchange.ts'
import {
  findAnswerError,
  type OperationKind,
  type PaymentProvider,
  type ProviderAnswer,
  type ProviderSecrets,
  type ProviderSettings,
} from './provider.ts'

/** The stored bytes of an operation, which are the body of its request. `payment` is the provider's reference. */
type CardRequest = {
  kind: OperationKind
  payment: string | null
  payment_id: string
  amount: number
  currency: string
  payee: { id: string | null; name: string }
  credential: string | null
  capture: boolean
}

/** The database stores no NUL: an answer with one would be asked for again and again. */
const referenceSchema = z
  .string()
  .max(200)
  .regex(/^\P{Cc}*$/u)

/** One operation as the provider has it, in answers, look-ups and webhooks (examples/card-provider/README.md). */
const operationSchema = z.object({
  key: z.string().max(500).nullish(),
  payment: referenceSchema.min(1),
  status: z.enum(['succeeded', 'authorized', 'voided', 'refunded', 'declined', 'pending', 'requires_action']),
  amount: z.int().nonnegative().nullish(),
  currency: z.string().max(10).nullish(),
  network_ref: referenceSchema.nullish(),
  code: z.string().nullish(),
  challenge: z.object({ type: z.enum(['otp', 'redirect']), text: z.string().min(1).max(500) }).nullish(),
})
type CardOperation = z.infer<typeof operationSchema>

const refusalSchema = z.object({
  error: z.object({ acted: z.boolean().nullish(), code: z.string(), payment: referenceSchema.nullish() }),
})
const eventSchema = z.object({ type: z.literal('operation.updated'), data: operationSchema })

/** What a refusal means for the person. The provider's own words stay out: they could be anyone's. */
const reasons: Record<string, string> = {
  card_declined: 'The bank declined this card. Use another card, or ask the bank.',
  insufficient_funds: 'The card has not enough money for this payment. Use another card.',
  expired_card: 'The card has expired. Use another card.',
  invalid_card: 'The payment provider does not know this card. Add it again, or use another card.',
  challenge_failed: 'The code was wrong too often. Start the payment again.',
  challenge_expired: 'The code came too late. Start the payment again.',
  amount_too_large: 'The amount is more than what is left of this payment. Ask for less.',
  invalid_state: 'The payment is no longer in a state that allows this. Look at its trail.',
}
const toReason = (code: string | null | undefined): string =>
  (code && Object.hasOwn(reasons, code) && reasons[code]) ||
  `The payment provider declined${/^[a-z0-9_]{1,50}$/.test(code ?? '') ? ` (${code})` : ''}. Use another card, or ask the provider.`

/** How far the time of a webhook may be from its arrival, as Standard Webhooks proposes. */
const toleranceS = 300
const paths = { authorize: '', capture: '/capture', void: '/void', refund: '/refund' }

const createUnknownError = (what: string, cause?: unknown): MasonError =>
  createUnclearError(
    'the card provider',
    what,
    'look the payment up at the provider by its idempotency key',
    cause,
  )

/**
 * Whether headers (in lower case) are those of a signed webhook of this time, all that can be said without the secret. The signed
 * bytes are joined by dots: an id with a dot could move the border between id and time.
 */
export const isWebhookForm = (headers: Record<string, string>, now: Date): boolean => {
  const { 'webhook-id': id = '', 'webhook-timestamp': time = '', 'webhook-signature': signed = '' } = headers
  return (
    /^[\w-]{1,200}$/.test(id) &&
    /^\d{1,12}$/.test(time) &&
    Math.abs(now.getTime() / 1000 - Number(time)) <= toleranceS &&
    /(?:^| )v1,[A-Za-z0-9+/]{43}=(?: |$)/.test(signed)
  )
}

/** `refusals`: the statuses of an answer that can be a decline. */
type CardPost = { body: string; key: string; checkLease: () => void; refusals?: readonly number[] }

/**
 * Opens a card provider over HTTP; the routes are in examples/card-provider/README.md. Throws `invalid_settings` for a
 * webhook secret of less than 24 bytes: with an empty one anyone could sign.
 */
export const openProvider = (
  { base_url, allow_private, window_ms, timeout_ms }: ProviderSettings,
  { api_key, webhook_secret }: ProviderSecrets,
  egress: Egress,
): PaymentProvider => {
  const webhookKey = Buffer.from(webhook_secret.replace(/^whsec_/, ''), 'base64')
  if (webhookKey.length < 24)
    throw toSettingsError(
      "the provider's webhook secret has less than 24 bytes",
      'store the secret again as the provider shows it, beginning with whsec_',
    )

  const exchangeJson = createJsonExchange(egress, { timeout_ms, allow_private }, 'the card provider')
  const exchange = (path: string, init: EgressInit, signal: AbortSignal) =>
    exchangeJson(
      `${base_url.replace(/\/$/, '')}${path}`,
      { ...init, headers: { authorization: `Bearer ${api_key}`, ...init.headers } },
      signal,
    )

  const post = async (
    path: string,
    { body, key, checkLease, refusals = [400, 402, 404, 422] }: CardPost,
    signal: AbortSignal,
  ): Promise<ProviderAnswer> => {
    const init = { method: 'POST', headers: { 'idempotency-key': key }, body, beforeSend: checkLease }
    const response = await exchange(path, init, signal)
    if (response.status === 200 || response.status === 201) return toKeyedAnswer(response.body, key)
    const refusal = refusalSchema.safeParse(response.body).data?.error
    if (!refusals.includes(response.status) || refusal?.acted !== false)
      throw createUnknownError(`answered ${response.status}`)
    return { status: 'declined', provider_ref: refusal.payment ?? null, reason: toReason(refusal.code) }
  }

  return {
    class: 'keyed',
    windowMs: window_ms,
    toRequest({ kind, provider_ref, payment_id, amount, payee, credential, capture }) {
      const request: CardRequest = {
        kind,
        payment: provider_ref,
        payment_id,
        amount: amount.minor,
        currency: amount.currency,
        payee: { id: payee.id, name: payee.name },
        credential,
        capture,
      }
      return JSON.stringify(request)
    },
    async send(request, key, checkLease, signal) {
      const { kind, payment, amount, currency, capture } = JSON.parse(request) as CardRequest
      const path = payment === null ? '' : `/${encodeURIComponent(payment)}`
      const answer = await post(
        `/v1/payments${path}${paths[kind]}`,
        { body: request, key, checkLease },
        signal,
      )
      const error = findAnswerError({ kind, capture, amount: { currency, minor: amount } }, answer)
      if (error !== null) throw createUnknownError(`answered nonsense: ${error}`)
      if (payment !== null && answer.provider_ref !== null && answer.provider_ref !== payment)
        throw createUnknownError('answered about another payment')
      return answer
    },
    async lookup(key, signal) {
      const { status, body } = await exchange(`/v1/operations/${encodeURIComponent(key)}`, {}, signal)
      if (status === 200) return toKeyedAnswer(body, key)
      // the 404 of a proxy, or of a wrong address, says nothing about the key
      if (status === 404 && refusalSchema.safeParse(body).data?.error.code === 'unknown_key') return null
      throw createUnknownError(`answered ${status} to the look-up`)
    },
    async answerChallenge(providerRef, answer, key, checkLease, signal) {
      const path = `/v1/payments/${encodeURIComponent(providerRef)}/challenge`
      const body = JSON.stringify({ answer })
      // any other refusal is of this answer, and says nothing about the payment: an earlier answer may have been right
      const settled = await post(path, { body, key, checkLease, refusals: [402] }, signal)
      if (settled.provider_ref !== null && settled.provider_ref !== providerRef)
        throw createUnknownError('answered about another payment')
      return settled
    },
    readWebhook(headers, body, now) {
      const {
        'webhook-id': id = '',
        'webhook-timestamp': time = '',
        'webhook-signature': signed = '',
      } = headers
      if (!isWebhookForm(headers, now)) return null
      const expected = createHmac('sha256', webhookKey).update(`${id}.${time}.`).update(body).digest()
      const isSigned = signed.split(' ').some((one) => {
        const signature = Buffer.from(one.replace(/^v1,/, ''), 'base64')
        return (
          one.startsWith('v1,') &&
          signature.length === expected.length &&
          timingSafeEqual(signature, expected)
        )
      })
      const event = isSigned
        ? eventSchema.safeParse(parseJsonOrText(Buffer.from(body).toString())).data
        : undefined
      const answer = event && toAnswer(event.data)
      if (!event || !answer) return null
      return { event_id: id, key: event.data.key ?? null, provider_ref: event.data.payment, answer }
    },
  }
}

/** The answer that an operation is, or null where it lacks what its status needs. */
const toAnswer = ({
  payment,
  status,
  amount,
  currency,
  challenge,
  network_ref,
  code,
}: CardOperation): ProviderAnswer | null => {
  if (status === 'pending') return { status, provider_ref: payment }
  if (status === 'declined') return { status, provider_ref: payment, reason: toReason(code) }
  if (status === 'requires_action')
    return challenge && (challenge.type === 'otp' || /^https:\/\/\S+$/.test(challenge.text))
      ? { status: 'challenge', provider_ref: payment, challenge }
      : null
  if (amount == null || currency == null) return null
  return {
    status,
    provider_ref: payment,
    network_ref: network_ref ?? null,
    amount: { currency, minor: amount },
  }
}

const toKeyedAnswer = (body: unknown, key: string): ProviderAnswer => {
  const { data, error } = operationSchema.safeParse(body)
  if (!data) throw createUnknownError('answered what is no operation', error)
  if (data.key !== key) throw createUnknownError('answered for another idempotency key')
  const answer = toAnswer(data)
  if (!answer) throw createUnknownError(`left out what the status ${data.status} needs`)
  return answer
}
