import { z } from 'zod'

/** What operators see of all businesses: workers, side effects, and what changed lately. */

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

/** A worker process that is up. */
export const workerViewSchema = z.strictObject({
  id: z.string(),
  started_at: z.string(),
  seen_at: z.string().describe('Its last heartbeat'),
  running: z.int().describe('Runs that it works on'),
})

const endedRunsSchema = z.strictObject({
  submitted: z.int(),
  completed: z.int(),
  failed: z.int(),
  cancelled: z.int(),
})
/** What changed in a span, beside the span of the same length before it, and what waits now. */
export const overviewSchema = z.strictObject({
  from: z.string(),
  to: z.string(),
  runs: endedRunsSchema.describe('Runs that were submitted in the span, by how they stand now'),
  before: endedRunsSchema.describe('The same of the span before'),
  costs: z.array(z.strictObject({ currency: z.string(), cost: z.number(), before: z.number() })),
  now: z.strictObject({
    workers: z.int(),
    queued: z.int(),
    running: z.int(),
    oldest_ready_s: z.number().describe('How long the oldest run that could be worked on has waited'),
    input_required: z.int(),
    unlearned: z.int(),
    unknown_effects: z.int(),
    rejected_jobs: z.int(),
    dead_webhooks: z.int(),
  }),
})

/** See `effectStatusSchema`. */
export type EffectStatus = z.infer<typeof effectStatusSchema>
/** See `effectViewSchema`. */
export type EffectView = z.infer<typeof effectViewSchema>
/** See `workerViewSchema`. */
export type WorkerView = z.infer<typeof workerViewSchema>
/** See `overviewSchema`. */
export type Overview = z.infer<typeof overviewSchema>
