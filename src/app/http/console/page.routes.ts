import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { MasonError } from '../../../state/errors.ts'
import type { App } from '../plumbing/route.ts'

/** No script, style or request of another origin, no inline code, and no text that turns into code. */
const contentPolicy = [
  ["default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' blob: data:"],
  ["media-src 'self' blob:", "font-src 'self'", "connect-src 'self'", "base-uri 'none'"],
  ["form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"],
]
  .flat()
  .join('; ')

const pageHeaders = {
  'content-security-policy': contentPolicy,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
}

const notBuilt = `The console is not built.
-> run "npm run build:console" in the folder of Mason, then load this page again. Installed packages have it built.
`

/**
 * Serves the built console in `folder`: its hashed files, compressed where the browser takes that, and index.html for every
 * deep link. `base` is the path under which a proxy has this server, '' for none.
 */
export const consolePageRoutes = async (
  app: App,
  { folder, base }: { folder: string; base: string },
): Promise<void> => {
  const { default: fastifyStatic } = await import('@fastify/static')
  await app.register(async (scope) => {
    scope.addHook('onRequest', async (request, reply) => {
      reply.headers(pageHeaders)
      if (!isPlainPath(request))
        throw new MasonError('not_found', 'there is no page at this path', { remedy: 'open /console' })
    })
    await scope.register(fastifyStatic, {
      root: join(folder, 'assets'),
      prefix: '/console/assets/',
      decorateReply: false,
      index: false,
      dotfiles: 'ignore',
      suppressWarning: true,
      preCompressed: true,
      immutable: true,
      maxAge: '365d',
    })
    const sendPage = async (_request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
      const page = await readPage(folder, base)
      reply.header('cache-control', 'no-store')
      return page === null
        ? reply.code(404).type('text/plain; charset=utf-8').send(notBuilt)
        : reply.type('text/html; charset=utf-8').send(page)
    }
    scope.get('/console', sendPage)
    scope.get('/console/*', sendPage)
  })
}

/** Without dot segments, and without characters that become `/`, `\` or NUL: no browser and no link of the page has such. */
const isPlainPath = ({ raw }: FastifyRequest): boolean => {
  const path = raw.url?.split('?', 1)[0] ?? ''
  return !/%(2f|5c|00)|\\/i.test(path) && !path.split('/').some((part) => /^(\.|%2e){1,2}$/i.test(part))
}

/** index.html with the addresses that it has under this base. Null: the console is not built. */
const readPage = async (folder: string, base: string): Promise<string | null> => {
  const page = await readFile(join(folder, 'index.html'), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
  return (
    page
      ?.replaceAll('"./assets/', `"${base}/console/assets/`)
      .replace(/<head>/i, `<head>\n    <meta name="mason-base" content="${base}">`) ?? null
  )
}
