import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { MasonError } from '../state/errors.ts'
import { runRequestSchema } from '../state/run-request.ts'
import { runStatusSchema, runViewSchema } from '../state/run-view.ts'
import type { Entry } from '../state/trace.ts'
import { businessQuery, given, idParams, runsQuery, submitHeaders } from './parameters.ts'
import { HttpError } from './problems.ts'
import type { App, ServerContext } from './route.ts'
import { pageSchema } from './wire.ts'

const submittedSchema = z.strictObject({
  id: z.string(),
  session_id: z.string(),
  turn: z.int(),
  status: runStatusSchema,
})

const tag = 'runs'
const submitProblems = [
  'malformed_json',
  'payload_too_large',
  'unsupported_media_type',
  'session_of_another_user',
  'idempotency_conflict',
] as const
const location = { location: 'Path of the run' }

/** A run that is not there, or is another business's: callers cannot tell which. */
export const noSuchRun = (id: string): MasonError =>
  new MasonError('not_found', `there is no run "${id}"`, { remedy: 'GET /v1/runs lists the runs there are' })

/** Submitting runs and looking at them. */
export const runsRoutes = (app: App, { open }: ServerContext): void => {
  app.post('/v1/runs', {
    schema: { querystring: businessQuery, headers: submitHeaders, body: runRequestSchema },
    config: {
      doc: {
        id: 'submitRun',
        tag,
        summary: 'Submits a run',
        description:
          'Durable once answered, also while the queue is down. The same Idempotency-Key and body give the same run.',
        role: 'submit',
        answers: {
          202: { description: 'The run is accepted', schema: submittedSchema, headers: location },
          200: {
            description: 'The run this key made before',
            schema: submittedSchema,
            headers: { ...location, 'idempotent-replayed': 'true' },
          },
        },
        problems: [...submitProblems],
      },
    },
    handler: async (request, reply) => {
      const { run, replayed } = await request.business.submit(
        request.body,
        request.headers['idempotency-key'],
        entryOf(request, reply),
      )
      return announce(reply, run.id, replayed)
        .code(replayed ? 200 : 202)
        .send(run)
    },
  })

  app.post('/v1/runs/wait', {
    schema: { querystring: businessQuery, headers: submitHeaders, body: runRequestSchema },
    config: {
      doc: {
        id: 'submitRunAndWait',
        tag,
        summary: 'Submits a run and waits until it has ended or asks for input',
        description: 'Going away only ends the waiting; the run goes on.',
        role: 'submit',
        answers: {
          200: { description: 'The run as it stands then', schema: runViewSchema, headers: location },
        },
        problems: [...submitProblems],
      },
    },
    handler: async (request, reply) => {
      const { business } = request
      const key = request.headers['idempotency-key']
      const { run, replayed } = await business.submit(request.body, key, entryOf(request, reply))
      announce(reply, run.id, replayed)
      const { signal, release } = open.signalOf(reply.raw)
      try {
        return await business.wait(replayed ? run.id : run, signal)
      } catch (error) {
        if (!signal.aborted) throw error
        if (open.closing) throw noLongerWaiting()
        // the client has left: there is nobody to answer
        return reply.hijack()
      } finally {
        release()
      }
    },
  })

  app.get('/v1/runs', {
    schema: { querystring: runsQuery },
    config: {
      doc: {
        id: 'listRuns',
        tag,
        summary: 'Lists runs, the latest first',
        role: 'read',
        answers: { 200: { description: 'One page', schema: pageSchema(runViewSchema) } },
      },
    },
    handler: ({ business, query: { business_id: _, ...filter } }) => business.runs(given(filter)),
  })

  app.get('/v1/runs/:id', {
    schema: { params: idParams, querystring: businessQuery },
    config: {
      doc: {
        id: 'getRun',
        tag,
        summary: 'Shows a run',
        role: 'read',
        answers: { 200: { description: 'The run', schema: runViewSchema } },
        problems: ['not_found'],
      },
    },
    handler: async ({ business, params: { id } }) => {
      const run = await business.run(id)
      if (!run) throw noSuchRun(id)
      return run
    },
  })
}

/** For the run's trace: when the request began, and the trace of its sender. */
const entryOf = (
  request: Pick<FastifyRequest, 'routeOptions' | 'raw'>,
  reply: Pick<FastifyReply, 'elapsedTime'>,
): Entry => {
  const { traceparent } = request.raw.headers
  return {
    by: 'http',
    route: request.routeOptions.url ?? 'unknown',
    beganAtMs: Date.now() - reply.elapsedTime,
    traceparent: typeof traceparent === 'string' ? traceparent : undefined,
  }
}

const announce = (reply: FastifyReply, runId: string, replayed: boolean): FastifyReply => {
  reply.header('location', `/v1/runs/${encodeURIComponent(runId)}`)
  return replayed ? reply.header('idempotent-replayed', 'true') : reply
}

/** For a wait cut short by us: where its client goes on. */
const noLongerWaiting = (): HttpError =>
  new HttpError('shutting_down', 'the run goes on, but this server no longer waits for it', {
    remedy: 'GET the run at Location, or send the request again with the same Idempotency-Key',
  })
