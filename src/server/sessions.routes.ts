import { z } from 'zod'
import { MasonError } from '../state/errors.ts'
import { sessionViewSchema } from '../state/run-view.ts'
import {
  actionIdSchema,
  businessQuery,
  omitUndefined,
  pageSchema,
  sessionParams,
  sessionsQuery,
} from './http/parameters.ts'
import { type App, createDocs, respondsWith } from './http/route.ts'

const describe = createDocs('sessions')

const forkBodySchema = z
  .strictObject({ action_id: actionIdSchema.describe('The last action that the new session has') })
  .meta({ examples: [{ action_id: 3 }] })

/** Throws the `not_found` of a session that does not exist, or belongs to another business. */
export const throwNoSuchSession = (id: string): never => {
  throw new MasonError('not_found', `there is no session "${id}"`, {
    remedy: 'GET /v1/sessions lists the sessions',
  })
}

/** Conversations: turns with prompts, goals, answers and usage. */
export const sessionsRoutes = (app: App): void => {
  app.get('/v1/sessions', {
    schema: { querystring: sessionsQuery },
    config: describe(
      'read',
      'listSessions',
      'Lists sessions, the latest first, each with its 50 latest turns',
      respondsWith(200, 'One page', pageSchema(sessionViewSchema)),
    ),
    handler: ({ business, query: { business_id: _, ...filter } }) => business.sessions(omitUndefined(filter)),
  })

  app.get('/v1/sessions/:id', {
    schema: { params: sessionParams, querystring: businessQuery },
    config: describe(
      'read',
      'getSession',
      'Returns a session',
      respondsWith(200, 'The session', sessionViewSchema),
    ),
    handler: async ({ business, params: { id } }) => (await business.session(id)) ?? throwNoSuchSession(id),
  })

  app.delete('/v1/sessions/:id', {
    schema: { params: sessionParams, querystring: businessQuery },
    config: describe(
      'submit',
      'deleteSession',
      'Ends the runs of a session and deletes all of its data, also large results that only it uses',
      respondsWith(204, 'It is deleted'),
    ),
    handler: async ({ business, params: { id } }, reply) =>
      (await business.deleteSession(id)) ? reply.code(204).send() : throwNoSuchSession(id),
  })

  app.post('/v1/sessions/:id/fork', {
    schema: { params: sessionParams, querystring: businessQuery, body: forkBodySchema },
    config: describe(
      'submit',
      'forkSession',
      'Creates a session with everything up to an action of a turn that has ended',
      {
        responses: {
          201: {
            description: 'The new session',
            schema: sessionViewSchema,
            headers: { location: 'Path of the new session' },
          },
        },
        problems: ['in_use'],
      },
    ),
    handler: async ({ business, params: { id }, body: { action_id } }, reply) => {
      const session = (await business.fork(id, action_id)) ?? throwNoSuchSession(id)
      return reply
        .code(201)
        .header('location', `/v1/sessions/${encodeURIComponent(session.id)}`)
        .send(session)
    },
  })
}
