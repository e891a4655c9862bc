import { z } from 'zod'
import { businessQuery, omitUndefined, pageSchema, sessionsQuery } from '../../routes/parameters.ts'
import { type App, createDocs, respondsWith } from '../../routes/route.ts'
import { MasonError } from '../../state/errors.ts'
import { patchSchema } from '../../state/patch.ts'
import { actionPromptSchema, actionViewSchema, sessionViewSchema } from '../../state/run-view.ts'
import { runtimeStateSchema } from '../../state/runtime-state.ts'
import {
  actionIdSchema,
  actionParams,
  actionsQuery,
  promptQuery,
  sessionParams,
  sessionStateQuery,
} from './parameters.ts'

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

const throwNoSuchAction = (id: string, action: number): never => {
  throw new MasonError('not_found', `session "${id}" has no action ${action}`, {
    remedy: `GET /v1/sessions/${encodeURIComponent(id)}/actions lists its actions`,
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

  app.get('/v1/sessions/:id/actions', {
    schema: { params: sessionParams, querystring: actionsQuery },
    config: describe(
      'read',
      'listActions',
      'Lists the actions of a session in their order, with times and model calls',
      {
        description:
          'At most 1 MB, but for the first. `has_more`: with `before` there are earlier ones, else later ones; go on with the first or the last id of the page.',
        ...respondsWith(
          200,
          'One page',
          z.strictObject({ data: z.array(actionViewSchema), has_more: z.boolean() }),
        ),
      },
    ),
    handler: async ({ business, params: { id }, query: { business_id: _, ...filter } }) =>
      (await business.actions(id, omitUndefined(filter))) ?? throwNoSuchSession(id),
  })

  app.get('/v1/sessions/:id/actions/:action', {
    schema: { params: actionParams, querystring: businessQuery },
    config: describe(
      'read',
      'getAction',
      'Returns an action, with what it changed in the state',
      respondsWith(200, 'The action', actionViewSchema.extend({ patch: patchSchema })),
    ),
    handler: async ({ business, params: { id, action } }) =>
      (await business.action(id, action)) ?? throwNoSuchAction(id, action),
  })

  app.get('/v1/sessions/:id/actions/:action/prompt', {
    schema: { params: actionParams, querystring: promptQuery },
    config: describe(
      'read',
      'getActionPrompt',
      'Returns the messages that an action sent to a model first, rebuilt from the state before it',
      {
        description:
          'At most 1 MB, but for the first message. `no_prompt`: it called no model, or what the messages were made of is not there any more or is not read again.',
        ...respondsWith(200, 'The messages', actionPromptSchema),
        problems: ['no_prompt'],
      },
    ),
    handler: async ({ business, params: { id, action }, query: { after } }) =>
      (await business.prompt(id, action, after)) ?? throwNoSuchAction(id, action),
  })

  app.get('/v1/sessions/:id/state', {
    schema: { params: sessionParams, querystring: sessionStateQuery },
    config: describe(
      'read',
      'getSessionState',
      'The RuntimeState as an action left it',
      respondsWith(200, 'The state', runtimeStateSchema),
    ),
    handler: async ({ business, params: { id }, query: { action, inline } }) =>
      (await business.sessionState(id, { inline, ...(action !== undefined && { action }) })) ??
      (action === undefined ? throwNoSuchSession(id) : throwNoSuchAction(id, action)),
  })

  app.delete('/v1/sessions/:id', {
    schema: { params: sessionParams, querystring: businessQuery },
    config: describe(
      'delete',
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
        ...respondsWith(201, 'The new session', sessionViewSchema, { location: 'Path of the new session' }),
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
