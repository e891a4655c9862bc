import { z } from 'zod'
import { businessQuery, createIdParams } from '../../routes/parameters.ts'
import { createDocs, respondsWith } from '../../routes/route.ts'
import { defineRoutes } from '../definitions.ts'
import { limitSchema } from './limit-schema.ts'
import { consentRef } from './payments.ref.ts'

const describe = createDocs('payments')

const openMandateSchema = z.strictObject({
  id: z.string(),
  user_id: z.string(),
  run_id: z.string().describe('The run that asked for it'),
  status: z
    .enum(['proposed', 'active', 'refused', 'expired', 'failed', 'revoked'])
    .describe('expired: not signed in time, or over'),
  provider_id: z.string(),
  limits: z.array(limitSchema).describe('In plain words, from the bytes that the user signed'),
  payments: z.int().describe('Payments under it that were made or may still be'),
  paid_minor: z.int().describe('Their sum, in minor units'),
  created_at: z.string(),
  expires_at: z.string(),
  revoked_at: z.string().nullable(),
})

/** What users have signed for the time when they are not present. */
export default defineRoutes({
  needs: { consent: consentRef },
  add(app, { consent: { mandates } }, server) {
    app.get('/v1/users/:id/open-mandates', {
      schema: { params: createIdParams('user'), querystring: businessQuery },
      config: describe('consent', 'listOpenMandates', 'Lists the open mandates of a user, the latest first', {
        ...respondsWith(
          200,
          'The latest 200, also those that are over',
          z.strictObject({ data: z.array(openMandateSchema) }),
        ),
      }),
      handler: async (request) => ({
        data: await mandates.list(server.callerOf(request).business_id, request.params.id),
      }),
    })

    app.post('/v1/open-mandates/:id/revoke', {
      schema: { params: createIdParams('open mandate'), querystring: businessQuery },
      config: describe('consent', 'revokeOpenMandate', 'Revokes an open mandate of a user, for ever', {
        description:
          'It pays nothing more, also not what was ordered and not sent yet. What was sent goes on. Revoking again changes nothing.',
        ...respondsWith(200, 'The open mandate', openMandateSchema),
      }),
      handler: (request) => mandates.revoke(server.callerOf(request).business_id, request.params.id),
    })
  },
})
