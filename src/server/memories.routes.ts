import { MasonError } from '../state/errors.ts'
import { knownSchema } from '../state/memory/known.ts'
import { memoryViewSchema } from '../state/memory/view.ts'
import { businessQuery, given, idParams, memoriesQuery, ofUserQuery } from './parameters.ts'
import type { App } from './route.ts'
import { pageSchema } from './wire.ts'

const tag = 'memories'

/** What is remembered of a user, and forgetting it. */
export const memoriesRoutes = (app: App): void => {
  app.get('/v1/memories', {
    schema: { querystring: memoriesQuery },
    config: {
      doc: {
        id: 'listMemories',
        tag,
        summary:
          'Lists what is remembered of a user, the latest first, or what has to do with a query, the best first',
        description: 'With query the answer is one page of at most limit memories, each with its relevance.',
        role: 'read',
        answers: { 200: { description: 'One page', schema: pageSchema(memoryViewSchema) } },
      },
    },
    handler: async ({ business, signal, query: { business_id: _, query, ...filter } }) => {
      if (query === undefined) return business.memories.list(given(filter))
      if (filter.cursor !== undefined) throw cursorBesideQuery()
      const data = await business.memories.search({ query, ...given(filter) }, signal)
      return { data, next_cursor: null }
    },
  })

  app.get('/v1/memories/export', {
    schema: { querystring: ofUserQuery },
    config: {
      doc: {
        id: 'exportMemories',
        tag,
        summary: 'Everything remembered and known of a user, with what is no longer true',
        description:
          'data: his memories. profile: the fields of his profile, learned or set by an admin, with the session and run that ' +
          'taught each, and when. summaries: what was written down of his sessions. The sessions themselves: GET /v1/sessions.',
        role: 'read',
        answers: {
          200: {
            description: 'All of it',
            schema: pageSchema(memoryViewSchema).extend(knownSchema.shape),
          },
        },
      },
    },
    handler: async ({ business, query: { user_id } }, reply) => {
      const { memories } = business
      const [data, known] = await Promise.all([memories.export(user_id), memories.known(user_id)])
      reply.header('content-disposition', 'attachment; filename="memories.json"')
      return { data, next_cursor: null, ...known }
    },
  })

  app.delete('/v1/memories', {
    schema: { querystring: ofUserQuery },
    config: {
      doc: {
        id: 'deleteMemories',
        tag,
        summary: 'Forgets everything remembered and learned of a user',
        description:
          'Also the fields of his profile that were learned, the summaries of his sessions, and what his runs so far, ended or ' +
          'open, were about to teach. The sessions themselves, and what an admin has set of the profile, stay.',
        role: 'submit',
        answers: { 204: { description: 'Nothing is remembered of him' } },
      },
    },
    handler: async ({ business, query: { user_id } }, reply) => {
      await business.memories.forgetAll(user_id)
      return reply.code(204).send()
    },
  })

  app.delete('/v1/memories/:id', {
    schema: { params: idParams, querystring: businessQuery },
    config: {
      doc: {
        id: 'deleteMemory',
        tag,
        summary:
          'Forgets a memory for good, with those it took the place of and the learned fields of the profile that say the same',
        description:
          'What his runs so far, ended or open, were about to teach is not learned, and summaries of sessions that tell it are ' +
          'cleared. What he says from now on is learned again.',
        role: 'submit',
        answers: { 204: { description: 'It is gone' } },
        problems: ['not_found'],
      },
    },
    handler: async ({ business, params: { id } }, reply) => {
      if (await business.memories.forget(id)) return reply.code(204).send()
      throw new MasonError('not_found', `there is no memory "${id}"`, {
        remedy: 'GET /v1/memories?user_id= lists what is remembered of a user',
      })
    },
  })
}

const cursorBesideQuery = (): MasonError =>
  new MasonError('invalid_request', 'a query is answered with one page', {
    remedy: 'leave out cursor, or query',
    detail: { errors: [{ pointer: '/cursor', detail: 'cannot stand beside query' }] },
  })
