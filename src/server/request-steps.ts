import type { Runtime } from '../runtime-api.ts'
import { MasonError } from '../state/errors.ts'
import { type Authenticate, businessOf, checkRole } from './auth.ts'
import { checkRequest } from './check-request.ts'
import { pathOf } from './error-replies.ts'
import { parseJsonBody } from './json-body.ts'
import type { Metrics } from './metrics.ts'
import type { OpenReplies } from './open-replies.ts'
import { HttpError } from './problems.ts'
import type { App } from './route.ts'
import { dropUnreadBody } from './unread-body.ts'

/** Gives every answer its request id and a sender that still listens, and counts and logs every request. */
export const watchRequests = (app: App, open: OpenReplies, metrics: Metrics): void => {
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id)
    open.track(reply.raw)
  })
  app.addHook('onSend', async ({ raw }) => dropUnreadBody(raw))
  app.addHook('onResponse', async (request, reply) => {
    const { url: route = 'unknown', config } = request.routeOptions
    const seconds = reply.elapsedTime / 1000
    if (config?.doc?.tag !== 'events')
      metrics.observeRequest(route, request.method, reply.statusCode, seconds)
    request.log.info(
      { method: request.method, path: pathOf(request), status: reply.statusCode, ms: reply.elapsedTime },
      'answered',
    )
  })
}

/**
 * The way of a request to its handler: who calls and whether they may, before any body is read; then its JSON, all of
 * its checks together, and the business it is about. Every route under /v1 and /admin/v1 must say which role it needs.
 */
export const admitRequests = (
  app: App,
  open: OpenReplies,
  runtime: Runtime,
  authenticate: Authenticate,
): void => {
  app.decorateRequest('caller', null)
  app.decorateRequest('business')
  app.addHook('onRoute', ({ url, config }) => {
    if (/^\/(admin\/)?v1/.test(url) && !config?.doc?.role)
      throw new MasonError('internal', `the route ${url} does not say which role it needs`)
  })
  app.addHook('onRequest', async (request) => {
    if (open.closing)
      throw new HttpError('shutting_down', 'this server is about to stop', { remedy: 'try again' })
    const role = request.routeOptions.config?.doc?.role
    if (!role) return
    request.caller = await authenticate(request)
    checkRole(request.caller, role)
  })
  app.addHook('preValidation', async (request) => {
    const { schema, config } = request.routeOptions
    if (schema?.body) request.body = parseJsonBody(request, config.doc?.bodyOptional ?? false)
    if (schema) checkRequest(request)
    if (request.caller && config.doc?.role !== 'operator')
      request.business = runtime.of(businessOf(request.caller, request.query, request.body))
  })
}
