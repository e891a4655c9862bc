import { z } from 'zod'
import { createIdParams, omitUndefined, pageSchema, plainPageQuery } from '../../routes/parameters.ts'
import { describeAdmin, handleOne } from '../../routes/resource-routes.ts'
import { respondsWith } from '../../routes/route.ts'
import { admittedRunSchema } from '../../state/run-view.ts'
import { databaseRef, runSubmissionRef } from '../core.ref.ts'
import { defineRoutes } from '../definitions.ts'
import { rejectedJobDataSchema, rejectedJobSchema } from './rejected-job.ts'
import { createRejectedJobs } from './rejected-jobs.ts'

const resource = { path: '/admin/v1/rejected-jobs', one: 'a rejected job', many: 'rejected jobs' } as const

const jobParams = createIdParams('rejected job')
const resubmitBodySchema = z
  .strictObject({ data: z.json().describe('Corrected data of the job; absent: as it was sent').optional() })
  .meta({ examples: [{ data: { prompt: 'Which orders were returned?', user_id: 'ann' } }] })

/** Jobs of the public queue that were refused: list, read, submit again, delete. */
export default defineRoutes({
  needs: { database: databaseRef, runs: runSubmissionRef },
  add(app, { database, runs }) {
    const jobs = createRejectedJobs(database, (business, request, key) =>
      runs.submit(business, request, key, { by: 'queue', beganAtMs: Date.now() }),
    )

    app.get(resource.path, {
      schema: { querystring: plainPageQuery },
      config: describeAdmin(
        resource,
        'listRejectedJobs',
        'Lists rejected jobs, the latest first',
        respondsWith(200, 'One page', pageSchema(rejectedJobSchema)),
      ),
      handler: ({ query }) => jobs.list(omitUndefined(query)),
    })

    app.get(`${resource.path}/:id`, {
      schema: { params: jobParams },
      config: describeAdmin(
        resource,
        'getRejectedJob',
        'Returns a rejected job with its data',
        respondsWith(200, 'a rejected job', rejectedJobDataSchema),
      ),
      handler: handleOne(resource, (_, id) => jobs.get(id)),
    })

    app.post(`${resource.path}/:id/resubmit`, {
      schema: { params: jobParams, body: resubmitBodySchema },
      config: describeAdmin(
        resource,
        'resubmitRejectedJob',
        'Submits a rejected job again, as it was sent or with corrected data; repeated it returns the same run',
        {
          bodyOptional: true,
          ...respondsWith(202, 'The run', admittedRunSchema, { location: 'Path of the run' }),
          problems: ['session_of_another_user', 'idempotency_conflict', 'quota_exceeded', 'budget_exhausted'],
        },
      ),
      handler: async (request, reply) => {
        const run = await handleOne(resource, (_, id) => jobs.resubmit(id, request.body.data))(request)
        return reply
          .code(202)
          .header('location', `/v1/runs/${encodeURIComponent(run.id)}`)
          .send(run)
      },
    })

    app.delete(`${resource.path}/:id`, {
      schema: { params: jobParams },
      config: describeAdmin(resource, 'deleteRejectedJob', 'Deletes a rejected job', {
        responses: { 204: { description: 'It is deleted' } },
      }),
      handler: async (request, reply) => {
        await handleOne(resource, async (_, id) => (await jobs.remove(id)) || null)(request)
        return reply.code(204).send()
      },
    })
  },
})
