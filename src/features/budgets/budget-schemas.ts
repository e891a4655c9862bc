import { z } from 'zod'
import { toChangeSchema, toViewSchema } from '../../state/resource-schema.ts'
import { businessIdSchema, idSchema } from '../../state/run-request.ts'

/** Bodies and views of the admin API for budgets: docs/contract.md, section 7. */

const cost = z.number().nonnegative().max(1_000_000_000)

const limitsSchema = z.strictObject({
  daily_cost: cost.describe('The most that a day of UTC may cost; null: no limit').nullable().default(null),
  monthly_cost: cost
    .describe('The most that a month of UTC may cost; null: no limit')
    .nullable()
    .default(null),
  requests_per_minute: z
    .int()
    .min(1)
    .max(2_147_483_647)
    .describe('Runs, and calls of the OpenAI-compatible endpoint, in a minute; null: no limit')
    .nullable()
    .default(null),
})

const budgetInputSchema = z
  .strictObject({
    business_id: businessIdSchema.describe('The business whose budget it is').default('default'),
    user_id: idSchema.describe('Limits this user of the business alone').nullish(),
    token_id: idSchema.describe('Limits what this token of the business starts').nullish(),
    currency: z
      .string()
      .regex(/^[A-Z]{3}$/, 'must be three capital letters such as USD')
      .describe('The currency of its costs; models with prices in another one do not count')
      .default('USD'),
    ...limitsSchema.shape,
  })
  .refine(({ user_id, token_id }) => user_id == null || token_id == null, {
    path: ['token_id'],
    error: 'give user_id or token_id, not both; add a budget for each',
  })

/** A budget as the admin API returns it, with what is spent. Times are ISO 8601 in UTC. */
const budgetViewSchema = toViewSchema({
  business_id: z.string(),
  /** Null, and without a token: the whole business. */
  user_id: z.string().nullable(),
  token_id: z.string().nullable(),
  currency: z.string(),
  daily_cost: z.number().nullable(),
  monthly_cost: z.number().nullable(),
  requests_per_minute: z.int().nullable(),
  spent: z.strictObject({ today: z.number(), this_month: z.number() }),
  /** When a new day and a new month begin. */
  resets_at: z.strictObject({ daily: z.string(), monthly: z.string() }),
})

/** The bodies and the view of budgets. */
export const budgetSchemas = {
  input: budgetInputSchema.meta({
    examples: [{ business_id: 'acme', daily_cost: 20, monthly_cost: 300 }],
  }),
  /** An absent field stays, null takes a limit away. */
  change: toChangeSchema(limitsSchema).meta({ examples: [{ daily_cost: 50 }] }),
  view: budgetViewSchema,
}

/** See `budgetViewSchema`. */
export type BudgetView = z.infer<typeof budgetViewSchema>
