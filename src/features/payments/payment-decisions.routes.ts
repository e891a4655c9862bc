import { z } from 'zod'
import { actionRoute } from '../../routes/resource-routes.ts'
import { createPlainTextSchema } from '../../state/resource-schema.ts'
import { defineRoutes } from '../definitions.ts'
import { paymentsRef } from './payments.ref.ts'

const resource = {
  path: '/admin/v1/payments',
  one: 'a payment',
  many: 'payments',
  remedy: 'a payment that no executor has taken yet can be neither refunded nor settled',
} as const

const orderSchema = z.strictObject({
  order_id: z.string(),
  payment_id: z.string(),
  outcome: z
    .looseObject({ status: z.string(), message: z.string() })
    .nullable()
    .describe('Null: no executor has carried it out within 5 s. It will be; GET /v1/payments/{id} shows it'),
})

const refundSchema = z.strictObject({
  amount: z
    .int()
    .min(1)
    .max(Number.MAX_SAFE_INTEGER)
    .describe('In minor units; absent: all that is not refunded yet')
    .optional(),
})
const settleSchema = z.strictObject({
  status: z.enum(['succeeded', 'declined']).describe('What became of it at the provider'),
  note: createPlainTextSchema(1000).min(1).describe('Who looked where, for the trail'),
  provider_ref: createPlainTextSchema(200).min(1).describe("The provider's reference").optional(),
})

/** What admins decide of payments. The executor carries it out. */
export default defineRoutes({
  needs: { payments: paymentsRef },
  add(app, { payments }, server) {
    actionRoute(app, server, resource, {
      name: 'refund',
      summary: 'Refunds a payment, or a part of it',
      body: refundSchema.meta({ examples: [{ amount: 1999 }] }),
      bodyOptional: true,
      response: orderSchema,
      problems: ['invalid_request'],
      run: (_, id, { amount }) => payments.decide(id, { kind: 'refund', amount }),
    })
    actionRoute(app, server, resource, {
      name: 'settle',
      summary:
        'Says what became of a payment that is unknown, or of its capture, void or refund, after a look at the provider',
      body: settleSchema.meta({
        examples: [{ status: 'succeeded', note: 'Ann looked into the dashboard of the provider' }],
      }),
      response: orderSchema,
      problems: ['invalid_request'],
      run: (_, id, body) => payments.decide(id, { kind: 'settle', ...body }),
    })
  },
})
