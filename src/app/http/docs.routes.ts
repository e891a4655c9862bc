import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { ZodType } from 'zod'
import { type App, createDocs } from '../../routes/route.ts'
import { openOnce } from '../../state/open-once.ts'
import { apiTitle, type DocumentedRoute, openApiDocument } from './plumbing/openapi.ts'

const describe = createDocs('operations')

/**
 * Registers /openapi.json, which has every route that is registered after it, and /docs. The document is built and the pages are
 * loaded at their first request, so that a start does not pay for them. With `isOpen` false there is neither.
 */
export const docsRoutes = (
  app: App,
  { auth, isOpen, base }: { auth: 'required' | 'off'; isOpen: boolean; base: string },
): void => {
  if (!isOpen) return
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

  const pages = openOnce(() => openPages(readDocument))
  // of swagger-ui, by a server of their own: a server takes no plugin after its start
  const showPage = async (
    { method, url, headers }: FastifyRequest,
    reply: FastifyReply,
  ): Promise<unknown> => {
    const page = await (await pages()).inject({ method: method as 'GET', url, headers })
    if (page.statusCode === 404) return reply.callNotFound()
    const { connection: _, 'transfer-encoding': __, ...pageHeaders } = page.headers
    return reply.code(page.statusCode).headers(pageHeaders).send(page.rawPayload)
  }
  app.get('/docs', showPage)
  app.get('/docs/*', showPage)
}

const openPages = async (readDocument: () => Record<string, unknown>): Promise<FastifyInstance> => {
  const [{ fastify }, swagger, swaggerUi] = await Promise.all([
    import('fastify'),
    import('@fastify/swagger'),
    import('@fastify/swagger-ui'),
  ])
  const pages = fastify()
  // the user interface reads the document from this plugin; decision 34 says why we build it
  await pages.register(swagger.default, { openapi: {}, transformObject: readDocument as never })
  await pages.register(swaggerUi.default, {
    routePrefix: '/docs',
    theme: { title: apiTitle },
    uiConfig: { url: '/openapi.json', persistAuthorization: false },
  })
  return pages
}
