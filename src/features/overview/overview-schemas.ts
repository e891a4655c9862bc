import { z } from 'zod'

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

/** See `workerViewSchema`. */
export type WorkerView = z.infer<typeof workerViewSchema>
/** See `overviewSchema`. */
export type Overview = z.infer<typeof overviewSchema>
