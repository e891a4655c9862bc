import type { IncomingMessage } from 'node:http'
import fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify'
import { defaultBodyMemoryMb } from '../../infra/config/settings.ts'
import { toPackagePath } from '../../infra/lib/package-path.ts'
import type { App } from '../../routes/route.ts'
import type { Runtime } from '../api.ts'
import { accountsRoutes } from './admin/accounts.routes.ts'
import { auditRoutes } from './admin/audit.routes.ts'
import { operationsRoutes } from './admin/operations.routes.ts'
import { registryRoutes } from './admin/registry.routes.ts'
import { scenariosRoutes } from './admin/scenarios.routes.ts'
import { vendorsRoutes } from './admin/vendors.routes.ts'
import { consolePageRoutes } from './console/page.routes.ts'
import { consoleSessionRoutes } from './console/session.routes.ts'
import { docsRoutes } from './docs.routes.ts'
import { filesRoutes } from './files.routes.ts'
import { graphRoutes } from './graph.routes.ts'
import { healthRoutes } from './health.routes.ts'
import { inputRequestsRoutes } from './input-requests.routes.ts'
import { memoriesRoutes } from './memories.routes.ts'
import { type Authenticate, createAuthenticate, findBearerToken } from './plumbing/auth.ts'
import type { BodyMemory } from './plumbing/body-budget.ts'
import {
  replyToClientError,
  replyToUnknownPaths,
  sendFrameworkProblem,
  sendProblem,
} from './plumbing/error-responses.ts'
import { createFailedTokens } from './plumbing/failed-tokens.ts'
import { createOpenResponses } from './plumbing/open-responses.ts'
import { type BodyTimes, limitBodies } from './plumbing/request-body.ts'
import { observeRequests, prepareRequests } from './plumbing/request-hooks.ts'
import { readRequestId } from './plumbing/request-id.ts'
import { allowOrigins, sendSecurityHeaders } from './plumbing/response-headers.ts'
import type { ServerContext } from './plumbing/server-context.ts'
import { createSignIn } from './plumbing/sign-in.ts'
import { createRouteServer } from './route-server.ts'
import { runEventsRoutes } from './run-events.routes.ts'
import { runsRoutes } from './runs.routes.ts'
import type { ServeOptions } from './serve-options.ts'
import { sessionsRoutes } from './sessions.routes.ts'

const megabyte = 1024 * 1024
const defaultBodyMemory: BodyMemory = {
  processBytes: defaultBodyMemoryMb.process * megabyte,
  tokenBytes: defaultBodyMemoryMb.token * megabyte,
}

/** What a server needs: the runtime it serves, and how it authenticates, logs and closes. */
export type AppOptions = Omit<ServeOptions, 'port' | 'host'> & {
  runtime: Runtime
  /** Where the console is built; absent: in this package. */
  consoleFolder?: string
  /** Gets one line per request, and internal errors; never bodies or tokens. */
  logger?: FastifyBaseLogger
  /** Between two comments on a stream of events. */
  keepAliveMs?: number
  /** How long a call of the OpenAI-compatible endpoint waits between its tries, in all. Default 2 s. */
  maxWaitMs?: number
  /** How long closing waits for responses in progress. */
  drainMs?: number
  /** The memory of request bodies in flight, and how long they may take. */
  bodyMemory?: BodyMemory
  bodyTimes?: BodyTimes
}

/** The HTTP server, not listening yet. `close()` ends streams and waits at once and lets short requests finish. */
export const createApp = async (options: AppOptions): Promise<FastifyInstance> => {
  const { runtime, auth, adminToken, corsOrigins = [], keepAliveMs = 15_000, drainMs = 5_000 } = options
  const {
    maxWaitMs = 2_000,
    bodyMemory = defaultBodyMemory,
    bodyTimes = { idleMs: 30_000, wholeMs: 300_000 },
  } = options
  const open = createOpenResponses()
  const { metrics } = runtime
  metrics.onScrape(() => metrics.streams(open.streams))
  const server: ServerContext = { ...createRouteServer(open, keepAliveMs, maxWaitMs), runtime }
  const base = new URL(runtime.publicOrigin).pathname.replace(/\/$/, '')
  const app = createServer(options.logger, base, options.trustedProxies ?? [])

  replyToUnknownPaths(app)
  observeRequests(app, open, metrics)
  await sendSecurityHeaders(app)
  if (corsOrigins.length > 0) await allowOrigins(app, corsOrigins)
  const checkToken = createAuthenticate(runtime, auth, adminToken, corsOrigins)
  const failures = createFailedTokens()
  const signIn = createSignIn(runtime, adminToken)
  const authenticate: Authenticate = (request, token = findBearerToken(request.headers.authorization)) =>
    auth === 'off' || token === undefined
      ? checkToken(request)
      : failures.guard(request, token, () => checkToken(request, token))
  const hasSignIn = auth === 'required' && options.console !== 'off'
  prepareRequests(app, open, runtime, { authenticate, checkToken, signIn: hasSignIn ? signIn : null })
  limitBodies(app, bodyMemory, bodyTimes)
  app.addHook('preClose', () => open.close(drainMs))

  docsRoutes(app, { auth, isOpen: options.docs !== 'off', base })
  healthRoutes(app, server, options.metrics ?? 'open')
  runsRoutes(app, server)
  runEventsRoutes(app, server)
  filesRoutes(app)
  inputRequestsRoutes(app)
  sessionsRoutes(app)
  graphRoutes(app, server)
  memoriesRoutes(app)
  accountsRoutes(app, server)
  auditRoutes(app, server)
  operationsRoutes(app, server)
  vendorsRoutes(app, server)
  registryRoutes(app, server)
  scenariosRoutes(app, server)
  await runtime.features.addRoutes(app, server)
  if (options.console !== 'off') {
    const parts = { auth, adminToken: adminToken || null, signIn, failures, authenticate, checkToken }
    consoleSessionRoutes(app, runtime, parts)
    await consolePageRoutes(app, { folder: options.consoleFolder ?? toPackagePath('dist', 'console'), base })
  }
  return app as unknown as FastifyInstance
}

/**
 * prepareRequests validates and parses all parts of a request together, and responses are written as they are: fastify
 * then does not load its own compilers, which takes it 100 ms.
 */
const schemaCompilers = {
  buildValidator: () => () => (value: unknown) => ({ value }),
  buildSerializer: () => () => (value: unknown) => JSON.stringify(value),
}

/** Behind a proxy that does not strip `base`, requests arrive with it. The host of an absolute address counts for nothing, as Host does. */
const createServer = (
  logger: FastifyBaseLogger | undefined,
  base: string,
  trustedProxies: readonly string[],
): App => {
  const app = fastify({
    ...(logger ? { loggerInstance: logger } : { logger: false }),
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    genReqId: readRequestId,
    trustProxy: trustedProxies.length > 0 && [...trustedProxies],
    rewriteUrl({ url = '/' }: IncomingMessage) {
      const path = url.replace(/^[a-z][a-z\d+.-]*:\/\/[^/?]*\/?/i, '/')
      return path.startsWith(`${base}/`) ? path.slice(base.length) : path
    },
    // node itself would respond without a problem document: see checkHost
    http: { requireHostHeader: false },
    forceCloseConnections: true,
    return503OnClosing: false,
    // for an upload that goes on; bodies have limits of their own
    requestTimeout: 3_600_000,
    routerOptions: { maxParamLength: 2000, ignoreTrailingSlash: true },
    frameworkErrors: sendFrameworkProblem,
    clientErrorHandler: replyToClientError,
    schemaController: { compilersFactory: schemaCompilers as never },
  }) as unknown as App
  app.setErrorHandler(sendProblem)
  // without this listener node itself responds to an unknown Expect header, without a problem document
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
  return app
}
