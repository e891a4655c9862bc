import { z } from 'zod'

const text = z.string().min(1).max(200)
const amount = z.string().regex(/^\d{1,9}(\.\d{1,4})?$/, 'must be a decimal such as 80.00')
/** Left out is null. */
const optional = <Schema extends z.ZodType>(schema: Schema) => schema.nullable().default(null)
/** More is no limit that a person reads. */
const maxEntries = 20

/** What a run proposes that its user lets it buy later: amounts are decimals in major units. `wallet`: over A2A alone. */
export const termsSchema = z.strictObject({
  merchants: z
    .array(
      z.strictObject({
        id: text.describe('As the merchant names itself in its checkouts'),
        name: text.describe('As the user knows it'),
        website: optional(text).describe('Its address, where it has one'),
      }),
    )
    .min(1)
    .max(maxEntries)
    .describe('From whom to buy'),
  items: z
    .array(
      z.strictObject({
        any_of: z
          .array(
            z.strictObject({
              id: text.describe('Of the merchant'),
              title: optional(text).describe('As the user reads it'),
            }),
          )
          .min(1)
          .max(5)
          .describe('Items that the user takes for this'),
        quantity: z.int().min(1).max(1000).describe('At most so many of them'),
      }),
    )
    .min(1)
    .max(maxEntries)
    .describe('What to buy'),
  currency: z.string().length(3).describe('ISO 4217, such as USD'),
  max_amount: amount.describe('At most so much for one payment, such as 80.00'),
  budget: optional(amount).describe(
    'At most so much in all; without it and a recurrence the mandate pays once',
  ),
  recurrence: optional(
    z.strictObject({
      frequency: z.enum(['ON_DEMAND', 'DAILY', 'WEEKLY', 'BIWEEKLY', 'MONTHLY', 'QUARTERLY', 'ANNUALLY']),
      max_occurrences: optional(z.int().min(1).max(1000)),
    }),
  ).describe('How often; needs a budget'),
  method: optional(text).describe('With what to pay, as the wallet names it; the card when left out'),
  until: z.iso.datetime({ offset: true }).describe('When it ends, such as 2026-12-31T23:59:59Z'),
  wallet: optional(
    z.strictObject({
      agent: z.string().min(1).max(64).describe('The name of the credentials provider'),
      user_email: z.email().max(200).describe('The account of the user there'),
    }),
  ).describe('For merchants that are agents: where the method is, and the address'),
})
/** See `termsSchema`. */
export type OpenMandateTerms = z.output<typeof termsSchema>
