import { z } from 'zod'
import { MasonError } from '../state/errors.ts'
import { sessionViewSchema } from '../state/run-view.ts'
import { actionIdSchema, businessQuery, given, idParams, sessionsQuery } from './parameters.ts'
import type { App } from './route.ts'
import { pageSchema } from './wire.ts'

const tag = 'sessions'

const forkBodySchema = z.strictObject({ action_id: actionIdSchema })

export const noSuchSession = (id: string): MasonError =>
  new MasonError('not_found', `there is no session "${id}"`, {
    remedy: 'GET /v1/sessions lists the sessions there are',
  })

/** Conversations: turns with prompts, goals, answers and usage. */
export const sessionsRoutes = (app: App): void => {
  app.get('/v1/sessions', {
    schema: { querystring: sessionsQuery },
    config: {
      doc: {
        id: 'listSessions',
        tag,
        summary: 'Lists sessions, the latest first, each with its 50 latest turns',
        role: 'read',
        answers: { 200: { description: 'One page', schema: pageSchema(sessionViewSchema) } },
      },
    },
    handler: ({ business, query: { business_id: _, ...filter } }) => business.sessions(given(filter)),
  })

  app.get('/v1/sessions/:id', {
    schema: { params: idParams, querystring: businessQuery },
    config: {
      doc: {
        id: 'getSession',
        tag,
        summary: 'Shows a session',
        role: 'read',
        answers: { 200: { description: 'The session', schema: sessionViewSchema } },
        problems: ['not_found'],
      },
    },
    handler: async ({ business, params: { id } }) => {
      const session = await business.session(id)
      if (!session) throw noSuchSession(id)
      return session
    },
  })

  app.delete('/v1/sessions/:id', {
    schema: { params: idParams, querystring: businessQuery },
    config: {
      doc: {
        id: 'deleteSession',
        tag,
        summary: 'Ends the runs of a session and deletes everything of it, also what only it held',
        role: 'submit',
        answers: { 204: { description: 'It is gone' } },
        problems: ['not_found'],
      },
    },
    handler: async ({ business, params: { id } }, reply) => {
      if (!(await business.deleteSession(id))) throw noSuchSession(id)
      return reply.code(204).send()
    },
  })

  app.post('/v1/sessions/:id/fork', {
    schema: { params: idParams, querystring: businessQuery, body: forkBodySchema },
    config: {
      doc: {
        id: 'forkSession',
        tag,
        summary: 'A new session holding everything up to an action of a turn that has ended',
        role: 'submit',
        answers: {
          201: {
            description: 'The new session',
            schema: sessionViewSchema,
            headers: { location: 'Path of the new session' },
          },
        },
        problems: ['malformed_json', 'payload_too_large', 'unsupported_media_type', 'not_found', 'in_use'],
      },
    },
    handler: async ({ business, params: { id }, body: { action_id } }, reply) => {
      const session = await business.fork(id, action_id)
      if (!session) throw noSuchSession(id)
      return reply
        .code(201)
        .header('location', `/v1/sessions/${encodeURIComponent(session.id)}`)
        .send(session)
    },
  })
}
