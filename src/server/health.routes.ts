import { z } from 'zod'
import type { Metrics } from './metrics.ts'
import type { App, ServerContext } from './route.ts'

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

/** Whether the process lives, whether it can work, and what it counts. No token: probes and scrapers have none. */
export const healthRoutes = (app: App, { runtime }: ServerContext, metrics: Metrics): void => {
  const doc = { tag: 'operations', role: null }

  app.get('/healthz', {
    config: {
      doc: {
        ...doc,
        id: 'getLiveness',
        summary: 'Whether the process lives',
        answers: { 200: { description: 'It does', schema: z.strictObject({ ok: z.literal(true) }) } },
      },
    },
    handler: async () => ({ ok: true }),
  })

  app.get('/readyz', {
    config: {
      doc: {
        ...doc,
        id: 'getReadiness',
        summary: 'Whether everything the server needs can be reached',
        answers: {
          200: { description: 'It can', schema: healthSchema },
          503: { description: 'It cannot; the checks say what fails', schema: healthSchema },
        },
      },
    },
    handler: async (request, reply) => {
      const health = await runtime.health().catch((error: unknown) => {
        request.log.error({ err: error }, 'health cannot be told')
        return { ok: false, checks: { runtime: { ok: false, error: 'health cannot be told' } } }
      })
      return reply
        .code(health.ok ? 200 : 503)
        .header('cache-control', 'no-store')
        .send(health)
    },
  })

  app.get('/metrics', {
    config: {
      doc: {
        ...doc,
        id: 'getMetrics',
        summary: 'Counters for Prometheus',
        answers: { 200: { description: 'Names start with mason_', type: 'text/plain' } },
      },
    },
    handler: async (_request, reply) => reply.type(metrics.contentType).send(await metrics.text()),
  })
}
