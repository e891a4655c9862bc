import type { FastifyRequest } from 'fastify'
import { nothingHere } from './error-replies.ts'
import { HttpError } from './problems.ts'
import type { App } from './route.ts'

type KnownPath = { pattern: RegExp; methods: Set<string> }

/** Makes unknown paths 404 and known ones under another method 405 with Allow. Register before any route. */
export const answerUnknownPaths = (app: App): void => {
  const paths = new Map<string, KnownPath>()
  app.addHook('onRoute', ({ url, method }) => {
    const known = paths.get(url) ?? { pattern: patternOf(url), methods: new Set() }
    for (const name of [method].flat()) known.methods.add(name)
    paths.set(url, known)
  })
  app.setNotFoundHandler((request) => {
    const allowed = methodsAt(paths.values(), request)
    if (allowed.length === 0 || allowed.includes(request.method)) throw nothingHere(request)
    throw new HttpError('method_not_allowed', `${request.method} cannot be used here`, {
      remedy: `use ${allowed.join(' or ')}`,
      headers: { allow: allowed.join(', ') },
    })
  })
}

const patternOf = (url: string): RegExp => {
  const escaped = url.replace(/[.+?^${}()|[\]\\]/g, '\\$&')
  return new RegExp(`^${escaped.replace(/:[A-Za-z0-9_]+/g, '[^/]+').replace(/\*/g, '.*')}/?$`)
}

const methodsAt = (paths: Iterable<KnownPath>, request: FastifyRequest): string[] => {
  const path = request.url.split('?', 1)[0] ?? ''
  const methods = [...paths]
    .filter(({ pattern }) => pattern.test(path))
    .flatMap((known) => [...known.methods])
  return [...new Set(methods)].sort()
}
