import { z } from 'zod'
import { toChangeSchema, truncatedSchema } from '../../state/resource-schema.ts'
import { webhookUrlSchema } from '../../state/run-request.ts'

/** Bodies and views of the admin API for webhooks: docs/contract.md, section 7. */

/** What a message may be about. */
export const webhookTypeSchema = z.enum([
  'run.completed',
  'run.failed',
  'run.cancelled',
  'run.input_required',
  'run.consent_required',
  'run.operator_required',
  'webhook.ping',
])

/** `dead`: given up, until it is replayed. */
export const deliveryStatusSchema = z.enum(['pending', 'sending', 'delivered', 'dead'])

/** A message to one address, as the admin API returns it. Times are ISO 8601 in UTC. */
export const deliveryViewSchema = z.strictObject({
  /** Also the header `webhook-id`, the same at every attempt. */
  id: z.string(),
  business_id: z.string(),
  type: webhookTypeSchema,
  /** Null: a test message. */
  run_id: z.string().nullable(),
  /** Without the values of its query. */
  url: z.string(),
  status: deliveryStatusSchema,
  attempts: z.int(),
  /** When it is sent next, or again where its worker is lost; null: not any more. */
  due_at: z.string().nullable(),
  /** The status that the address answered last. */
  last_status: z.int().nullable(),
  last_error: z.string().nullable(),
  last_attempt_at: z.string().nullable(),
  created_at: z.string(),
  ended_at: z.string().nullable(),
  truncated: truncatedSchema,
})

/** The settings of a business for webhooks. */
const settingsSchema = z.strictObject({
  url: webhookUrlSchema
    .nullable()
    .describe(
      'Where the messages of its runs are sent; null: only those of runs with an address of their own',
    ),
  allow_private: z.boolean().describe('Whether its addresses, and those of its runs, may be private ones'),
})
/** Body of PATCH; an absent field stays, null clears. */
export const webhookSettingsChangeSchema = toChangeSchema(
  settingsSchema.extend({ allow_private: settingsSchema.shape.allow_private.default(false) }),
).meta({ examples: [{ url: 'https://shop.example/webhooks/mason' }] })
/** The settings with what messages are signed with: the newest secret, and for a day the one before. */
export const webhookSettingsViewSchema = settingsSchema.extend({
  business_id: z.string(),
  secrets: z.array(
    z.strictObject({ secret: z.string(), created_at: z.string(), expires_at: z.string().nullable() }),
  ),
})
/** A new secret, which only this response has. */
export const newWebhookSecretSchema = z.strictObject({
  secret: z.string(),
  /** Until then messages are also signed with the secret before; null: there was none. */
  previous_expires_at: z.string().nullable(),
})

/** See `deliveryViewSchema`. */
export type DeliveryView = z.infer<typeof deliveryViewSchema>
/** See `webhookSettingsChangeSchema`. */
export type WebhookSettingsChange = z.infer<typeof webhookSettingsChangeSchema>
/** See `webhookSettingsViewSchema`. */
export type WebhookSettingsView = z.infer<typeof webhookSettingsViewSchema>
/** See `newWebhookSecretSchema`. */
export type NewWebhookSecret = z.infer<typeof newWebhookSecretSchema>
