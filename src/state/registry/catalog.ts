import { z } from 'zod'
import { aliasSchema, changeOf, labelSchema, plainText, viewOf } from './common.ts'

/** What admins manage of model vendors: who they are, their keys, their doors and their models. CONTRACT section 7. */

const statusSchema = z.enum(['active', 'disabled'])

export const vendorInputSchema = z.strictObject({
  name: labelSchema,
  homepage: z
    .url({ protocol: /^https?$/, error: 'must be an http or https address' })
    .max(2000)
    .nullish(),
  status: statusSchema.default('active'),
})
export const vendorChangeSchema = changeOf(vendorInputSchema)
export const vendorViewSchema = viewOf({ ...vendorInputSchema.shape, status: statusSchema })

const count = z.int().min(1).max(2_000_000_000)
/** Money as people write it, in the currency of the prices; kept as whole millionths. */
const money = z.number().nonnegative().max(1_000_000_000)

/** Null or absent: no such limit. All processes together keep to them. */
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

export const keyInputSchema = z.strictObject({
  label: labelSchema,
  /** Write-only. Goes into an HTTP header. */
  secret: z
    .string()
    .min(1)
    .max(10_000)
    .regex(/^[\x21-\x7e]+$/, 'has spaces or characters that no HTTP header can carry'),
  limits: keyLimitsSchema.default({}),
  status: statusSchema.default('active'),
})
/** Limits are merged one by one: null takes one away. A new secret is a matter of `rotate`. */
export const keyChangeSchema = changeOf(keyInputSchema.omit({ secret: true }))
export const keyRotationSchema = keyInputSchema.pick({ secret: true })

/** Which of a vendor's keys a secret is. */
export const keyQuestionSchema = keyInputSchema.pick({ secret: true })

const healthSchema = z.strictObject({
  /** `disabled`: the vendor refused the key; it is tried again now and then. */
  state: z.enum(['healthy', 'cooling', 'probing', 'disabled']),
  since: z.string().nullable(),
  /** When it is tried again; null while healthy. */
  until: z.string().nullable(),
  last_error: z.strictObject({ code: z.string(), message: z.string(), at: z.string() }).nullable(),
})

export const keyViewSchema = viewOf({
  vendor_id: z.string(),
  label: z.string(),
  /** `…` and the last four characters. */
  secret: z.string(),
  limits: keyLimitsSchema,
  status: statusSchema,
  health: healthSchema,
})

/** Null: none of the vendor's keys has this secret. */
export const keyFoundSchema = z.strictObject({ key: keyViewSchema.nullable() })

const timeoutMs = z.int().min(1).max(3_600_000)
const timeoutsSchema = z.strictObject({
  first_byte_ms: timeoutMs.optional(),
  idle_ms: timeoutMs.optional(),
  total_ms: timeoutMs.optional(),
})

/** What belongs to the connection is not for data to say. */
const ownHeaders =
  /^(host|connection|content-length|transfer-encoding|keep-alive|upgrade|te|trailer|expect|proxy-.*)$/i
const headerName = z
  .string()
  .max(200)
  .regex(/^[\w!#$%&'*+.^`|~-]+$/, 'is no name of an HTTP header')
  .refine((name) => !ownHeaders.test(name), 'is a header that Mason sets by itself')
const headerValue = z
  .string()
  .max(4000)
  .regex(/^[\t\x20-\x7e]*$/, 'has characters that no HTTP header can carry')

export const endpointInputSchema = z.strictObject({
  name: labelSchema,
  /** Up to where the paths of the API begin, for example https://api.openai.com/v1. */
  base_url: z.string().min(1).max(2000),
  protocol: z.enum(['openai', 'http']),
  /** Of models; empty: any. */
  categories: z.array(plainText(200).min(1)).max(50).default([]),
  /** Sent with every request; `{{key}}` stands for the secret. Shown without values that hold it. */
  headers: z.record(headerName, headerValue).default({}),
  timeouts: timeoutsSchema.default({}),
  /** Whether addresses that are not public may be reached. A plain loopback or private address in `base_url` says so by itself. */
  allow_private: z.boolean().optional(),
  status: statusSchema.default('active'),
})
/** Headers and timeouts are merged one by one: null takes one away. */
export const endpointChangeSchema = changeOf(
  endpointInputSchema.extend({
    headers: z.record(headerName, headerValue.nullable()),
    timeouts: z.strictObject({
      first_byte_ms: timeoutMs.nullish(),
      idle_ms: timeoutMs.nullish(),
      total_ms: timeoutMs.nullish(),
    }),
  }),
)
export const endpointViewSchema = viewOf({
  vendor_id: z.string(),
  ...endpointInputSchema.shape,
  categories: z.array(z.string()),
  headers: z.record(z.string(), z.string()),
  timeouts: timeoutsSchema,
  allow_private: z.boolean(),
  status: statusSchema,
  health: healthSchema,
})

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

export const modelInputSchema = z.strictObject({
  /** The alias callers use; unique over all vendors. */
  name: aliasSchema,
  upstream_name: plainText(200).min(1),
  version: plainText(100).nullish(),
  category: plainText(200).min(1).default('text'),
  endpoint_id: plainText(200).min(1),
  /** How it calls tools: by the protocol, or in the XML of the dialogue. */
  dialect: z.enum(['tools', 'xml']).default('tools'),
  context_window: count.nullish(),
  max_output: count.nullish(),
  prices: pricesSchema.nullish(),
  /** How to read its answers; required where the endpoint speaks `http`. */
  response_format_id: plainText(200).min(1).nullish(),
  capabilities: z.array(plainText(100).min(1)).max(50).default([]),
  status: statusSchema.default('active'),
})
export const modelChangeSchema = changeOf(modelInputSchema)
export const modelViewSchema = viewOf({
  vendor_id: z.string(),
  ...modelInputSchema.shape,
  category: z.string(),
  dialect: z.enum(['tools', 'xml']),
  capabilities: z.array(z.string()),
  status: statusSchema,
})

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

export const categoryInputSchema = z.strictObject({
  name: aliasSchema,
  description: plainText(1000).default(''),
})
export const categoryChangeSchema = changeOf(categoryInputSchema)
export const categoryViewSchema = viewOf({ name: z.string(), description: z.string(), built_in: z.boolean() })

export type VendorInput = z.infer<typeof vendorInputSchema>
export type VendorChange = z.infer<typeof vendorChangeSchema>
export type VendorView = z.infer<typeof vendorViewSchema>
export type KeyLimits = z.infer<typeof keyLimitsSchema>
export type KeyInput = z.infer<typeof keyInputSchema>
export type KeyChange = z.infer<typeof keyChangeSchema>
export type KeyView = z.infer<typeof keyViewSchema>
export type KeyFound = z.infer<typeof keyFoundSchema>
export type HealthView = z.infer<typeof healthSchema>
export type EndpointInput = z.infer<typeof endpointInputSchema>
export type EndpointChange = z.infer<typeof endpointChangeSchema>
export type EndpointView = z.infer<typeof endpointViewSchema>
export type Prices = z.infer<typeof pricesSchema>
export type ModelInput = z.infer<typeof modelInputSchema>
export type ModelChange = z.infer<typeof modelChangeSchema>
export type ModelView = z.infer<typeof modelViewSchema>
export type CategoryInput = z.infer<typeof categoryInputSchema>
export type CategoryChange = z.infer<typeof categoryChangeSchema>
export type CategoryView = z.infer<typeof categoryViewSchema>
