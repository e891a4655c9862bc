import { z } from 'zod'

/** What operators see of side effects, of all businesses. */

/** Where a side effect is. `refused`: nothing happened; `unknown`: an operator has to find out. */
export const effectStatusSchema = z.enum(['intent', 'sent', 'succeeded', 'refused', 'failed', 'unknown'])
/** A side effect of a run, without what was sent. */
export const effectViewSchema = z.strictObject({
  id: z.string().describe('The key under which the provider was asked'),
  business_id: z.string(),
  run_id: z.string(),
  kind: z
    .enum(['pure', 'keyed', 'queryable', 'manual'])
    .describe('How the provider tells one request from another'),
  status: effectStatusSchema,
  sends: z.int(),
  error: z.string().nullable().describe('Why it was refused, or is unknown'),
  created_at: z.string(),
  first_sent_at: z.string().nullable(),
})
/** What an operator found out about an unknown side effect. */
export const effectResolutionSchema = z
  .strictObject({
    took_place: z.boolean().describe('`false`: it is sent again'),
    response: z.string().max(32_768).describe('What the provider answered, for the call').optional(),
  })
  .refine(({ took_place, response }) => took_place || response === undefined, {
    path: ['response'],
    message: 'is only for one that took place; leave it out',
  })
  .meta({ examples: [{ took_place: true, response: '{"refund":"re_1"}' }] })

/** See `effectStatusSchema`. */
export type EffectStatus = z.infer<typeof effectStatusSchema>
/** See `effectViewSchema`. */
export type EffectView = z.infer<typeof effectViewSchema>
