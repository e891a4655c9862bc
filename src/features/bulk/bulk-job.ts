import { z } from 'zod'

/** What is done to many runs. */
export const bulkActionSchema = z.enum(['cancel', 'retry'])

/** An action on many runs: a fixed list of them, and how far it has come. */
export const bulkJobSchema = z.strictObject({
  id: z.string(),
  action: bulkActionSchema,
  reason: z.string().nullable(),
  status: z
    .enum(['unconfirmed', 'queued', 'running', 'completed', 'cancelled'])
    .describe('`unconfirmed`: nothing is done until it is confirmed, within an hour'),
  count: z.int().describe('How many runs the list has'),
  done: z.int(),
  refused: z.int().describe('Runs for which the action was not possible'),
  refusals: z
    .array(z.strictObject({ run_id: z.string(), code: z.string() }))
    .describe('The first 100 of them, and why'),
  created_at: z.string(),
  confirmed_at: z.string().nullable(),
  ended_at: z.string().nullable(),
})

/** See `bulkActionSchema`. */
export type BulkAction = z.infer<typeof bulkActionSchema>
/** See `bulkJobSchema`. */
export type BulkJob = z.infer<typeof bulkJobSchema>
