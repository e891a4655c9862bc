import { Readable } from 'node:stream'
import { businessQuery, createIdParams, omitUndefined, pageSchema } from '../../routes/parameters.ts'
import { type App, createDocs, respondsWith } from '../../routes/route.ts'
import { MasonError } from '../../state/errors.ts'
import { memoryViewSchema, userKnowledgeSchema } from '../../state/memory-view.ts'
import { createFieldsError } from '../../state/resource-schema.ts'
import { memoriesQuery, userQuery } from './parameters.ts'

const describe = createDocs('memories')

/** The items of a JSON list, with the commas between them. */
async function* toJsonItems(items: AsyncIterable<unknown>): AsyncGenerator<string> {
  let comma = ''
  for await (const item of items) {
    yield comma + JSON.stringify(item)
    comma = ','
  }
}

/** Memories of a user: list, search, export, delete. */
export const memoriesRoutes = (app: App): void => {
  app.get('/v1/memories', {
    schema: { querystring: memoriesQuery },
    config: describe(
      'read',
      'listMemories',
      'Lists the memories of a user, the latest first, or those that match a query, the best first',
      {
        description:
          'With query the response is one page of at most limit memories, each with its relevance.',
        responses: { 200: { description: 'One page', schema: pageSchema(memoryViewSchema) } },
      },
    ),
    handler: async ({ business, signal, query: { business_id: _, query, ...filter } }) => {
      if (query === undefined) return business.memories.list(omitUndefined(filter))
      if (filter.cursor !== undefined)
        throw createFieldsError({ pointer: '/cursor', detail: 'must be left out: a query returns one page' })
      const data = await business.memories.search({ query, ...omitUndefined(filter) }, signal)
      return { data, next_cursor: null }
    },
  })

  app.get('/v1/memories/export', {
    schema: { querystring: userQuery },
    config: describe(
      'read',
      'exportMemories',
      'Exports all memories and the profile of a user, with what is no longer true',
      {
        description:
          'data: their memories. profile: the fields of their profile, learned or set by an admin, with the session and run that ' +
          'taught each, and when. summaries: the summaries of their sessions. The sessions themselves: GET /v1/sessions.',
        ...respondsWith(200, 'All of it', pageSchema(memoryViewSchema).extend(userKnowledgeSchema.shape)),
      },
    ),
    handler: async ({ business: { memories }, query: { user_id } }, reply) => {
      const profile = JSON.stringify(await memories.profile(user_id))
      async function* writeParts() {
        yield '{"data":['
        yield* toJsonItems(memories.export(user_id))
        yield `],"next_cursor":null,"profile":${profile},"summaries":[`
        yield* toJsonItems(memories.summaries(user_id))
        yield ']}'
      }
      return reply
        .header('content-disposition', 'attachment; filename="memories.json"')
        .type('application/json; charset=utf-8')
        .send(Readable.from(writeParts()))
    },
  })

  app.delete('/v1/memories', {
    schema: { querystring: userQuery },
    config: describe('delete', 'deleteMemories', 'Deletes all memories and learned fields of a user', {
      description:
        'Also the learned fields of their profile, the summaries of their sessions, and what their runs so far, ended or ' +
        'open, were about to teach. The sessions themselves, and profile fields set by an admin, stay.',
      responses: { 204: { description: 'All of it is deleted' } },
    }),
    handler: async ({ business, query: { user_id } }, reply) => {
      await business.memories.forgetAll(user_id)
      return reply.code(204).send()
    },
  })

  app.delete('/v1/memories/:id', {
    schema: { params: createIdParams('memory'), querystring: businessQuery },
    config: describe(
      'delete',
      'deleteMemory',
      'Deletes a memory for good, with those it replaced and the learned fields of the profile that say the same',
      {
        description:
          'What their runs so far, ended or open, were about to teach is not learned, and summaries of sessions that contain it ' +
          'are cleared. What the user says from now on is learned again.',
        responses: { 204: { description: 'It is deleted' } },
      },
    ),
    handler: async ({ business, params: { id } }, reply) => {
      if (await business.memories.forget(id)) return reply.code(204).send()
      throw new MasonError('not_found', `there is no memory "${id}"`, {
        remedy: 'GET /v1/memories?user_id= lists the memories of a user',
      })
    },
  })
}
