import { z } from 'zod'
import { businessQuery, createIdParams } from '../../routes/parameters.ts'
import { createDocs, respondsWith } from '../../routes/route.ts'
import { defineRoutes } from '../definitions.ts'
import { openMandateSchema } from './consent/open-mandate-rows.ts'
import { consentRef } from './payments.ref.ts'

const describe = createDocs('payments')

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
