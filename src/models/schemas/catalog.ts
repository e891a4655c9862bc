import { z } from 'zod'
import {
  aliasSchema,
  createPlainTextSchema,
  labelSchema,
  toChangeSchema,
  toViewSchema,
} from '../../state/resource-schema.ts'

/** What admins manage of model vendors: their names, keys, endpoints and models. See docs/contract.md. */

const statusSchema = z.enum(['active', 'disabled'])

/** The body of a new vendor. */
export const vendorInputSchema = z.strictObject({
  name: labelSchema.describe('Its name, unique'),
  homepage: z
    .url({ protocol: /^https?$/, error: 'must be an http or https address' })
    .max(2000)
    .describe('Its page, for people')
    .nullish(),
  status: statusSchema.describe('`disabled`: nothing of it is called').default('active'),
})
/** The bodies and the view of vendors. */
export const vendorSchemas = {
  input: vendorInputSchema.meta({ examples: [{ name: 'OpenAI', homepage: 'https://openai.com' }] }),
  change: toChangeSchema(vendorInputSchema).meta({ examples: [{ status: 'disabled' }] }),
  view: toViewSchema({ ...vendorInputSchema.shape, status: statusSchema }),
}

const count = z.int().min(1).max(2_000_000_000)
/** An amount in the currency of the prices; stored as whole millionths. */
const money = z.number().nonnegative().max(1_000_000_000)

/** Null or absent: no such limit. They apply to all processes together. */
const keyLimitsSchema = z.strictObject({
  rpm: count.describe('Requests in any 60 seconds').nullish(),
  tpm: count.describe('Tokens in any 60 seconds').nullish(),
  daily_tokens: count.describe('Tokens in a day of UTC').nullish(),
  monthly_cost: money.describe('Cost in a month of UTC').nullish(),
})

/** The body of a new key. */
export const keyInputSchema = z.strictObject({
  label: labelSchema.describe('A name for people'),
  secret: z
    .string()
    .min(1)
    .max(10_000)
    .regex(/^[\x21-\x7e]+$/, 'has spaces or characters that are not allowed in an HTTP header')
    .describe('The key itself, never returned'),
  limits: keyLimitsSchema.describe('Limits over all processes; null: none').default({}),
  status: statusSchema.describe('`disabled`: it is not used').default('active'),
})
/** The new secret of a key. */
export const keyRotationSchema = keyInputSchema
  .pick({ secret: true })
  .meta({ examples: [{ secret: 'sk-another-key-of-the-vendor' }] })

/** Searches the key of a vendor that has this secret. */
export const keySearchSchema = keyInputSchema
  .pick({ secret: true })
  .meta({ examples: [{ secret: 'sk-the-key-of-the-vendor' }] })

const healthSchema = z.strictObject({
  /** `disabled`: the vendor refused the key; it is retried from time to time. */
  state: z.enum(['healthy', 'cooling', 'probing', 'disabled']),
  since: z.string().nullable(),
  /** When it is retried; null while healthy. */
  until: z.string().nullable(),
  last_error: z.strictObject({ code: z.string(), message: z.string(), at: z.string() }).nullable(),
  /** `some`: only those whose own requests failed there; null while healthy. */
  closed_for: z.enum(['all', 'some']).nullable(),
})

/** A key as admins see it, without its secret. */
export const keyViewSchema = toViewSchema({
  vendor_id: z.string(),
  label: z.string(),
  /** `…` and the last four characters. */
  secret: z.string(),
  limits: keyLimitsSchema,
  status: statusSchema,
  health: healthSchema.extend({
    /** What its limits never allow, however little was used; null: nothing. */
    limit_error: z.string().nullable(),
    /** The models that it cannot be used with for now. */
    models: z.array(healthSchema.omit({ since: true }).extend({ model: z.string() })),
  }),
})
/** The bodies and the view of keys. */
export const keySchemas = {
  input: keyInputSchema.meta({
    examples: [{ label: 'production', secret: 'sk-the-key-of-the-vendor', limits: { rpm: 600 } }],
  }),
  /** Limits are merged one by one: null removes one, or all. `rotate` sets a new secret. */
  change: toChangeSchema(keyInputSchema.omit({ secret: true }), ['limits']).meta({
    examples: [{ limits: { rpm: null, monthly_cost: 500 } }],
  }),
  view: keyViewSchema,
}

/** Null: none of the vendor's keys has this secret. */
export const keyMatchSchema = z.strictObject({ key: keyViewSchema.nullable() })

const timeoutMs = z.int().min(1).max(3_600_000)
const timeouts = {
  first_byte_ms: timeoutMs.describe('Until the first content of a response'),
  idle_ms: timeoutMs.describe(
    'Without content in a response that has begun; what keeps a connection alive is none',
  ),
  total_ms: timeoutMs.describe('Until the end of a response'),
}
const timeoutsSchema = z.strictObject(timeouts).partial()

/** Headers of the connection, which data must not set. */
const ownHeaders =
  /^(host|connection|content-length|transfer-encoding|keep-alive|upgrade|te|trailer|expect|proxy-.*)$/i
const headerName = z
  .string()
  .max(200)
  .regex(/^[\w!#$%&'*+.^`|~-]+$/, 'is not the name of an HTTP header')
  .refine((name) => !ownHeaders.test(name), 'is a header that Mason sets itself')
const headerValue = z
  .string()
  .max(4000)
  .regex(/^[\t\x20-\x7e]*$/, 'has characters that are not allowed in an HTTP header')

/** The body of a new endpoint. */
export const endpointInputSchema = z.strictObject({
  name: labelSchema.describe('A name for people, unique for its vendor'),
  base_url: z
    .string()
    .min(1)
    .max(2000)
    .describe('The URL before the paths of the API, such as https://api.openai.com/v1'),
  protocol: z.enum(['openai', 'http']).describe("`openai`: OpenAI's API; `http`: as a response format says"),
  categories: z
    .array(createPlainTextSchema(200).min(1))
    .max(50)
    .describe('Categories of its models; empty: any')
    .default([]),
  headers: z
    .record(headerName, headerValue)
    .describe('Sent with every request; `{{key}}` becomes the secret. Views hide values that may contain it')
    .default({}),
  timeouts: timeoutsSchema.describe('In milliseconds').default({}),
  allow_private: z
    .boolean()
    .describe('Whether private addresses are allowed; absent: where `base_url` plainly has one')
    .optional(),
  status: statusSchema.describe('`disabled`: its models are not called').default('active'),
})
/** Headers and timeouts are merged one by one: null removes one, or all. */
const endpointChangeSchema = toChangeSchema(
  endpointInputSchema.extend({
    headers: z
      .record(headerName, headerValue.nullable())
      .describe('Set one by one; null removes one')
      .default({}),
    timeouts: z
      .strictObject({
        first_byte_ms: timeouts.first_byte_ms.nullish(),
        idle_ms: timeouts.idle_ms.nullish(),
        total_ms: timeouts.total_ms.nullish(),
      })
      .describe('In milliseconds; null removes one')
      .default({}),
  }),
  ['headers', 'timeouts'],
)
/** The bodies and the view of endpoints. */
export const endpointSchemas = {
  input: endpointInputSchema.meta({
    examples: [
      {
        name: 'api',
        base_url: 'https://api.openai.com/v1',
        protocol: 'openai',
        timeouts: { first_byte_ms: 30_000 },
      },
    ],
  }),
  change: endpointChangeSchema.meta({ examples: [{ timeouts: { first_byte_ms: null, total_ms: 120_000 } }] }),
  view: toViewSchema({
    vendor_id: z.string(),
    ...endpointInputSchema.shape,
    categories: z.array(z.string()),
    headers: z.record(z.string(), z.string()),
    timeouts: timeoutsSchema,
    allow_private: z.boolean(),
    status: statusSchema,
    health: healthSchema,
  }),
}

const pricesSchema = z.strictObject({
  input: money.describe('For a million tokens of prompts'),
  output: money.describe('For a million tokens of replies'),
  cached_input: money
    .describe('For a million tokens of prompts from the cache; absent: as `input`')
    .optional(),
  currency: z
    .string()
    .regex(/^[A-Z]{3}$/, 'must be three capital letters such as USD')
    .describe('The currency, three capital letters')
    .default('USD'),
})

/** The body of a new model. */
export const modelInputSchema = z.strictObject({
  name: aliasSchema.describe('The alias that callers use, unique across vendors'),
  upstream_name: createPlainTextSchema(200).min(1).describe("The vendor's name of it"),
  version: createPlainTextSchema(100).describe('A version, for people').nullish(),
  category: createPlainTextSchema(200).min(1).describe('The name of a category').default('text'),
  endpoint_id: createPlainTextSchema(200).min(1).describe('The endpoint of the vendor that serves it'),
  dialect: z
    .enum(['tools', 'xml'])
    .describe(
      'How it calls tools: `tools`, by the protocol; `xml`, written out in the language of the dialogue',
    )
    .default('tools'),
  context_window: count.describe('Tokens of prompt and reply together').nullish(),
  max_output: count.describe('Tokens of a reply, at most').nullish(),
  prices: pricesSchema.describe('What it costs; null: nothing is counted').nullish(),
  response_format_id: createPlainTextSchema(200)
    .min(1)
    .describe('How to read its responses; required where the endpoint has protocol `http`')
    .nullish(),
  capabilities: z
    .array(createPlainTextSchema(100).min(1))
    .max(50)
    .describe('What it can do, such as `tools` or `vision`')
    .default([]),
  refuses_stop: z
    .boolean()
    .describe('Whether its vendor refuses the field `stop`; noted at the first refusal, false tries it again')
    .default(false),
  continuation: z
    .enum(['none', 'prefill', 'flag'])
    .describe(
      'How it goes on with a reply that was cut at its output limit: `none`, asked to in words; `prefill`, after the reply ' +
        'as its last message; `flag`, the same with `prefix: true` on that message',
    )
    .default('none'),
  status: statusSchema.describe('`disabled`: it is not called').default('active'),
})
/** The bodies and the view of models. */
export const modelSchemas = {
  input: modelInputSchema.meta({
    examples: [
      {
        name: 'gpt-mini',
        upstream_name: 'gpt-5-mini',
        endpoint_id: 'endpoint_1',
        context_window: 400_000,
        prices: { input: 0.25, output: 2, currency: 'USD' },
      },
    ],
  }),
  change: toChangeSchema(modelInputSchema).meta({ examples: [{ max_output: 16_000 }] }),
  view: toViewSchema({
    vendor_id: z.string(),
    ...modelInputSchema.shape,
    category: z.string(),
    dialect: z.enum(['tools', 'xml']),
    refuses_stop: z.boolean(),
    continuation: z.enum(['none', 'prefill', 'flag']),
    capabilities: z.array(z.string()),
    status: statusSchema,
    /** Of the model on its endpoint. */
    health: healthSchema,
  }),
}

/** The categories that every registry has. */
export const builtInCategories = [
  'text',
  'reasoning',
  'embedding',
  'multimodal',
  'text-to-image',
  'image-edit',
  'text-to-video',
  'text-to-speech',
  'speech-to-text',
  'rerank',
] as const

/** The body of a new category. */
const categoryInputSchema = z.strictObject({
  name: aliasSchema.describe('What models and routes name it by'),
  description: createPlainTextSchema(1000).describe('What its models do').default(''),
})
/** The bodies and the view of categories. */
export const categorySchemas = {
  input: categoryInputSchema.meta({
    examples: [{ name: 'translation', description: 'Translates texts' }],
  }),
  change: toChangeSchema(categoryInputSchema).meta({
    examples: [{ description: 'Translates texts and pages' }],
  }),
  view: toViewSchema({
    name: z.string(),
    description: z.string(),
    built_in: z.boolean(),
  }),
}

/** A vendor as admins see it. */
export type VendorView = z.infer<typeof vendorSchemas.view>
/** The limits of a key. */
export type KeyLimits = z.infer<typeof keyLimitsSchema>
/** The checked body of a new key. */
export type KeyInput = z.infer<typeof keyInputSchema>
/** The checked changes of a key. */
export type KeyChange = z.infer<typeof keySchemas.change>
/** A key as admins see it. */
export type KeyView = z.infer<typeof keyViewSchema>
/** The key that has a secret, or null. */
export type KeyMatch = z.infer<typeof keyMatchSchema>
/** The health of a key or endpoint. */
export type HealthView = z.infer<typeof healthSchema>
/** The checked body of a new endpoint. */
export type EndpointInput = z.infer<typeof endpointInputSchema>
/** An endpoint as admins see it. */
export type EndpointView = z.infer<typeof endpointSchemas.view>
/** The prices of a model for a million tokens. */
export type Prices = z.infer<typeof pricesSchema>
/** The checked body of a new model. */
export type ModelInput = z.infer<typeof modelInputSchema>
/** The checked changes of a model. */
export type ModelChange = z.infer<typeof modelSchemas.change>
/** A model as admins see it. */
export type ModelView = z.infer<typeof modelSchemas.view>
/** A category as admins see it. */
export type CategoryView = z.infer<typeof categorySchemas.view>
