import { MasonError } from '../state/errors.ts'
import { runtimeStateSchema } from '../state/runtime-state.ts'
import { blobParams, businessQuery, idParams, stateQuery } from './parameters.ts'
import type { App } from './route.ts'
import { noSuchRun } from './runs.routes.ts'

const tag = 'runs'

/** The data of a run: its RuntimeState and the large results kept beside it. */
export const runStateRoutes = (app: App): void => {
  app.get('/v1/runs/:id/state', {
    schema: { params: idParams, querystring: stateQuery },
    config: {
      doc: {
        id: 'getRunState',
        tag,
        summary: "The RuntimeState up to the run's turn",
        description: 'Large results stand in it in full, or with inline=false as {blob, bytes, head}.',
        role: 'read',
        answers: { 200: { description: 'The state', schema: runtimeStateSchema } },
        problems: ['not_found'],
      },
    },
    handler: async ({ business, params: { id }, query: { inline } }) => {
      const state = await business.state(id, inline)
      if (!state) throw noSuchRun(id)
      return state
    },
  })

  app.get('/v1/runs/:id/blobs/:sha256', {
    schema: { params: blobParams, querystring: businessQuery },
    config: {
      doc: {
        id: 'getRunBlob',
        tag,
        summary: 'The bytes of a large result',
        role: 'read',
        answers: {
          200: {
            description: 'The bytes',
            type: 'application/octet-stream',
            headers: { etag: 'The hash, quoted' },
          },
          304: { description: 'The bytes of If-None-Match are these' },
        },
        problems: ['not_found'],
      },
    },
    handler: async ({ business, params: { id, sha256 }, headers }, reply) => {
      const bytes = await business.blob(id, sha256)
      if (!bytes) throw new MasonError('not_found', `run "${id}" has no blob "${sha256}"`)
      const etag = `"${sha256}"`
      reply
        .header('etag', etag)
        .header('cache-control', 'private, max-age=31536000, immutable')
        .header('x-content-type-options', 'nosniff')
        .header('content-disposition', 'attachment')
      if (headers['if-none-match'] === etag) return reply.code(304).send()
      return reply.type('application/octet-stream').send(Buffer.from(bytes))
    },
  })
}
