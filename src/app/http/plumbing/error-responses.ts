import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyError, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { MasonError } from '../../../state/errors.ts'
import { HttpError, toProblemResponse } from './problems.ts'
import { createRequestId } from './request-id.ts'
import type { App } from './route.ts'

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

type KnownPath = { pattern: RegExp; methods: Set<string>; errorHandler: RouteOptions['errorHandler'] }

/**
 * Sends 404 for unknown paths and 405 with Allow for known paths under another method, by the route's own error handler
 * where it has one. Call before any route is registered.
 */
export const replyToUnknownPaths = (app: App): void => {
  const paths = new Map<string, KnownPath>()
  app.addHook('onRoute', ({ url, method, errorHandler }) => {
    // the route of @fastify/cors for preflights matches every path
    if (url === '*') return
    const known = paths.get(url) ?? { pattern: toPattern(url), methods: new Set(), errorHandler }
    for (const name of [method].flat()) known.methods.add(name)
    paths.set(url, known)
  })
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split('?', 1)[0] ?? ''
    const matches = [...paths.values()].filter(({ pattern }) => pattern.test(path))
    const allowed = [...new Set(matches.flatMap(({ methods }) => [...methods]))].sort()
    if (allowed.length === 0 || allowed.includes(request.method)) throw unknownPath(request)
    const error = new HttpError('method_not_allowed', `${request.method} cannot be used here`, {
      remedy: `use ${allowed.join(' or ')}`,
      headers: { allow: allowed.join(', ') },
    })
    const ownHandler = matches.find(({ errorHandler }) => errorHandler)?.errorHandler
    if (!ownHandler) throw error
    return ownHandler.call(app, error, request, reply)
  })
}

const toPattern = (url: string): RegExp => {
  const escaped = url.replace(/[.+?^${}()|[\]\\]/g, '\\$&')
  return new RegExp(`^${escaped.replace(/:[A-Za-z0-9_]+/g, '[^/]+').replace(/\*/g, '.*')}/?$`)
}
