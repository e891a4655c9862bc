import { userChangeSchema, userInputSchema, userViewSchema } from '../state/admin.ts'
import { MasonError } from '../state/errors.ts'
import { businessQuery, given, idParams, pageQuery } from './parameters.ts'
import type { App, RouteDoc, ServerContext } from './route.ts'
import { pageSchema } from './wire.ts'

const noSuchUser = (id: string): MasonError =>
  new MasonError('not_found', `there is no user "${id}"`, {
    remedy: 'name the business with ?business_id=; GET /admin/v1/users lists its users',
  })

const bodyProblems: RouteDoc['problems'] = ['malformed_json', 'payload_too_large', 'unsupported_media_type']
const businessOf = (query: { business_id?: string | undefined }): string => query.business_id ?? 'default'

/** Profiles that feed `user_context`; a user belongs to a business. */
export const adminUsersRoutes = (app: App, { runtime }: ServerContext): void => {
  const { users } = runtime.admin
  const doc = (part: Pick<RouteDoc, 'id' | 'summary' | 'answers' | 'problems'>) => ({
    doc: { tag: 'admin: users', role: 'operator' as const, ...part },
  })
  const shown = { 200: { description: 'The user', schema: userViewSchema } }

  app.get('/admin/v1/users', {
    schema: { querystring: pageQuery },
    config: doc({
      id: 'listUsers',
      summary: 'Lists the users of a business, the latest changed first',
      answers: { 200: { description: 'One page', schema: pageSchema(userViewSchema) } },
    }),
    handler: ({ query }) => users.list({ ...given(query), business_id: businessOf(query) }),
  })

  app.post('/admin/v1/users', {
    schema: { body: userInputSchema },
    config: doc({
      id: 'createUser',
      summary: 'Keeps a profile for a user of a business',
      answers: { 201: { description: 'The user', schema: userViewSchema } },
      problems: [...bodyProblems, 'already_exists'],
    }),
    handler: async ({ body }, reply) => reply.code(201).send(await users.create(body)),
  })

  app.get('/admin/v1/users/:id', {
    schema: { params: idParams, querystring: businessQuery },
    config: doc({ id: 'getUser', summary: 'Shows a user', answers: shown, problems: ['not_found'] }),
    handler: async ({ params: { id }, query }) => {
      const user = await users.get(businessOf(query), id)
      if (!user) throw noSuchUser(id)
      return user
    },
  })

  app.patch('/admin/v1/users/:id', {
    schema: { params: idParams, querystring: businessQuery, body: userChangeSchema },
    config: doc({
      id: 'changeUser',
      summary: 'Puts a new profile in the place of the old one',
      answers: shown,
      problems: [...bodyProblems, 'not_found'],
    }),
    handler: async ({ params: { id }, query, body }) => {
      const user = await users.change(businessOf(query), id, body.profile)
      if (!user) throw noSuchUser(id)
      return user
    },
  })

  app.delete('/admin/v1/users/:id', {
    schema: { params: idParams, querystring: businessQuery },
    config: doc({
      id: 'deleteUser',
      summary: 'Forgets the profile of a user',
      answers: { 204: { description: 'It is gone' } },
      problems: ['not_found'],
    }),
    handler: async ({ params: { id }, query }, reply) => {
      if (!(await users.remove(businessOf(query), id))) throw noSuchUser(id)
      return reply.code(204).send()
    },
  })
}
