import type { App } from './route.ts'

const methods = 'GET, POST, DELETE, OPTIONS'
const requestHeaders = 'authorization, content-type, idempotency-key, last-event-id, x-request-id'
const shownHeaders = 'location, x-request-id, idempotent-replayed, retry-after, etag'

/** Lets pages of these origins call, `*` those of all. Tokens go in a header, so no credentials are allowed. */
export const allowOrigins = (app: App, origins: readonly string[]): void => {
  app.addHook('onRequest', async (request, reply) => {
    const { origin } = request.headers
    reply.header('vary', 'Origin')
    if (origin === undefined || !(origins.includes(origin) || origins.includes('*'))) return
    reply.header('access-control-allow-origin', origin).header('access-control-expose-headers', shownHeaders)
    if (request.method !== 'OPTIONS' || !request.headers['access-control-request-method']) return
    return reply
      .code(204)
      .header('access-control-allow-methods', methods)
      .header('access-control-allow-headers', requestHeaders)
      .header('access-control-max-age', '600')
      .send()
  })
}
