import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { businessQuery, pageSchema, runParams, runsQuery } from '../../routes/parameters.ts'
import { HttpError, type ProblemCode, throwNoSuchRun } from '../../routes/problems.ts'
import { type App, createDocs, type RouteDoc, respondsWith } from '../../routes/route.ts'
import { openDeadline } from '../../state/deadline.ts'
import { isMasonError, MasonError } from '../../state/errors.ts'
import type { RunEntry } from '../../state/ports/tracer.ts'
import {
  type RunRequest,
  rerunRequestSchema,
  runRequestExample,
  runRequestSchema,
} from '../../state/run-request.ts'
import { admittedRunSchema, type RunView, runViewSchema } from '../../state/run-view.ts'
import { runtimeStateSchema } from '../../state/runtime-state.ts'
import type { BusinessApi } from '../api.ts'
import { blobParams, readRunFilter, stateQuery, submitHeaders } from './parameters.ts'
import { allBusinesses } from './plumbing/auth.ts'
import type { ServerContext } from './plumbing/server-context.ts'

/** How long `/wait` waits at most, and where the body says nothing. */
const maxWaitMs = 60_000
const waitBodySchema = runRequestSchema
  .extend({
    wait_ms: z.int().min(0).max(maxWaitMs).describe('Milliseconds to wait').default(maxWaitMs),
  })
  .meta({ examples: [{ ...runRequestExample, wait_ms: 20_000 }] })

const describe = createDocs('runs')
const submitProblems: ProblemCode[] = ['session_of_another_user', 'idempotency_conflict', 'budget_exhausted']
const location = { location: 'Path of the run' }
/** The responses of a submission: a new run, or the one that its key created before. */
const describeAdmission = (accepted: string): RouteDoc['responses'] => ({
  202: { description: accepted, schema: admittedRunSchema, headers: location },
  200: {
    description: 'The run that this key created before',
    schema: admittedRunSchema,
    headers: { ...location, 'idempotent-replayed': 'true' },
  },
})

const cancelBodySchema = z
  .strictObject({
    reason: z.string().max(2000).describe('Why, shown with the run').optional(),
  })
  .meta({ examples: [{ reason: 'the customer has left' }] })
const inputBodySchema = z
  .strictObject({
    request_id: z
      .string()
      .regex(/^[A-Za-z0-9._:@-]{1,200}$/, 'must be the id of an input request')
      .describe('The id of `input_request`'),
    answer: z.json().describe('Valid by the schema of the input request'),
  })
  .meta({ examples: [{ request_id: 'input_1', answer: 'yes' }] })

const runPageSchema = pageSchema(runViewSchema).extend({
  searched_to: z
    .string()
    .nullable()
    .describe('There where the search took a second: how far it came; the cursor goes on from there')
    .optional(),
  count: z
    .int()
    .nullable()
    .describe('How many there are, up to 10,000; null: counting took too long')
    .optional(),
  count_capped: z.boolean().describe('Whether there are more than `count`').optional(),
})

/** Runs: submit, wait, list, get, cancel, answer input requests, read state and blobs. */
export const runsRoutes = (app: App, { open, runtime }: ServerContext): void => {
  app.post('/v1/runs', {
    schema: { querystring: businessQuery, headers: submitHeaders, body: runRequestSchema },
    config: describe('submit', 'submitRun', 'Submits a run', {
      description:
        'The run is durable once this call responds, also while the queue is down. The same Idempotency-Key and body return the same run.',
      responses: describeAdmission('The run is accepted'),
      problems: submitProblems,
    }),
    handler: async (request, reply) => (await submitRequest(request, reply)).run,
  })

  app.post('/v1/runs/wait', {
    schema: { querystring: businessQuery, headers: submitHeaders, body: waitBodySchema },
    config: describe(
      'submit',
      'submitRunAndWait',
      'Submits a run and waits until it has ended or asks for input',
      {
        description:
          'It waits for wait_ms, a minute at most. Disconnecting only ends the waiting; the run continues.',
        responses: {
          200: { description: 'The run in its state then', schema: runViewSchema, headers: location },
          202: {
            description: 'The run, which goes on after wait_ms',
            schema: runViewSchema,
            headers: location,
          },
        },
        problems: submitProblems,
      },
    ),
    handler: async (request, reply) => {
      const { wait_ms, ...body } = request.body
      const { run, replayed } = await submitRequest(request, reply, body)
      const { signal, release } = open.abortSignal(reply.raw)
      using deadline = openDeadline(wait_ms, signal)
      let ended: RunView | null = null
      try {
        ended = await request.business.wait(replayed ? run.id : run, deadline.signal)
      } catch (error) {
        if (!deadline.signal.aborted) throw error
        if (signal.aborted && open.closing) throw waitEnded()
        // the client has disconnected: no response is sent
        if (signal.aborted) return reply.hijack()
      } finally {
        release()
      }
      // the token may have been revoked meanwhile; what else fails here must not cost the caller the run
      await request.checkAgain?.().catch((error: unknown) => {
        if (isMasonError(error, 'unauthorized', 'forbidden')) throw error
      })
      return reply
        .code(ended ? 200 : 202)
        .send(ended ?? (await request.business.run(run.id)) ?? throwNoSuchRun(run.id))
    },
  })

  app.get('/v1/runs', {
    schema: { querystring: runsQuery },
    config: describe('read', 'listRuns', 'Lists runs, the latest first', {
      description:
        'Also by members of the metadata: `?metadata.order=4711`. Of several all must match; numbers, true, false and null are found by their JSON, objects and lists are not.',
      ...respondsWith(200, 'One page', runPageSchema),
    }),
    handler: ({ business, query }) =>
      query.business_id === allBusinesses
        ? runtime.admin.listAllRuns(readRunFilter(query))
        : business.runs(readRunFilter(query)),
  })

  app.get('/v1/runs/:id', {
    schema: { params: runParams, querystring: businessQuery },
    config: describe('read', 'getRun', 'Returns a run', respondsWith(200, 'The run', runViewSchema)),
    handler: async ({ business, params: { id } }) => (await business.run(id)) ?? throwNoSuchRun(id),
  })

  app.post('/v1/runs/:id/cancel', {
    schema: { params: runParams, querystring: businessQuery, body: cancelBodySchema },
    config: describe('submit', 'cancelRun', 'Cancels a run', {
      description: 'Safe to repeat. A queued or waiting run ends at once, a running one within two seconds.',
      bodyOptional: true,
      ...respondsWith(202, 'The run is being cancelled, or was cancelled before', runViewSchema),
      problems: ['run_ended'],
    }),
    handler: async ({ business, params, body }, reply) =>
      reply.code(202).send(await business.cancel(params.id, body.reason)),
  })

  app.post('/v1/runs/:id/retry', {
    schema: { params: runParams, querystring: businessQuery, headers: submitHeaders },
    config: describe('submit', 'retryRun', 'Runs the request of a failed run again', {
      description:
        "A new run, as the session's next turn, which names the failed one in retry_of and sees its results. The failed run stays as it is. The same Idempotency-Key returns the same run.",
      responses: describeAdmission('The new run is accepted'),
      problems: ['run_not_failed', 'idempotency_conflict', 'budget_exhausted'],
    }),
    handler: async (request, reply) => {
      const { business, params, headers } = request
      const key = headers['idempotency-key']
      return answerSubmission(reply, await business.retry(params.id, key, toEntry(request, reply))).run
    },
  })

  app.post('/v1/runs/:id/rerun', {
    schema: {
      params: runParams,
      querystring: businessQuery,
      headers: submitHeaders,
      body: rerunRequestSchema,
    },
    config: describe('submit', 'rerunRun', 'Runs a request again in a new session', {
      description:
        'The new session is a fork right before the run, or right after from_action, where the new run goes on. Payments are never repeated, other side effects only with repeat_effects.',
      bodyOptional: true,
      responses: describeAdmission('The new run is accepted'),
      problems: ['in_use', 'has_effects', 'has_payments', 'idempotency_conflict', 'budget_exhausted'],
    }),
    handler: async (request, reply) => {
      const { business, params, body, headers } = request
      const key = headers['idempotency-key']
      const submitted = await business.rerun(params.id, body, key, toEntry(request, reply))
      return answerSubmission(reply, submitted).run
    },
  })

  app.post('/v1/runs/:id/input', {
    schema: { params: runParams, querystring: businessQuery, body: inputBodySchema },
    config: describe('submit', 'answerInputRequest', 'Answers the question a run waits for', {
      description:
        'The answer must fit the schema of the input request; if it does not, the question stays open.',
      responses: { 202: { description: 'The run continues', schema: runViewSchema } },
      problems: ['input_answered', 'run_ended'],
    }),
    handler: async ({ business, params, body }, reply) =>
      reply.code(202).send(await business.answer(params.id, body.request_id, body.answer)),
  })

  app.get('/v1/runs/:id/state', {
    schema: { params: runParams, querystring: stateQuery },
    config: describe('read', 'getRunState', "The RuntimeState up to the run's turn", {
      description: 'Large results are part of it in full, or with inline=false as {blob, bytes, head}.',
      responses: { 200: { description: 'The state', schema: runtimeStateSchema } },
    }),
    handler: async ({ business, params: { id }, query: { inline } }) =>
      (await business.state(id, inline)) ?? throwNoSuchRun(id),
  })

  app.get('/v1/runs/:id/blobs/:sha256', {
    schema: { params: blobParams, querystring: businessQuery },
    config: describe('read', 'getRunBlob', 'The bytes of a large result', {
      responses: {
        200: {
          description: 'The bytes',
          type: 'application/octet-stream',
          headers: { etag: 'The hash, quoted' },
        },
        304: { description: 'If-None-Match names these bytes' },
      },
    }),
    handler: async ({ business, params: { id, sha256 }, headers }, reply) => {
      const blob = await business.blob(id, sha256)
      if (!blob) throw new MasonError('not_found', `run "${id}" has no blob "${sha256}"`)
      const etag = `"${sha256}"`
      reply
        .header('etag', etag)
        .header('cache-control', 'private, max-age=31536000, immutable')
        .header('x-content-type-options', 'nosniff')
        .header('content-disposition', 'attachment')
      if (headers['if-none-match'] === etag) return reply.code(304).send()
      reply.header('content-length', blob.bytes)
      return reply.type('application/octet-stream').send(Readable.from(blob.chunks, { objectMode: false }))
    },
  })
}

type SubmitRequest = Pick<FastifyRequest, 'business' | 'routeOptions' | 'raw' | 'principal'> & {
  body: RunRequest
  headers: z.output<typeof submitHeaders>
}

/** Submits the run and sets the headers of the response. Its trace gets the start of the request and its sender's trace. */
const submitRequest = async (request: SubmitRequest, reply: FastifyReply, body = request.body) => {
  const key = request.headers['idempotency-key']
  return answerSubmission(reply, await request.business.submit(body, key, toEntry(request, reply)))
}

/** Where a run came from, for its trace. */
export const toEntry = (
  { raw, routeOptions, principal }: Pick<FastifyRequest, 'routeOptions' | 'raw' | 'principal'>,
  { elapsedTime }: FastifyReply,
): RunEntry => {
  const { traceparent } = raw.headers
  return {
    by: 'http',
    route: routeOptions.url ?? 'unknown',
    beganAtMs: Date.now() - elapsedTime,
    traceparent: typeof traceparent === 'string' ? traceparent : undefined,
    token_id: principal?.kind === 'token' ? principal.token_id : undefined,
  }
}

type Submission = Awaited<ReturnType<BusinessApi['submit']>>

const answerSubmission = (reply: FastifyReply, submitted: Submission): Submission => {
  reply.code(submitted.replayed ? 200 : 202)
  reply.header('location', `/v1/runs/${encodeURIComponent(submitted.run.id)}`)
  if (submitted.replayed) reply.header('idempotent-replayed', 'true')
  return submitted
}

/** The error of a wait that this server ends early, with the way to continue it. */
const waitEnded = (): HttpError =>
  new HttpError('shutting_down', 'the run continues, but this server no longer waits for it', {
    remedy: 'GET the run at Location, or send the request again with the same Idempotency-Key',
  })
