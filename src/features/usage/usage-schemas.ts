import { z } from 'zod'
import { momentSchema } from '../../routes/parameters.ts'
import { businessIdSchema, idSchema } from '../../state/run-request.ts'

/** The usage and cost of model calls in the ledger. See docs/contract.md. */

/** What a report can be grouped by. */
export const usageDimensions = [
  'vendor',
  'key',
  'model',
  'role',
  'tool',
  'run',
  'session',
  'user',
  'business',
  'day',
] as const
/** One dimension of a report. */
export type UsageDimension = (typeof usageDimensions)[number]

const splitDimensions = (names: string): string[] =>
  names === '' ? [] : names.split(',').map((name) => name.trim())
const isDimension = (name: string): name is UsageDimension => usageDimensions.some((known) => known === name)

/** The dimensions in a checked `group_by`. */
export const readDimensions = (names: string): UsageDimension[] => splitDimensions(names).filter(isDimension)

const groupBySchema = z
  .preprocess(
    (value) => (Array.isArray(value) ? value.join(',') : value),
    z.string().check((context) => {
      const names = splitDimensions(context.value)
      const wrong = names.find((name, at) => !isDimension(name) || names.indexOf(name) !== at)
      if (wrong === undefined) return
      const what = isDimension(wrong) ? `"${wrong}" appears twice` : `"${wrong.slice(0, 100)}" is not known`
      const message = `must be names out of ${usageDimensions.join(', ')}, separated by commas; ${what}`
      context.issues.push({ code: 'custom', input: context.value, message })
    }),
  )
  .describe(`Names out of ${usageDimensions.join(', ')}, separated by commas; none: everything together`)
  .default('')

/** Query of the report, beside limit and cursor. Days are those of UTC; a day as `to` counts as a whole, a time does not. */
export const usageFilterSchema = z.strictObject({
  group_by: groupBySchema,
  from: momentSchema.describe('A day of UTC or a time, included').optional(),
  to: momentSchema.describe('A day of UTC, which counts as a whole, or a time, which does not').optional(),
  business_id: businessIdSchema.describe('Of this business only').optional(),
  user_id: idSchema.describe('Of this user only').optional(),
  vendor_id: idSchema.describe('Of this vendor only').optional(),
  key_id: idSchema.describe('Of this key only').optional(),
  model_id: idSchema.describe('Of this model only').optional(),
  run_id: idSchema.describe('Of this run only').optional(),
})

const count = z.int()

/** One group: what it is grouped by, and its sums. Currencies are never summed together. */
export const usageGroupSchema = z.strictObject({
  day: z.string().optional(),
  /** Null: probes by admins, which have no business. */
  business_id: z.string().nullish(),
  /** Null: without a user. User ids are unique within `business_id`. */
  user_id: z.string().nullish(),
  /** Null: of no run, or of a session that was deleted. */
  session_id: z.string().nullish(),
  /** Null: of no run, such as calls of the OpenAI-compatible endpoint. */
  run_id: z.string().nullish(),
  /** What the call was for: planner, output, vision, distill … */
  role: z.string().optional(),
  /** The tool that made the call; null: a node, or no run. */
  tool: z.string().nullish(),
  vendor_id: z.string().optional(),
  /** Names are null once the resource is deleted. */
  vendor: z.string().nullish(),
  /** Null: without a key. */
  key_id: z.string().nullish(),
  key: z.string().nullish(),
  model_id: z.string().optional(),
  model: z.string().optional(),
  requests: count,
  /** Requests without token counts from the vendor; their tokens are our own estimate. */
  estimated_requests: count,
  prompt_tokens: count,
  completion_tokens: count,
  total_tokens: count,
  /** Part of prompt_tokens. */
  cached_tokens: count,
  /** Part of completion_tokens. */
  reasoning_tokens: count,
  cost: z.number(),
  /** Null: the models had no prices. */
  currency: z.string().nullable(),
})

/** The checked query of a usage report. */
export type UsageFilter = z.infer<typeof usageFilterSchema>
/** One group of a usage report. */
export type UsageGroup = z.infer<typeof usageGroupSchema>
