import { setMaxListeners } from 'node:events'
import type { Database } from '../../infra/database/database.ts'
import type { Egress } from '../../infra/egress/egress-port.ts'
import { settlesWithin } from '../../infra/lib/timeouts.ts'
import type { MasterKeys } from '../../infra/secrets/master-keys.ts'
import type { Scrubber } from '../../infra/secrets/scrubber.ts'
import { openDeadline } from '../../state/deadline.ts'
import { isMasonError, MasonError, toErrorMessage } from '../../state/errors.ts'
import type { Log } from '../../state/ports/log.ts'
import { cutText } from '../../state/text/cut-text.ts'
import type { RenderPush } from '../push-message.ts'
import {
  claimDeliveries,
  type DeliveryClaim,
  type DeliveryOutcome,
  deliveryLimits,
  settleDelivery,
} from './delivery-queue.ts'
import { signWebhook } from './signature.ts'
import { readWebhookSecrets } from './webhook-settings.ts'

/** What a sender needs. */
export type WebhookSenderOptions = {
  database: Database
  egress: Egress
  masterKeys: MasterKeys
  scrubber: Pick<Scrubber, 'add'>
  /** Renders messages to other agents; null: there are no such. */
  renderPush: RenderPush | null
  log: Log
  /** Of one attempt; at most half of the time for which a message is claimed. */
  timeoutMs?: number
}

/** How long one pass waits for an attempt to end before it looks for more. */
const refillMs = 50
const stopTimeoutMs = 2000
const maxTextChars = 1000

/** The body of a message, the same bytes at every attempt. Times are ISO 8601 in UTC. */
const toWebhookBody = (claim: Omit<DeliveryClaim, 'push_id'>): string => {
  const { type, run_id, result, question, request_id, expires_at } = claim
  const isConsent = type === 'run.consent_required'
  const isOperator = type === 'run.operator_required'
  const run = {
    id: run_id,
    session_id: claim.session_id,
    business_id: claim.tenant,
    user_id: claim.user_id,
    turn: claim.turn,
    status: isConsent || isOperator ? 'running' : type.slice(type.indexOf('.') + 1),
    finish_reason: claim.finish_reason,
    error: result?.error
      ? { code: result.error.code, message: cutText(result.error.message, maxTextChars) }
      : null,
    input_request:
      isConsent || isOperator || request_id === null
        ? null
        : { id: request_id, question: question && cutText(question, maxTextChars), expires_at },
    consent_request: isConsent ? { payment_id: request_id, expires_at } : null,
    operator_request: isOperator
      ? { effect_id: request_id, error: cutText(claim.effect_error ?? '', maxTextChars) }
      : null,
    metadata: claim.metadata,
    created_at: claim.run_created_at,
    ended_at: isConsent || isOperator || type === 'run.input_required' ? null : claim.run_ended_at,
  }
  const data = run_id === null ? { business_id: claim.tenant } : run
  return JSON.stringify({ type, timestamp: claim.created_at, data })
}

const toOutcome = (status: number): DeliveryOutcome => {
  if (status >= 200 && status < 300) return { kind: 'delivered', status }
  if (status === 410) return { kind: 'gone', status, error: 'the address answered 410 Gone' }
  const redirects = status >= 300 && status < 400
  const error = `the address answered ${status}${redirects ? '; redirects are not followed' : ''}`
  return { kind: 'failed', status, error }
}

/**
 * Sends messages of the outbox: at least once each, always under the same id. A process that is killed
 * between sending and recording leaves a message that another one sends again.
 */
export const createWebhookSender = (options: WebhookSenderOptions) => {
  const { database, egress, log, timeoutMs = 15_000 } = options
  const counts = { delivered: 0, failed: 0, dead: 0 }
  let hasBegun = false
  const inFlight = new Set<Promise<void>>()
  const closing = new AbortController()
  setMaxListeners(deliveryLimits.process, closing.signal)

  const toMessage = async ({ push_id, ...claim }: DeliveryClaim) => {
    if (push_id === null) return { body: toWebhookBody(claim), headers: {} }
    if (options.renderPush) return options.renderPush({ ...claim, push_id })
    throw new MasonError('not_found', 'this server sends no messages to other agents')
  }

  const post = async (claim: DeliveryClaim, secrets: Promise<string[]>): Promise<DeliveryOutcome> => {
    using deadline = openDeadline(timeoutMs, closing.signal)
    try {
      const { body, headers } = await toMessage(claim)
      const response = await egress.request(claim.url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          ...headers,
          ...signWebhook({ id: claim.webhook_id, timestamp: claim.now_s, body }, await secrets),
        },
        body,
        signal: deadline.signal,
        allowPrivate: claim.allow_private,
        maxRedirects: 0,
      })
      response.body.cancel()
      return toOutcome(response.status)
    } catch (error) {
      if (isMasonError(error, 'egress_refused'))
        return { kind: 'refused', status: null, error: error.message }
      const isLate = deadline.signal.aborted && !closing.signal.aborted
      const reason = isLate ? `no answer within ${timeoutMs / 1000} s` : toErrorMessage(error)
      return { kind: 'failed', status: null, error: cutText(reason, maxTextChars) }
    }
  }

  const deliver = async (claim: DeliveryClaim, secrets: Promise<string[]>): Promise<void> => {
    try {
      const outcome = await post(claim, secrets)
      // another worker sends it again, under the same id
      if (closing.signal.aborted && outcome.kind === 'failed') return
      const status = await settleDelivery(database, claim, outcome)
      if (outcome.kind !== 'delivered') counts.failed += 1
      if (status === 'delivered' || status === 'dead') counts[status] += 1
      if (status === 'dead')
        log.warn(
          { webhook_id: claim.webhook_id, business_id: claim.tenant, run_id: claim.run_id, ...outcome },
          'a webhook was given up; `mason webhooks replay` sends it again',
        )
    } catch (error) {
      log.warn({ webhook_id: claim.webhook_id, error: String(error) }, 'a webhook will be sent again')
    }
  }

  /** Sends what is due, until nothing is. */
  const sendDue = async (): Promise<void> => {
    hasBegun = true
    for (;;) {
      const free = deliveryLimits.process - inFlight.size
      const claims = free > 0 && !closing.signal.aborted ? await claimDeliveries(database, free) : []
      if (claims.length === 0) return
      const secretsOf = new Map<string, Promise<string[]>>()
      for (const claim of claims) {
        const { masterKeys, scrubber } = options
        const secrets =
          secretsOf.get(claim.tenant) ?? readWebhookSecrets(database, claim.tenant, masterKeys, scrubber)
        secretsOf.set(claim.tenant, secrets)
        const sending: Promise<void> = deliver(claim, secrets).finally(() => inFlight.delete(sending))
        inFlight.add(sending)
      }
      await settlesWithin(Promise.race(inFlight), refillMs)
    }
  }
  return {
    sendDue,
    /** Attempts of this process: `failed` ones are sent again, unless they are `dead` too. Null: it sends none. */
    counts: (): Readonly<typeof counts> | null => (hasBegun ? counts : null),
    /** Waits for the last call of `sendDue` and what is in flight, and then aborts it. */
    async drain(lastCall: Promise<void>): Promise<void> {
      await settlesWithin(Promise.all([lastCall, ...inFlight]), stopTimeoutMs)
      closing.abort(new Error('the worker stops'))
      await settlesWithin(Promise.all([lastCall, ...inFlight]), stopTimeoutMs)
    },
  }
}

/** See `createWebhookSender`. */
export type WebhookSender = ReturnType<typeof createWebhookSender>
