import { z } from 'zod'
import { isJsonWithin, labelSchema, toChangeSchema, truncatedSchema } from '../state/resource-schema.ts'
import { businessIdSchema, idSchema } from '../state/run-request.ts'
import { httpHostsSchema, secretChangesSchema, secretsSchema } from './http-hosts.ts'

const quota = z.int().min(1)
/** What a business may use at once or a minute; null: the default of the settings, and for `running_runs` no limit. */
const quotasSchema = z.strictObject({
  storage_bytes: quota
    .max(Number.MAX_SAFE_INTEGER)
    .nullable()
    .describe('Uploaded files, files of requests, and results over 32 KB'),
  queued_runs: quota.max(2_147_483_647).nullable().describe('Runs that wait for a worker'),
  running_runs: quota.max(2_147_483_647).nullable().describe('Runs that workers execute at once'),
  requests_per_minute: quota.max(2_147_483_647).nullable().describe('Requests with tokens of the business'),
})

/** Bodies and views of the admin API for businesses, tokens and users: docs/contract.md, section 7. */
const businessInputSchema = z.strictObject({
  id: businessIdSchema.describe('Its id'),
  learning: z
    .boolean()
    .describe('Whether Mason learns from its runs: memories, profile fields, session summaries')
    .default(true),
  recall: z
    .boolean()
    .describe(
      'Where it learns: whether its ended turns are sent to the embedding model and recalled in later sessions of their user',
    )
    .default(true),
  quotas: quotasSchema.partial().describe('What it may use; null: the default of the settings').default({}),
  http_hosts: httpHostsSchema.describe('The hosts that HTTP requests of runs may call').default([]),
  secrets: secretsSchema
    .describe('Values for the headers of these hosts, by name; never returned')
    .default({}),
})
/** Body of PATCH; an absent field stays, also one of `quotas`. */
const businessChangeSchema = toChangeSchema(
  businessInputSchema
    .omit({ id: true })
    .extend({ secrets: secretChangesSchema.describe('Set one by one; null deletes one').default({}) }),
  ['quotas', 'secrets'],
)
/** A business as the admin API returns it. */
const businessViewSchema = z.strictObject({
  id: z.string(),
  learning: z.boolean(),
  recall: z.boolean(),
  quotas: quotasSchema,
  http_hosts: httpHostsSchema,
  /** Their names. */
  secrets: z.array(z.string()),
  created_at: z.string(),
  truncated: truncatedSchema,
})
/** The bodies and the view of businesses. */
export const businessSchemas = {
  input: businessInputSchema.meta({
    examples: [
      {
        id: 'acme',
        quotas: { queued_runs: 500, requests_per_minute: 600 },
        http_hosts: [
          { host: 'api.acme.example', headers: { Authorization: 'Bearer {secrets.ACME_API_KEY}' } },
        ],
        secrets: { ACME_API_KEY: 'the-key-of-this-api' },
      },
    ],
  }),
  change: businessChangeSchema.meta({ examples: [{ learning: false, quotas: { queued_runs: null } }] }),
  view: businessViewSchema,
}

/** What a token of a business may do; `admin` includes the others. */
export const tokenRoles = ['submit', 'read', 'consent', 'delete', 'agent', 'admin'] as const
/** See `tokenRoles`. */
export type TokenRole = (typeof tokenRoles)[number]
const tokenRoleSchema = z.enum(tokenRoles)

/** Body of POST for a token. */
const tokenInputSchema = z.strictObject({
  business_id: businessIdSchema.describe('The business it belongs to').default('default'),
  label: labelSchema.describe('A name for people'),
  roles: z.array(tokenRoleSchema).min(1).describe('What it may do').default(['submit', 'read']),
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
export const tokenSchemas = {
  input: tokenInputSchema.meta({ examples: [{ label: 'shop', roles: ['submit', 'read'] }] }),
  change: tokenChangeSchema.meta({ examples: [{ roles: ['read'] }] }),
  view: tokenViewSchema,
}
/** Returned once, when the token is created. */
export const newTokenSchema = tokenViewSchema.extend({ token: z.string() })

const maxProfileBytes = 64 * 1024

/** Body of POST for a user. */
const userInputSchema = z.strictObject({
  business_id: businessIdSchema.describe('The business of the user').default('default'),
  user_id: idSchema.describe('The id of the user, as runs name it'),
  profile: z
    .record(z.string().max(200), z.json())
    .refine(
      isJsonWithin(maxProfileBytes),
      `is larger than ${maxProfileBytes} bytes as JSON; every prompt of the user's runs holds it, so keep large data elsewhere`,
    )
    .describe('What prompts say of the user (`user_context`), without empty values; at most 64 KiB as JSON')
    .default({}),
})
/** Body of PATCH; the profile replaces the old one. */
const userChangeSchema = toChangeSchema(userInputSchema.pick({ profile: true }))
/** The bodies and the view of users. */
export const userSchemas = {
  input: userInputSchema.meta({ examples: [{ user_id: 'ann', profile: { language: 'English' } }] }),
  change: userChangeSchema.meta({ examples: [{ profile: { timezone: 'Europe/Berlin' } }] }),
  view: userInputSchema.extend({ id: z.string(), updated_at: z.string(), truncated: truncatedSchema }),
}

/** See `businessChangeSchema`. */
export type BusinessChange = z.infer<typeof businessChangeSchema>
/** See `businessViewSchema`. */
export type BusinessView = z.infer<typeof businessViewSchema>
/** See `newTokenSchema`. */
export type NewToken = z.infer<typeof newTokenSchema>
