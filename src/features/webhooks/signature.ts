import { createHmac, randomBytes } from 'node:crypto'

const prefix = 'whsec_'

/** A new secret for webhooks, in the form that libraries of Standard Webhooks take. */
export const newWebhookSecret = (): string => prefix + randomBytes(32).toString('base64')

/** What is signed: the id, the time in seconds since 1970, and the body as it is sent. */
export type SignedWebhook = { id: string; timestamp: number; body: string }

/**
 * The headers of a message by Standard Webhooks (https://github.com/standard-webhooks/standard-webhooks, section
 * "Signature scheme"): one signature for each secret, the newest first, so that a receiver may have either.
 */
export const signWebhook = (
  { id, timestamp, body }: SignedWebhook,
  secrets: readonly string[],
): Record<string, string> => {
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(prefix.length), 'base64')
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`
  })
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signatures.join(' '),
  }
}
