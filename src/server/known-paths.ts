import type { FastifyRequest } from 'fastify'
import { sendOpenAIError } from './door/errors.ts'
import { nothingHere } from './error-replies.ts'
import { HttpError } from './problems.ts'
import type { App } from './route.ts'

type KnownPath = { pattern: RegExp; methods: Set<string>; isDoor: boolean }

/** Makes unknown paths 404 and known ones under another method 405 with Allow. Register before any route. */
export const answerUnknownPaths = (app: App): void => {
  const paths = new Map<string, KnownPath>()
  app.addHook('onRoute', ({ url, method, config }) => {
    const isDoor = config?.doc?.errorBody !== undefined
    const known = paths.get(url) ?? { pattern: patternOf(url), methods: new Set(), isDoor }
    for (const name of [method].flat()) known.methods.add(name)
    paths.set(url, known)
  })
  app.setNotFoundHandler((request, reply) => {
    const here = pathsAt(paths.values(), request)
    const allowed = [...new Set(here.flatMap(({ methods }) => [...methods]))].sort()
    if (allowed.length === 0 || allowed.includes(request.method)) throw nothingHere(request)
    const fault = new HttpError('method_not_allowed', `${request.method} cannot be used here`, {
      remedy: `use ${allowed.join(' or ')}`,
      headers: { allow: allowed.join(', ') },
    })
    if (!here.some(({ isDoor }) => isDoor)) throw fault
    sendOpenAIError(fault, request, reply)
  })
}

const patternOf = (url: string): RegExp => {
  const escaped = url.replace(/[.+?^${}()|[\]\\]/g, '\\$&')
  return new RegExp(`^${escaped.replace(/:[A-Za-z0-9_]+/g, '[^/]+').replace(/\*/g, '.*')}/?$`)
}

const pathsAt = (paths: Iterable<KnownPath>, request: FastifyRequest): KnownPath[] => {
  const path = request.url.split('?', 1)[0] ?? ''
  return [...paths].filter(({ pattern }) => pattern.test(path))
}
