import type { Metrics } from '../../../infra/telemetry/metrics.ts'
import { HttpError } from '../../../routes/problems.ts'
import type { App } from '../../../routes/route.ts'
import { MasonError } from '../../../state/errors.ts'
import type { Runtime } from '../../api.ts'
import { toAuditEntry } from './audit-entry.ts'
import { type Authenticate, checkHost, checkRole, isRead, resolveBusinessId } from './auth.ts'
import { requestPath } from './error-responses.ts'
import { parseFormBody } from './form-body.ts'
import { createLargeBodies, largeBytes, type Step, stepAtOnce } from './large-bodies.ts'
import type { OpenResponses } from './open-responses.ts'
import { discardUnreadBody, nameCaller, parseJsonBody } from './request-body.ts'
import { refuseFields, validateRequest } from './request-validation.ts'
import { type SignIn, toPrincipal } from './sign-in.ts'

/** Adds the request id to every response, reads what is left of its body, and counts and logs every request. */
export const observeRequests = (app: App, open: OpenResponses, metrics: Pick<Metrics, 'request'>): void => {
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id)
    open.track(reply.raw)
  })
  app.addHook('onSend', async ({ raw }, reply) => {
    await discardUnreadBody(raw)
    // what is still to come would occupy the connection
    if (raw.complete === false) reply.header('connection', 'close')
  })
  app.addHook('onResponse', async (request, reply) => {
    const { url: route = 'unknown', config } = request.routeOptions
    if (config?.doc?.tag !== 'events')
      metrics.request(route, request.method, reply.statusCode, reply.elapsedTime)
    request.log.info(
      { method: request.method, path: requestPath(request), status: reply.statusCode, ms: reply.elapsedTime },
      'answered',
    )
  })
}

/** How the caller of a request is found. */
type Callers = {
  authenticate: Authenticate
  /** The same without counting failed tokens. */
  checkToken: Authenticate
  /** By the cookie of the console; null where it does not count. */
  signIn: SignIn | null
}

/**
 * The steps of a request before its handler: authentication and role before any body is read; then the JSON of the body,
 * validation of all parts together, and the business. Every route under /v1 and /admin/v1 must name its role.
 */
export const prepareRequests = (
  app: App,
  open: OpenResponses,
  runtime: Runtime,
  { authenticate, checkToken, signIn }: Callers,
): void => {
  const readLargeBody = createLargeBodies()
  app.decorateRequest('principal', null)
  app.decorateRequest('checkAgain', null)
  app.decorateRequest('usesCookie', false)
  app.decorateRequest('business')
  app.addHook('onRoute', (route) => {
    const { url, config, handler } = route
    if (/^\/(admin\/)?v1/.test(url) && !config?.doc?.role)
      throw new MasonError('internal', `the route ${url} does not name the role it needs`)
    // what an admin changes is logged
    if (config?.doc?.role === 'operator')
      route.handler = function (request, reply) {
        const handle = () => handler.call(this, request, reply)
        return isRead(request.method)
          ? handle()
          : runtime.admin.audit.run(toAuditEntry(request), async () => handle())
      }
  })
  app.addHook('onRequest', async (request) => {
    checkHost(request)
    if (open.closing)
      throw new HttpError('shutting_down', 'this server is about to stop', { remedy: 'try again' })
    const role = request.routeOptions.config?.doc?.role
    if (!role) return
    const secret = (await signIn?.findSecret(request)) ?? null
    if (signIn && secret !== null) {
      request.usesCookie = true
      request.principal = toPrincipal(await signIn.authenticate(request, secret))
      request.checkAgain = async () => checkRole(toPrincipal(await signIn.checkAgain(secret)), role)
    } else {
      request.principal = await authenticate(request)
      request.checkAgain = async () => checkRole(await checkToken(request), role)
    }
    checkRole(request.principal, role)
    if (request.principal.kind === 'token') await runtime.countRequest(request.principal.business_id)
  })
  app.addHook('onSend', async ({ usesCookie }, reply) => {
    if (usesCookie) reply.header('cache-control', 'no-store')
  })
  app.addHook('preValidation', async (request) => {
    const { schema, config } = request.routeOptions
    const read = async (step: Step): Promise<void> => {
      if (schema?.body)
        request.body = config.doc?.form
          ? await parseFormBody(request)
          : await parseJsonBody(request, config.doc ?? {}, step)
      else if (config.doc?.role && config.doc.role !== 'agent' && Buffer.isBuffer(request.body))
        request.body = refuseFields(await parseJsonBody(request, { bodyOptional: true }, step))
      if (schema) await validateRequest(request, step)
    }
    const isLarge = Buffer.isBuffer(request.body) && request.body.length > largeBytes
    await (isLarge ? readLargeBody(nameCaller(request), read) : read(stepAtOnce))
    if (request.principal && config.doc?.role !== 'operator')
      request.business = runtime.of(resolveBusinessId(request.principal, request.query, request.body))
  })
}
