import { newTokenSchema, tokenChangeSchema, tokenInputSchema, tokenViewSchema } from '../state/admin.ts'
import { MasonError } from '../state/errors.ts'
import { given, idParams, pageQuery } from './parameters.ts'
import type { App, RouteDoc, ServerContext } from './route.ts'
import { pageSchema } from './wire.ts'

const noSuchToken = (id: string): MasonError =>
  new MasonError('not_found', `there is no token "${id}"`, {
    remedy: 'GET /admin/v1/tokens lists the tokens there are',
  })

const bodyProblems: RouteDoc['problems'] = ['malformed_json', 'payload_too_large', 'unsupported_media_type']

/** API tokens of businesses: a token is shown once, when it is made. */
export const adminTokensRoutes = (app: App, { runtime }: ServerContext): void => {
  const { tokens } = runtime.admin
  const doc = (part: Pick<RouteDoc, 'id' | 'summary' | 'answers' | 'problems'>) => ({
    doc: { tag: 'admin: tokens', role: 'operator' as const, ...part },
  })

  app.get('/admin/v1/tokens', {
    schema: { querystring: pageQuery },
    config: doc({
      id: 'listTokens',
      summary: 'Lists tokens, the latest first',
      answers: { 200: { description: 'One page', schema: pageSchema(tokenViewSchema) } },
    }),
    handler: ({ query }) => tokens.list(given(query)),
  })

  app.post('/admin/v1/tokens', {
    schema: { body: tokenInputSchema },
    config: doc({
      id: 'createToken',
      summary: 'Makes a token of a business; it is shown only in this answer',
      answers: { 201: { description: 'The token', schema: newTokenSchema } },
      problems: bodyProblems,
    }),
    handler: async ({ body }, reply) => reply.code(201).send(await tokens.create(body)),
  })

  app.get('/admin/v1/tokens/:id', {
    schema: { params: idParams },
    config: doc({
      id: 'getToken',
      summary: 'Shows a token, without the token itself',
      answers: { 200: { description: 'The token', schema: tokenViewSchema } },
      problems: ['not_found'],
    }),
    handler: async ({ params: { id } }) => {
      const token = await tokens.get(id)
      if (!token) throw noSuchToken(id)
      return token
    },
  })

  app.patch('/admin/v1/tokens/:id', {
    schema: { params: idParams, body: tokenChangeSchema },
    config: doc({
      id: 'changeToken',
      summary: 'Changes label or roles',
      answers: { 200: { description: 'The token', schema: tokenViewSchema } },
      problems: [...bodyProblems, 'not_found'],
    }),
    handler: async ({ params: { id }, body }) => {
      const token = await tokens.change(id, given(body))
      if (!token) throw noSuchToken(id)
      return token
    },
  })

  app.delete('/admin/v1/tokens/:id', {
    schema: { params: idParams },
    config: doc({
      id: 'revokeToken',
      summary: 'Revokes a token, at once and for good',
      answers: { 204: { description: 'It is revoked' } },
      problems: ['not_found'],
    }),
    handler: async ({ params: { id } }, reply) => {
      if (!(await tokens.revoke(id))) throw noSuchToken(id)
      return reply.code(204).send()
    },
  })
}
