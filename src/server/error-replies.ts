import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { MasonError } from '../state/errors.ts'
import { answerOf, HttpError } from './problems.ts'
import { newRequestId } from './request-id.ts'

/** Answers with the problem that was thrown. Our own faults are logged under the request id, which the answer carries. */
export const sendProblem = (error: unknown, request: FastifyRequest, reply: FastifyReply): void => {
  const { problem, headers } = answerOf(error)
  if (problem.status === 500) request.log.error({ err: error }, 'a request failed')
  else if (problem.status > 500) request.log.warn({ err: error }, 'a request could not be served')
  void reply
    .code(problem.status)
    .headers(headers)
    .header('content-type', 'application/problem+json; charset=utf-8')
    .serializer(JSON.stringify)
    .send({ ...problem, instance: pathOf(request), request_id: request.id })
}

/** Faults that fastify finds before any hook has run, such as a path whose percent-encoding is broken. */
export const sendFrameworkProblem = (
  error: FastifyError,
  request: FastifyRequest,
  reply: FastifyReply,
): void => {
  const known = error.code === 'FST_ERR_BAD_URL' ? badPath() : error
  const thrown = error.code === 'FST_ERR_MAX_PARAM_LENGTH' ? nothingHere(request) : known
  const { problem, headers } = answerOf(thrown)
  const body = JSON.stringify({ ...problem, instance: pathOf(request), request_id: request.id })
  reply.raw.writeHead(problem.status, {
    ...headers,
    'content-type': 'application/problem+json; charset=utf-8',
    'x-content-type-options': 'nosniff',
    'x-request-id': request.id,
    'content-length': Buffer.byteLength(body),
  })
  reply.raw.end(body)
}

const badPath = (): HttpError =>
  new HttpError('malformed_request', 'the percent-encoding of the path is broken')

export const nothingHere = (request: FastifyRequest): MasonError =>
  new MasonError('not_found', `there is nothing at ${pathOf(request)}`, {
    remedy: 'GET /openapi.json lists every path',
  })

/** Path without query, cut: it is shown and logged. */
export const pathOf = (request: FastifyRequest): string => request.url.split('?', 1)[0]?.slice(0, 500) ?? ''

type ClientError = Error & { code?: string }

/** Answers what is not HTTP at all, on the bare socket. */
export const answerClientError = (error: ClientError, socket: Socket): void => {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const { problem } = answerOf(clientFault(error))
  const id = newRequestId()
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

const clientFault = ({ code }: ClientError): HttpError => {
  if (code === 'HPE_HEADER_OVERFLOW') return new HttpError('headers_too_large', 'the headers are too large')
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new HttpError('request_timeout', 'the request did not arrive in time')
  return new HttpError('malformed_request', 'this is not HTTP')
}
