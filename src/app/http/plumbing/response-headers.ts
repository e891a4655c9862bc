import cors from '@fastify/cors'
import helmet from '@fastify/helmet'
import type { App } from '../../../routes/route.ts'

/**
 * Sends helmet's security headers with every response. HTTPS is not forced, because most servers run behind a proxy or on
 * localhost: no HSTS, no `upgrade-insecure-requests`.
 */
export const sendSecurityHeaders = async (app: App): Promise<void> => {
  await app.register(helmet, {
    strictTransportSecurity: false,
    contentSecurityPolicy: { directives: { upgradeInsecureRequests: null } },
  })
}

/**
 * Lets pages of these origins call, `*` for all. Tokens are sent in a header, so credentials are not allowed. An OPTIONS
 * request that is no preflight of an allowed origin is routed like any other request.
 */
export const allowOrigins = async (app: App, origins: readonly string[]): Promise<void> => {
  await app.register(cors, {
    delegator: (request, done) => {
      const { origin, 'access-control-request-method': preflight } = request.headers
      const isAllowed = origin !== undefined && (origins.includes(origin) || origins.includes('*'))
      done(null, {
        origin: isAllowed ? origin : false,
        preflight: preflight !== undefined,
        methods: ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE', 'OPTIONS'],
        allowedHeaders:
          'authorization, content-type, idempotency-key, last-event-id, x-request-id, x-file-name, x-sha256, upload-length, upload-offset',
        exposedHeaders:
          'location, x-request-id, idempotent-replayed, retry-after, etag, upload-offset, upload-length',
        maxAge: 600,
      })
    },
  })
}
