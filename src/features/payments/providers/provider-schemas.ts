import { z } from 'zod'
import { labelSchema, toChangeSchema, toViewSchema } from '../../../state/resource-schema.ts'
import { businessIdSchema } from '../../../state/run-request.ts'

/** Bodies and views of the admin API for payment providers: docs/contract.md, section 7. */

const secret = (min: number) =>
  z
    .string()
    .min(min, `must have at least ${min} characters`)
    .max(1000)
    .regex(/^[\x21-\x7e]+$/, 'has spaces or characters that are invalid in an HTTP header')

const minWebhookSecretBytes = 24
/**
 * A request leaves within a lease of the decision to send it again, which counts on four fifths of the window: the last fifth
 * is twice as long as a lease, so that an executor that was frozen never charges under a key that has been forgotten.
 */
const minWindowMs = 300_000

const kindSchema = z
  .enum(['card', 'agent'])
  .describe('`card`: card payments over HTTP. `agent`: the agent of the merchant takes the payment, over A2A')
  .default('card')

const changeable = {
  name: labelSchema.describe('A name for people, unique'),
  base_url: z
    .string()
    .min(1)
    .max(2000)
    .describe(
      'Of a card provider: the URL before the paths of the API, such as https://pay.example. A new one needs `api_key` again',
    ),
  allow_private: z
    .boolean()
    .describe('Whether private addresses are allowed; absent: where `base_url` plainly has one')
    .optional(),
  business_ids: z
    .array(businessIdSchema)
    .min(1)
    .max(1000)
    .nullable()
    .describe('Which businesses pay by it; null: all')
    .default(null),
  window_ms: z
    .int()
    .min(
      minWindowMs,
      `must be at least ${minWindowMs}: a key must be known for longer than a request may be held up`,
    )
    .max(30 * 86_400_000)
    .describe('How long it deduplicates an idempotency key')
    .default(86_400_000),
  timeout_ms: z.int().min(100).max(300_000).describe('How long one request to it may take').default(30_000),
  api_key: secret(8).describe('Of a card provider: sent with each request, and never shown'),
  webhook_secret: secret(8)
    .refine(
      (text) => Buffer.from(text.replace(/^whsec_/, ''), 'base64').length >= minWebhookSecretBytes,
      `must be whsec_ and at least ${minWebhookSecretBytes} bytes in base64, as the provider shows it`,
    )
    .describe('Of a card provider: what its webhooks are signed with (`whsec_` and base64); never shown'),
}

/** What providers of each kind have; other kinds have none of it. */
export const fieldsOfKinds = { card: ['base_url', 'api_key', 'webhook_secret'], agent: [] } as const

const createSchema = z.strictObject({
  ...changeable,
  kind: kindSchema,
  base_url: changeable.base_url.optional(),
  api_key: changeable.api_key.optional(),
  webhook_secret: changeable.webhook_secret.optional(),
  test: z.boolean().describe('Whether it moves no money. It cannot be changed').default(false),
  demo: z
    .boolean()
    .describe(
      'Whether its businesses may pay by what the samples of AP2 0.1 send in place of signatures. Needs `test`, no active provider that moves money, and cannot be changed',
    )
    .default(false),
})
/** Times are ISO 8601 in UTC. */
const viewSchema = toViewSchema({
  ...createSchema.shape,
  base_url: z.string().nullable(),
  allow_private: z.boolean(),
  api_key: z.string().nullable(),
  webhook_secret: z.string().nullable(),
  status: z.enum(['active', 'ended']).describe('`ended`: it takes no new payments; those that it has go on'),
  ended_at: z.string().nullable(),
  webhook_path: z
    .string()
    .nullable()
    .describe('Where the provider sends its webhooks, on this server; null for any but a card provider'),
})

/** The bodies and the view of payment providers. */
export const providerSchemas = {
  input: createSchema.meta({
    examples: [
      {
        name: 'cards',
        base_url: 'https://pay.example',
        api_key: 'sk_live_51Mz0Q9cZ7',
        webhook_secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
      },
      { name: 'agents', kind: 'agent' },
    ],
  }),
  change: toChangeSchema(z.strictObject(changeable)).meta({ examples: [{ business_ids: ['acme'] }] }),
  view: viewSchema,
}

/** See `createSchema`. */
export type ProviderInput = z.output<typeof createSchema>
/** See `viewSchema`. */
export type ProviderView = z.infer<typeof viewSchema>
