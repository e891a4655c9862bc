import { z } from 'zod'
import { businessIdSchema, idSchema } from '../run-request.ts'
import { aliasSchema, changeOf, plainText, viewOf } from './common.ts'

/** Which models serve a role or a category, and who may use which key. CONTRACT section 7. */

const weightedModel = z.strictObject({
  /** The alias of a model. */
  model: aliasSchema,
  /** For `weighted`: its share. */
  weight: z.number().positive().max(1_000_000).optional(),
})

const strategySchema = z.enum(['priority', 'weighted', 'least-busy', 'cheapest'])

const routeFields = z.strictObject({
  /** planner, understand, reflection, output, embedding, vision, compaction, or any other name. */
  role: aliasSchema.nullish(),
  category: aliasSchema.nullish(),
  models: z.array(weightedModel).min(1).max(100),
  strategy: strategySchema.default('priority'),
})
export const routeInputSchema = routeFields.refine(
  ({ role, category }) => (role == null) !== (category == null),
  { path: ['role'], error: 'give either role or category' },
)
export const routeChangeSchema = changeOf(routeFields.pick({ models: true, strategy: true }))
export const routeViewSchema = viewOf({
  role: z.string().nullable(),
  category: z.string().nullable(),
  models: z.array(weightedModel),
  strategy: strategySchema,
})

const grantFields = z.strictObject({
  key_id: plainText(200).min(1),
  business_id: businessIdSchema.nullish(),
  user_id: idSchema.nullish(),
})
/** Both given: that user of that business; a user alone is one of `default`. A key without grants is in the shared pool. */
export const grantInputSchema = grantFields.refine(
  ({ business_id, user_id }) => business_id != null || user_id != null,
  { path: ['business_id'], error: 'give business_id, user_id or both' },
)
export const grantChangeSchema = changeOf(grantFields.omit({ key_id: true }))
export const grantViewSchema = viewOf({
  key_id: z.string(),
  business_id: z.string().nullable(),
  user_id: z.string().nullable(),
})

export type Strategy = z.infer<typeof strategySchema>
export type RouteInput = z.infer<typeof routeInputSchema>
export type RouteChange = z.infer<typeof routeChangeSchema>
export type RouteView = z.infer<typeof routeViewSchema>
export type GrantInput = z.infer<typeof grantInputSchema>
export type GrantChange = z.infer<typeof grantChangeSchema>
export type GrantView = z.infer<typeof grantViewSchema>
