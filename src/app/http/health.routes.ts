import { z } from 'zod'
import { type App, createDocs, respondsWith, type ServerContext } from './plumbing/route.ts'

const healthSchema = z.strictObject({
  ok: z.boolean(),
  checks: z.record(
    z.string(),
    z.union([
      z.strictObject({ ok: z.literal(true), ms: z.number() }),
      z.strictObject({ ok: z.literal(false), error: z.string() }),
    ]),
  ),
})

const describe = createDocs('operations')

/** Liveness, readiness and metrics of the process. Probes have no token; /metrics may ask for the admin's. */
export const healthRoutes = (
  app: App,
  { runtime }: ServerContext,
  access: 'open' | 'admin' | 'off',
): void => {
  app.get('/healthz', {
    config: describe(null, 'getLiveness', 'Reports that the process is alive', {
      ...respondsWith(200, 'The process is alive', z.strictObject({ ok: z.literal(true) })),
    }),
    handler: async () => ({ ok: true }),
  })

  app.get('/readyz', {
    config: describe(null, 'getReadiness', 'Checks that everything the server needs can be reached', {
      responses: {
        200: { description: 'The server is ready', schema: healthSchema },
        503: { description: 'The server is not ready; the checks name what fails', schema: healthSchema },
      },
    }),
    handler: async (request, reply) => {
      const health = await runtime.health().catch((error: unknown) => {
        request.log.error({ err: error }, 'health cannot be checked')
        return { ok: false, checks: { runtime: { ok: false, error: 'health cannot be checked' } } }
      })
      return reply
        .code(health.ok ? 200 : 503)
        .header('cache-control', 'no-store')
        .send(health)
    },
  })

  if (access === 'off') return
  app.get('/metrics', {
    config: describe(access === 'admin' ? 'operator' : null, 'getMetrics', 'Counters for Prometheus', {
      responses: { 200: { description: 'All names start with mason_', type: 'text/plain' } },
    }),
    handler: async (_request, reply) => {
      const { metrics } = runtime
      return reply.type(metrics.contentType).send(await metrics.text())
    },
  })
}
