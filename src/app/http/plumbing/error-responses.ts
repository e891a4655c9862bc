import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyError, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { HttpError, toProblemResponse } from '../../../routes/problems.ts'
import type { App } from '../../../routes/route.ts'
import { MasonError } from '../../../state/errors.ts'
import { createRequestId } from './request-id.ts'

/** Sends the problem of a thrown error. Internal errors are logged under the request id, which the response has too. */
export const sendProblem = (error: unknown, request: FastifyRequest, reply: FastifyReply): void => {
  const { problem, headers } = toProblemResponse(error)
  if (problem.status === 500) request.log.error({ err: error }, 'a request failed')
  else if (problem.status > 500) request.log.warn({ err: error }, 'a request could not be served')
  void reply
    .code(problem.status)
    .headers(headers)
    .header('content-type', 'application/problem+json; charset=utf-8')
    .serializer(JSON.stringify)
    .send({ ...problem, instance: requestPath(request), request_id: request.id })
}

/** Sends the problem of an error that fastify finds before any hook, such as broken percent-encoding in the path. */
export const sendFrameworkProblem = (
  error: FastifyError,
  request: FastifyRequest,
  reply: FastifyReply,
): void => {
  reply.headers({ 'x-content-type-options': 'nosniff', 'x-request-id': request.id })
  sendProblem(toKnownError(error, request), request, reply)
}

const toKnownError = (error: FastifyError, request: FastifyRequest): Error => {
  if (error.code === 'FST_ERR_MAX_PARAM_LENGTH') return unknownPath(request)
  if (error.code === 'FST_ERR_BAD_URL')
    return new HttpError('malformed_request', 'the percent-encoding of the path is broken')
  return error
}

const unknownPath = (request: FastifyRequest): MasonError =>
  new MasonError('not_found', `there is nothing at ${requestPath(request)}`, {
    remedy: 'GET /openapi.json lists every path',
    detail: { unknown_path: true },
  })

/** The path of a request without its query and the secret of a one-time link, cut to 500 characters: it is sent and logged. */
export const requestPath = (request: FastifyRequest): string =>
  request.url
    .split('?', 1)[0]
    ?.replace(/^\/+(consent|passkeys)\/.*/i, '/$1/…')
    .slice(0, 500) ?? ''

type ClientError = Error & { code?: string }

/** Writes a problem to the bare socket of a client whose bytes are not HTTP. */
export const replyToClientError = (error: ClientError, socket: Socket): void => {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const { problem } = toProblemResponse(toHttpError(error))
  const id = createRequestId()
  const body = JSON.stringify({ ...problem, instance: '', request_id: id })
  const head = [
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`,
    'content-type: application/problem+json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${id}`,
    'connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}

const toHttpError = ({ code }: ClientError): HttpError => {
  if (code === 'HPE_HEADER_OVERFLOW') return new HttpError('headers_too_large', 'the headers are too large')
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new HttpError('request_timeout', 'the request did not arrive in time')
  return new HttpError('malformed_request', 'this is not HTTP')
}

type KnownRoute = Pick<RouteOptions, 'url' | 'method'> & {
  pattern: RegExp
  errorHandler: RouteOptions['errorHandler'] | undefined
}

/**
 * Sends 404 for unknown paths and 405 with Allow for known paths under another method, by the error handler of the route, or of
 * one beside it, that has its own. Call before any route is registered.
 */
export const replyToUnknownPaths = (app: App): void => {
  const routes: KnownRoute[] = []
  app.addHook('onRoute', ({ url, method, errorHandler }) => {
    // the route of @fastify/cors for preflights matches every path
    if (url !== '*') routes.push({ url, method, errorHandler, pattern: toPattern(url) })
  })
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split('?', 1)[0] ?? ''
    const matches = routes.filter(({ pattern }) => pattern.test(path))
    const allowed = [...new Set(matches.flatMap(({ method }) => method))].sort()
    const isKnown = allowed.length > 0 && !allowed.includes(request.method)
    const error = isKnown
      ? new HttpError('method_not_allowed', `${request.method} cannot be used here`, {
          remedy: `use ${allowed.join(' or ')}`,
          headers: { allow: allowed.join(', ') },
        })
      : unknownPath(request)
    const nearest = isKnown ? matches : findNearest(routes, path)
    const ownHandler = nearest.find(({ errorHandler }) => errorHandler)?.errorHandler
    if (!ownHandler) throw error
    return ownHandler.call(app, error, request, reply)
  })
}

/** The routes in the deepest folder of a path that has any: who asks for a path beside them reads their errors. */
const findNearest = (routes: readonly KnownRoute[], path: string): readonly KnownRoute[] => {
  const folder = path.slice(0, path.lastIndexOf('/'))
  if (folder === '') return []
  const near = routes.filter(({ url }) => url.startsWith(`${folder}/`))
  return near.length > 0 ? near : findNearest(routes, folder)
}

const toPattern = (url: string): RegExp => {
  const escaped = url.replace(/[.+?^${}()|[\]\\]/g, '\\$&')
  return new RegExp(`^${escaped.replace(/:[A-Za-z0-9_]+/g, '[^/]+').replace(/\*/g, '.*')}/?$`)
}
