import type { ZodType } from 'zod'
import { type DocumentedRoute, openApiDocument } from './openapi.ts'
import type { App } from './route.ts'

/**
 * /openapi.json and, for people, /docs. Call before any other route is registered; what it gives is called after the
 * last one. The pages of /docs are loaded here and nowhere else, so a worker never pays for them; the document is made
 * when it is first asked for, so that a start does not pay for it either.
 */
export const docsRoutes = async (app: App, auth: 'required' | 'off'): Promise<() => Promise<void>> => {
  const routes: DocumentedRoute[] = []
  let document: Record<string, unknown> | undefined
  const readDocument = (): Record<string, unknown> => {
    document ??= openApiDocument(routes, auth)
    return document
  }
  let text: string | undefined
  const readText = (): string => {
    text ??= JSON.stringify(readDocument())
    return text
  }
  app.addHook('onRoute', ({ method, url, config, schema }) => {
    const [name] = [method].flat()
    if (!config?.doc || name === undefined || name === 'HEAD') return
    routes.push({ method: name, url, doc: config.doc, schema: (schema ?? {}) as Record<string, ZodType> })
  })

  app.get('/openapi.json', {
    config: {
      doc: {
        id: 'getOpenApi',
        tag: 'operations',
        summary: 'This document',
        role: null,
        answers: { 200: { description: 'OpenAPI 3.1', type: 'application/json' } },
      },
    },
    handler: async (_request, reply) => reply.type('application/json; charset=utf-8').send(readText()),
  })

  app.get('/', {
    config: {
      doc: {
        id: 'getRoot',
        tag: 'operations',
        summary: 'Leads to the docs',
        role: null,
        answers: { 302: { description: 'To /docs' } },
      },
    },
    handler: async (_request, reply) => reply.redirect('/docs'),
  })

  return async () => {
    const [swagger, swaggerUi] = await Promise.all([
      import('@fastify/swagger'),
      import('@fastify/swagger-ui'),
    ])
    // of the mode that gathers routes only what it gives is used: it asks for that late
    await app.register(swagger.default, { openapi: {}, transformObject: readDocument as never })
    await app.register(swaggerUi.default, {
      routePrefix: '/docs',
      uiConfig: { url: '/openapi.json', persistAuthorization: false },
    })
  }
}
