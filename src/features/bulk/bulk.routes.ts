import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { businessQuery, createIdParams, omitUndefined, readSpan, runsQuery } from '../../routes/parameters.ts'
import { createDocs, respondsWith } from '../../routes/route.ts'
import { MasonError } from '../../state/errors.ts'
import { defineRoutes } from '../definitions.ts'
import { bulkRef } from './bulk.ref.ts'
import { bulkActionSchema, bulkJobSchema } from './bulk-job.ts'

const describe = createDocs('runs')

const { limit, cursor, business_id, idempotency_key, order, count, ...filters } = runsQuery.shape
const filterSchema = z.strictObject({
  ...filters,
  metadata: z
    .record(z.string().max(200), z.string().max(2000))
    .describe('Members of the metadata, which all must match')
    .optional(),
})
const bulkBodySchema = z
  .strictObject({
    action: bulkActionSchema.describe('`cancel`: runs that have not ended; `retry`: failed ones').optional(),
    filter: filterSchema.describe('As that of GET /v1/runs; `{}`: all of them').optional(),
    reason: z.string().max(2000).describe('Why, shown with cancelled runs').optional(),
    confirm: z
      .string()
      .regex(/^bulk_[0-9a-f]{32}$/, 'must be the id of a list of runs')
      .describe('The id of a list that was made before, alone: has it worked on')
      .optional(),
  })
  .superRefine(({ action, filter, reason, confirm }, context) => {
    const named = { action, filter, reason }
    if (confirm === undefined) {
      for (const path of ['action', 'filter'] as const)
        if (named[path] === undefined)
          context.addIssue({ code: 'custom', path: [path], message: 'must be there without confirm' })
      return
    }
    for (const [path, value] of Object.entries(named))
      if (value !== undefined)
        context.addIssue({ code: 'custom', path: [path], message: 'must be left out beside confirm' })
  })
  .meta({
    examples: [{ action: 'cancel', filter: { user_id: 'u-17', status: 'queued' }, reason: 'a wrong import' }],
  })

const jobParams = createIdParams('bulk job')
const location = { location: 'Path of the job' }

const throwNoSuchJob = (id: string): never => {
  throw new MasonError('not_found', `there is no bulk job "${id}"`, {
    remedy: 'make the list anew; one that is not confirmed is gone after an hour',
  })
}

/** One action on many runs. */
export default defineRoutes({
  needs: { bulk: bulkRef },
  add(app, { bulk }, { callerOf }) {
    const jobsOf = (request: FastifyRequest) => bulk.of(callerOf(request).business_id)

    app.post('/v1/runs/bulk', {
      schema: { querystring: businessQuery, body: bulkBodySchema },
      config: describe('submit', 'actOnRuns', 'Cancels or retries many runs', {
        description:
          'Two calls. The first, with action and filter, makes a fixed list of at most 10,000 runs and does nothing to them. The second, with confirm alone, has workers go through the list; each of its runs is cancelled or retried once.',
        responses: {
          201: {
            description: 'The list, which is not confirmed yet',
            schema: bulkJobSchema,
            headers: location,
          },
          202: { description: 'The job', schema: bulkJobSchema, headers: location },
        },
      }),
      handler: async (request, reply) => {
        const { confirm, action, filter, reason } = request.body
        const { token_id } = callerOf(request)
        const jobs = jobsOf(request)
        const job = confirm
          ? ((await jobs.confirm(confirm)) ?? throwNoSuchJob(confirm))
          : await jobs.list({
              action: action as NonNullable<typeof action>,
              filter: omitUndefined({ ...filter, ...readSpan(filter ?? {}) }),
              ...omitUndefined({ reason, token_id: token_id ?? undefined }),
            })
        return reply
          .code(confirm ? 202 : 201)
          .header('location', `/v1/runs/bulk/${job.id}`)
          .send(job)
      },
    })

    app.get('/v1/runs/bulk/:id', {
      schema: { params: jobParams, querystring: businessQuery },
      config: describe(
        'read',
        'getBulkJob',
        'Returns how far an action on many runs has come',
        respondsWith(200, 'The job', bulkJobSchema),
      ),
      handler: async (request) =>
        (await jobsOf(request).get(request.params.id)) ?? throwNoSuchJob(request.params.id),
    })

    app.post('/v1/runs/bulk/:id/cancel', {
      schema: { params: jobParams, querystring: businessQuery },
      config: describe('submit', 'cancelBulkJob', 'Stops an action on many runs', {
        description: 'Safe to repeat. What is done stays so.',
        ...respondsWith(202, 'The job', bulkJobSchema),
      }),
      handler: async (request, reply) => {
        const { id } = request.params
        return reply.code(202).send((await jobsOf(request).cancel(id)) ?? throwNoSuchJob(id))
      },
    })
  },
})
