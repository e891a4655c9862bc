import { z } from 'zod'
import { labelSchema, toChangeSchema, truncatedSchema } from '../state/resource-schema.ts'
import { businessIdSchema, idSchema } from '../state/run-request.ts'
import { httpHostsSchema, secretChangesSchema, secretsSchema } from './http-hosts.ts'

const quota = z.int().min(1)
/** What a business may use at once or a minute; null: the default of the settings, and for `running_runs` no limit. */
const quotasSchema = z.strictObject({
  /** Uploaded files, files of requests, and results over 32 KB. */
  storage_bytes: quota.max(Number.MAX_SAFE_INTEGER).nullable(),
  /** Runs that wait for a worker. */
  queued_runs: quota.max(2_147_483_647).nullable(),
  /** Runs that workers execute at once. */
  running_runs: quota.max(2_147_483_647).nullable(),
  /** Requests with tokens of the business. */
  requests_per_minute: quota.max(2_147_483_647).nullable(),
})

/** Bodies and views of the admin API for businesses, tokens and users: docs/contract.md, section 7. */
const businessInputSchema = z.strictObject({
  id: businessIdSchema,
  /** Whether Mason learns from its runs: memories, profile fields, session summaries. */
  learning: z.boolean().default(true),
  quotas: quotasSchema.partial().default({}),
  /** What `http_request` may call. */
  http_hosts: httpHostsSchema.default([]),
  /** For the headers of requests to these hosts; never returned. */
  secrets: secretsSchema.default({}),
})
/** Body of PATCH; an absent field stays, also one of `quotas`. */
const businessChangeSchema = toChangeSchema(
  businessInputSchema.omit({ id: true }).extend({ secrets: secretChangesSchema }),
)
/** A business as the admin API returns it. */
const businessViewSchema = z.strictObject({
  id: z.string(),
  learning: z.boolean(),
  quotas: quotasSchema,
  http_hosts: httpHostsSchema,
  /** Their names. */
  secrets: z.array(z.string()),
  created_at: z.string(),
  truncated: truncatedSchema,
})
/** The bodies and the view of businesses. */
export const businessSchemas = {
  input: businessInputSchema,
  change: businessChangeSchema,
  view: businessViewSchema,
}

const tokenRoleSchema = z.enum(['submit', 'read', 'admin'])

/** Body of POST for a token. */
const tokenInputSchema = z.strictObject({
  business_id: businessIdSchema.default('default'),
  label: labelSchema,
  roles: z.array(tokenRoleSchema).min(1).default(['submit', 'read']),
})
/** Body of PATCH; an absent field stays. */
const tokenChangeSchema = toChangeSchema(tokenInputSchema.pick({ label: true, roles: true }))

/** A token as the admin API returns it, without its secret. */
const tokenViewSchema = z.strictObject({
  id: z.string(),
  business_id: z.string(),
  label: z.string(),
  roles: z.array(tokenRoleSchema),
  created_at: z.string(),
  truncated: truncatedSchema,
})
/** The bodies and the view of tokens. */
export const tokenSchemas = { input: tokenInputSchema, change: tokenChangeSchema, view: tokenViewSchema }
/** Returned once, when the token is created. */
export const newTokenSchema = tokenViewSchema.extend({ token: z.string() })

/** Body of POST for a user. */
const userInputSchema = z.strictObject({
  business_id: businessIdSchema.default('default'),
  user_id: idSchema,
  /** Goes into `user_context`, without empty values. */
  profile: z.record(z.string().max(200), z.json()),
})
/** Body of PATCH; the profile replaces the old one. */
const userChangeSchema = z.strictObject({ profile: userInputSchema.shape.profile })
/** A user as the admin API returns it. */
const userViewSchema = userInputSchema.extend({
  ...{ id: z.string(), updated_at: z.string() },
  truncated: truncatedSchema,
})
/** The bodies and the view of users. */
export const userSchemas = { input: userInputSchema, change: userChangeSchema, view: userViewSchema }

/** See `quotasSchema`. */
export type QuotaChanges = Partial<z.infer<typeof quotasSchema>>
/** See `businessInputSchema`. */
export type BusinessInput = z.infer<typeof businessInputSchema>
/** See `businessChangeSchema`. */
export type BusinessChange = z.infer<typeof businessChangeSchema>
/** See `businessViewSchema`. */
export type BusinessView = z.infer<typeof businessViewSchema>
/** See `tokenInputSchema`. */
export type TokenInput = z.infer<typeof tokenInputSchema>
/** See `tokenChangeSchema`. */
export type TokenChange = z.infer<typeof tokenChangeSchema>
/** See `tokenViewSchema`. */
export type TokenView = z.infer<typeof tokenViewSchema>
/** See `newTokenSchema`. */
export type NewToken = z.infer<typeof newTokenSchema>
/** See `userInputSchema`. */
export type UserInput = z.infer<typeof userInputSchema>
/** See `userViewSchema`. */
export type UserView = z.infer<typeof userViewSchema>
