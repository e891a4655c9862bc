import { z } from 'zod'
import { changeOf, labelSchema } from './registry/common.ts'
import { businessIdSchema, idSchema } from './run-request.ts'

/** What admins send and are shown: businesses, with their tokens and users. CONTRACT section 7. */

export const businessInputSchema = z.strictObject({
  id: businessIdSchema,
  /** Whether anything is learned from its runs: memories, fields of profiles, summaries of sessions. */
  learning: z.boolean().default(true),
})
export const businessChangeSchema = changeOf(businessInputSchema.pick({ learning: true }))
export const businessViewSchema = z.strictObject({
  id: z.string(),
  learning: z.boolean(),
  created_at: z.string(),
})

const tokenRoleSchema = z.enum(['submit', 'read', 'admin'])

export const tokenInputSchema = z.strictObject({
  business_id: businessIdSchema.default('default'),
  label: labelSchema,
  roles: z.array(tokenRoleSchema).min(1).default(['submit', 'read']),
})
export const tokenChangeSchema = changeOf(tokenInputSchema.pick({ label: true, roles: true }))

export const tokenViewSchema = z.strictObject({
  id: z.string(),
  business_id: z.string(),
  label: z.string(),
  roles: z.array(tokenRoleSchema),
  created_at: z.string(),
})
/** Shown once, when it is made. */
export const newTokenSchema = tokenViewSchema.extend({ token: z.string() })

export const userInputSchema = z.strictObject({
  business_id: businessIdSchema.default('default'),
  user_id: idSchema,
  /** Goes into `user_context`, without what is empty. */
  profile: z.record(z.string().max(200), z.json()),
})
export const userChangeSchema = z.strictObject({ profile: userInputSchema.shape.profile })
export const userViewSchema = userInputSchema.extend({ id: z.string(), updated_at: z.string() })

export type BusinessInput = z.infer<typeof businessInputSchema>
export type BusinessChange = z.infer<typeof businessChangeSchema>
export type BusinessView = z.infer<typeof businessViewSchema>
export type TokenInput = z.infer<typeof tokenInputSchema>
export type TokenChange = z.infer<typeof tokenChangeSchema>
export type TokenView = z.infer<typeof tokenViewSchema>
export type NewToken = z.infer<typeof newTokenSchema>
export type UserInput = z.infer<typeof userInputSchema>
export type UserView = z.infer<typeof userViewSchema>
