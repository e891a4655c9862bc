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
  name: labelSchema,
  homepage: z
    .url({ protocol: /^https?$/, error: 'must be an http or https address' })
    .max(2000)
    .nullish(),
  status: statusSchema.default('active'),
})
/** The body of PATCH. */
const vendorChangeSchema = toChangeSchema(vendorInputSchema)
/** A vendor as admins see it. */
export const vendorViewSchema = toViewSchema({ ...vendorInputSchema.shape, status: statusSchema })
/** The bodies and the view of vendors. */
export const vendorSchemas = { input: vendorInputSchema, change: vendorChangeSchema, view: vendorViewSchema }

const count = z.int().min(1).max(2_000_000_000)
/** An amount in the currency of the prices; stored as whole millionths. */
const money = z.number().nonnegative().max(1_000_000_000)

/** Null or absent: no such limit. They apply to all processes together. */
const keyLimitsSchema = z.strictObject({
  /** Requests in any 60 seconds. */
  rpm: count.nullish(),
  /** Tokens in any 60 seconds. */
  tpm: count.nullish(),
  /** Tokens in a day of UTC. */
  daily_tokens: count.nullish(),
  /** Cost in a month of UTC. */
  monthly_cost: money.nullish(),
})

/** The body of a new key. */
export const keyInputSchema = z.strictObject({
  label: labelSchema,
  /** Write-only. Part of an HTTP header. */
  secret: z
    .string()
    .min(1)
    .max(10_000)
    .regex(/^[\x21-\x7e]+$/, 'has spaces or characters that are not allowed in an HTTP header'),
  limits: keyLimitsSchema.default({}),
  status: statusSchema.default('active'),
})
/** Limits are merged one by one: null removes one. `rotate` sets a new secret. */
const keyChangeSchema = toChangeSchema(keyInputSchema.omit({ secret: true }))
/** The new secret of a key. */
export const keyRotationSchema = keyInputSchema.pick({ secret: true })

/** Searches the key of a vendor that has this secret. */
export const keySearchSchema = keyInputSchema.pick({ secret: true })

const healthSchema = z.strictObject({
  /** `disabled`: the vendor refused the key; it is retried from time to time. */
  state: z.enum(['healthy', 'cooling', 'probing', 'disabled']),
  since: z.string().nullable(),
  /** When it is retried; null while healthy. */
  until: z.string().nullable(),
  last_error: z.strictObject({ code: z.string(), message: z.string(), at: z.string() }).nullable(),
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
  }),
})
/** The bodies and the view of keys. */
export const keySchemas = { input: keyInputSchema, change: keyChangeSchema, view: keyViewSchema }

/** Null: none of the vendor's keys has this secret. */
export const keyMatchSchema = z.strictObject({ key: keyViewSchema.nullable() })

const timeoutMs = z.int().min(1).max(3_600_000)
const timeoutsSchema = z.strictObject({
  first_byte_ms: timeoutMs.optional(),
  idle_ms: timeoutMs.optional(),
  total_ms: timeoutMs.optional(),
})

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
  name: labelSchema,
  /** The URL before the paths of the API, for example https://api.openai.com/v1. */
  base_url: z.string().min(1).max(2000),
  protocol: z.enum(['openai', 'http']),
  /** Categories of its models; empty: any. */
  categories: z.array(createPlainTextSchema(200).min(1)).max(50).default([]),
  /** Sent with every request; `{{key}}` becomes the secret. Views hide values that may contain it. */
  headers: z.record(headerName, headerValue).default({}),
  timeouts: timeoutsSchema.default({}),
  /** Whether private addresses are allowed. The default is true for a plain loopback or private address in `base_url`. */
  allow_private: z.boolean().optional(),
  status: statusSchema.default('active'),
})
/** Headers and timeouts are merged one by one: null removes one. */
const endpointChangeSchema = toChangeSchema(
  endpointInputSchema.extend({
    headers: z.record(headerName, headerValue.nullable()),
    timeouts: z.strictObject({
      first_byte_ms: timeoutMs.nullish(),
      idle_ms: timeoutMs.nullish(),
      total_ms: timeoutMs.nullish(),
    }),
  }),
)
/** An endpoint as admins see it. */
export const endpointViewSchema = toViewSchema({
  vendor_id: z.string(),
  ...endpointInputSchema.shape,
  categories: z.array(z.string()),
  headers: z.record(z.string(), z.string()),
  timeouts: timeoutsSchema,
  allow_private: z.boolean(),
  status: statusSchema,
  health: healthSchema,
})
/** The bodies and the view of endpoints. */
export const endpointSchemas = {
  input: endpointInputSchema,
  change: endpointChangeSchema,
  view: endpointViewSchema,
}

const pricesSchema = z.strictObject({
  /** For a million tokens. */
  input: money,
  output: money,
  cached_input: money.optional(),
  currency: z
    .string()
    .regex(/^[A-Z]{3}$/, 'must be three capital letters such as USD')
    .default('USD'),
})

/** The body of a new model. */
export const modelInputSchema = z.strictObject({
  /** The alias that callers use; unique across vendors. */
  name: aliasSchema,
  upstream_name: createPlainTextSchema(200).min(1),
  version: createPlainTextSchema(100).nullish(),
  category: createPlainTextSchema(200).min(1).default('text'),
  endpoint_id: createPlainTextSchema(200).min(1),
  /** How it calls tools: by the protocol, or in the XML of the dialogue. */
  dialect: z
    .enum(['tools'], {
      error: ({ input }) =>
        input === 'xml' ? 'is not built yet: xml; leave it out, or send tools' : undefined,
    })
    .default('tools'),
  context_window: count.nullish(),
  max_output: count.nullish(),
  prices: pricesSchema.nullish(),
  /** How to read its responses; required when the endpoint's protocol is `http`. */
  response_format_id: createPlainTextSchema(200).min(1).nullish(),
  capabilities: z.array(createPlainTextSchema(100).min(1)).max(50).default([]),
  status: statusSchema.default('active'),
})
/** The body of PATCH. */
const modelChangeSchema = toChangeSchema(modelInputSchema)
/** A model as admins see it. */
export const modelViewSchema = toViewSchema({
  vendor_id: z.string(),
  ...modelInputSchema.shape,
  category: z.string(),
  dialect: z.enum(['tools', 'xml']),
  capabilities: z.array(z.string()),
  status: statusSchema,
})
/** The bodies and the view of models. */
export const modelSchemas = { input: modelInputSchema, change: modelChangeSchema, view: modelViewSchema }

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
  name: aliasSchema,
  description: createPlainTextSchema(1000).default(''),
})
/** The body of PATCH. */
const categoryChangeSchema = toChangeSchema(categoryInputSchema)
/** A category as admins see it. */
export const categoryViewSchema = toViewSchema({
  name: z.string(),
  description: z.string(),
  built_in: z.boolean(),
})
/** The bodies and the view of categories. */
export const categorySchemas = {
  input: categoryInputSchema,
  change: categoryChangeSchema,
  view: categoryViewSchema,
}

/** The checked body of a new vendor. */
export type VendorInput = z.infer<typeof vendorInputSchema>
/** The checked changes of a vendor. */
export type VendorChange = z.infer<typeof vendorChangeSchema>
/** A vendor as admins see it. */
export type VendorView = z.infer<typeof vendorViewSchema>
/** The limits of a key. */
export type KeyLimits = z.infer<typeof keyLimitsSchema>
/** The checked body of a new key. */
export type KeyInput = z.infer<typeof keyInputSchema>
/** The checked changes of a key. */
export type KeyChange = z.infer<typeof keyChangeSchema>
/** A key as admins see it. */
export type KeyView = z.infer<typeof keyViewSchema>
/** The key that has a secret, or null. */
export type KeyMatch = z.infer<typeof keyMatchSchema>
/** The health of a key or endpoint. */
export type HealthView = z.infer<typeof healthSchema>
/** The checked body of a new endpoint. */
export type EndpointInput = z.infer<typeof endpointInputSchema>
/** The checked changes of an endpoint. */
export type EndpointChange = z.infer<typeof endpointChangeSchema>
/** An endpoint as admins see it. */
export type EndpointView = z.infer<typeof endpointViewSchema>
/** The prices of a model for a million tokens. */
export type Prices = z.infer<typeof pricesSchema>
/** The checked body of a new model. */
export type ModelInput = z.infer<typeof modelInputSchema>
/** The checked changes of a model. */
export type ModelChange = z.infer<typeof modelChangeSchema>
/** A model as admins see it. */
export type ModelView = z.infer<typeof modelViewSchema>
/** The checked body of a new category. */
export type CategoryInput = z.infer<typeof categoryInputSchema>
/** The checked changes of a category. */
export type CategoryChange = z.infer<typeof categoryChangeSchema>
/** A category as admins see it. */
export type CategoryView = z.infer<typeof categoryViewSchema>
