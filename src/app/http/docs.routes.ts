import type { ZodType } from 'zod'
import { apiTitle, type DocumentedRoute, openApiDocument } from './plumbing/openapi.ts'
import { type App, createDocs } from './plumbing/route.ts'

const describe = createDocs('operations')

/**
 * Registers /openapi.json and collects every route that is registered after it; call the result after the last one, which
 * registers /docs. The pages of /docs are loaded here only, so that a worker never loads them. The document is built at its
 * first request, so that a start does not pay for it.
 * With `isOpen` false there is neither.
 */
export const docsRoutes = async (
  app: App,
  auth: 'required' | 'off',
  isOpen: boolean,
  base: string,
): Promise<() => Promise<void>> => {
  if (!isOpen) return async () => {}
  const routes: DocumentedRoute[] = []
  let document: Record<string, unknown> | undefined
  let text: string | undefined
  const readDocument = (): Record<string, unknown> => {
    document ??= openApiDocument(routes, auth)
    return document
  }
  app.addHook('onRoute', ({ method, url, config, schema }) => {
    const [name] = [method].flat()
    if (!config?.doc || name === undefined || name === 'HEAD') return
    routes.push({ method: name, url, doc: config.doc, schema: (schema ?? {}) as Record<string, ZodType> })
  })

  app.get('/openapi.json', {
    config: describe(null, 'getOpenApi', 'This document', {
      responses: { 200: { description: 'OpenAPI 3.1', type: 'application/json' } },
    }),
    handler: async (_request, reply) => {
      text ??= JSON.stringify(readDocument())
      return reply.type('application/json; charset=utf-8').send(text)
    },
  })

  app.get('/', {
    config: describe(null, 'getRoot', 'Redirects to the docs', {
      responses: { 302: { description: 'To /docs' } },
    }),
    handler: async (_request, reply) => reply.redirect(`${base}/docs`),
  })

  return async () => {
    const [swagger, swaggerUi] = await Promise.all([
      import('@fastify/swagger'),
      import('@fastify/swagger-ui'),
    ])
    // the user interface reads the document from this plugin; decision record 34 says why we build it
    await app.register(swagger.default, { openapi: {}, transformObject: readDocument as never })
    await app.register(swaggerUi.default, {
      routePrefix: '/docs',
      theme: { title: apiTitle },
      uiConfig: { url: '/openapi.json', persistAuthorization: false },
    })
  }
}
