import { z } from 'zod'
import { runViewSchema } from '../state/run-view.ts'
import { businessQuery, idParams } from './parameters.ts'
import type { App } from './route.ts'

const tag = 'runs'
const bodyProblems = ['malformed_json', 'payload_too_large', 'unsupported_media_type', 'not_found'] as const

const cancelBodySchema = z.strictObject({ reason: z.string().max(2000).optional() })
const inputBodySchema = z.strictObject({
  request_id: z.string().regex(/^[A-Za-z0-9._:@-]{1,200}$/, 'must be the id of an input request'),
  answer: z.json(),
})

/** Stepping into a run: stopping it, and answering what it asks. */
export const runControlRoutes = (app: App): void => {
  app.post('/v1/runs/:id/cancel', {
    schema: { params: idParams, querystring: businessQuery, body: cancelBodySchema },
    config: {
      doc: {
        id: 'cancelRun',
        tag,
        summary: 'Cancels a run',
        description:
          'May be repeated. A queued or waiting run ends at once, a running one within two seconds.',
        role: 'submit',
        bodyOptional: true,
        answers: { 202: { description: 'It is being cancelled, or was', schema: runViewSchema } },
        problems: [...bodyProblems, 'run_ended'],
      },
    },
    handler: async ({ business, params, body }, reply) =>
      reply.code(202).send(await business.cancel(params.id, body.reason)),
  })

  app.post('/v1/runs/:id/input', {
    schema: { params: idParams, querystring: businessQuery, body: inputBodySchema },
    config: {
      doc: {
        id: 'answerInputRequest',
        tag,
        summary: 'Answers the question a run waits for',
        description:
          'The answer must fit the schema of the input request; if it does not, the question stays open.',
        role: 'submit',
        answers: { 202: { description: 'The run goes on', schema: runViewSchema } },
        problems: [...bodyProblems, 'input_answered', 'run_ended'],
      },
    },
    handler: async ({ business, params, body }, reply) =>
      reply.code(202).send(await business.answer(params.id, body.request_id, body.answer)),
  })
}
