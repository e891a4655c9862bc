import type { Readable } from 'node:stream'
import fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyRequest,
  LogController,
} from 'fastify'
import type { Runtime } from '../runtime-api.ts'
import { adminBusinessesRoutes } from './admin/businesses.routes.ts'
import { registryRoutes } from './admin/registry.routes.ts'
import { scenariosRoutes } from './admin/scenarios.routes.ts'
import { adminTokensRoutes } from './admin/tokens.routes.ts'
import { adminUsageRoutes } from './admin/usage.routes.ts'
import { adminUsersRoutes } from './admin/users.routes.ts'
import { vendorsRoutes } from './admin/vendors.routes.ts'
import { createAuthenticate } from './auth.ts'
import { allowOrigins } from './cors.ts'
import { docsRoutes } from './docs.routes.ts'
import { doorRoutes } from './door/door.routes.ts'
import { answerClientError, sendFrameworkProblem, sendProblem } from './error-replies.ts'
import { healthRoutes } from './health.routes.ts'
import { readBody } from './json-body.ts'
import { answerUnknownPaths } from './known-paths.ts'
import { memoriesRoutes } from './memories.routes.ts'
import { createMetrics } from './metrics.ts'
import { createOpenReplies } from './open-replies.ts'
import { requestIdOf } from './request-id.ts'
import { admitRequests, watchRequests } from './request-steps.ts'
import type { App, ServerContext } from './route.ts'
import { runControlRoutes } from './run-control.routes.ts'
import { runEventsRoutes } from './run-events.routes.ts'
import { runStateRoutes } from './run-state.routes.ts'
import { runsRoutes } from './runs.routes.ts'
import { sendSecurityHeaders } from './security-headers.ts'
import { sessionsRoutes } from './sessions.routes.ts'

export type AppOptions = {
  runtime: Runtime
  /** `off` makes every caller the business `default`, and only localhost may call. */
  auth: 'required' | 'off'
  /** Acts for any business; without it there is no such token. */
  adminToken?: string | null
  /** Origins whose pages may call; `*` for all. */
  corsOrigins?: readonly string[]
  /** Gets one line a request and our own faults; never bodies or tokens. */
  logger?: FastifyBaseLogger
  /** Between two comments on a stream of events. */
  keepAliveMs?: number
  /** How long closing waits for requests that are being answered. */
  drainMs?: number
}

/** The HTTP server, not listening yet. `close()` ends streams and waits at once and lets short requests finish. */
export const createApp = async (options: AppOptions): Promise<FastifyInstance> => {
  const { runtime, auth, adminToken, corsOrigins = [], keepAliveMs = 15_000, drainMs = 5_000 } = options
  const open = createOpenReplies()
  const metrics = createMetrics(runtime, open)
  const server: ServerContext = { runtime, open, keepAliveMs }
  const app = createServer(options.logger)

  answerUnknownPaths(app)
  watchRequests(app, open, metrics)
  sendSecurityHeaders(app)
  if (corsOrigins.length > 0) allowOrigins(app, corsOrigins)
  admitRequests(app, open, runtime, createAuthenticate(runtime, auth, adminToken))
  app.addHook('preClose', () => open.close(drainMs))

  const documented = await docsRoutes(app, auth)
  healthRoutes(app, server, metrics)
  runsRoutes(app, server)
  runControlRoutes(app)
  runStateRoutes(app)
  runEventsRoutes(app, server)
  sessionsRoutes(app)
  memoriesRoutes(app)
  adminBusinessesRoutes(app, server)
  adminTokensRoutes(app, server)
  adminUsersRoutes(app, server)
  vendorsRoutes(app, server)
  registryRoutes(app, server)
  scenariosRoutes(app, server)
  adminUsageRoutes(app, server)
  doorRoutes(app, server)
  await documented()
  return app as unknown as FastifyInstance
}

const createServer = (logger: FastifyBaseLogger | undefined): App => {
  const app = fastify({
    ...(logger ? { loggerInstance: logger } : { logger: false }),
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    genReqId: requestIdOf,
    forceCloseConnections: true,
    return503OnClosing: false,
    requestTimeout: 300_000,
    routerOptions: { maxParamLength: 2000, ignoreTrailingSlash: true },
    frameworkErrors: sendFrameworkProblem,
    clientErrorHandler: answerClientError,
  }) as unknown as App
  app.setErrorHandler(sendProblem)
  // node answers what it was not told to expect by itself, without a problem document
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
  // checking and parsing are steps of ours, which see all parts of a request together
  app.setValidatorCompiler(() => (value: unknown) => ({ value }))
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (request: FastifyRequest, payload: Readable) =>
    readBody(payload, Number(request.headers['content-length'])),
  )
  return app
}
