import { z } from 'zod'
import { type ErrorCode, isMasonError, type MasonError } from '../../state/errors.ts'
import type { FieldError } from '../../state/resource-schema.ts'

/** Codes of errors in HTTP itself, beside the codes of the runtime. */
export type HttpCode =
  | 'malformed_request'
  | 'method_not_allowed'
  | 'unsupported_media_type'
  | 'request_timeout'
  | 'headers_too_large'
  | 'shutting_down'

/** Every code of a problem document. */
export type ProblemCode = ErrorCode | HttpCode

type Row = readonly [status: number, title: string]

/** Every code that is sent, with its status and title. Any other code is sent as `internal`. */
const table: Record<HttpCode | 'internal', Row> & Partial<Record<ErrorCode, Row>> = {
  malformed_json: [400, 'The body is not JSON'],
  malformed_request: [400, 'The request cannot be read'],
  unauthorized: [401, 'A valid token is needed'],
  forbidden: [403, 'The token does not allow this'],
  not_found: [404, 'Not found'],
  method_not_allowed: [405, 'This path does not take this method'],
  request_timeout: [408, 'The request took too long to arrive'],
  run_ended: [409, 'The run has ended'],
  session_of_another_user: [409, 'The session belongs to another user'],
  already_exists: [409, 'There is one already'],
  in_use: [409, 'It is in use'],
  input_answered: [409, 'The question was answered already'],
  input_expired: [409, 'The question has expired'],
  expired: [409, 'The run has expired'],
  cancelled: [409, 'The run was cancelled'],
  secret_unreadable: [409, 'A secret cannot be sealed or opened'],
  payload_too_large: [413, 'The body is too large'],
  unsupported_media_type: [415, 'The body must be application/json in UTF-8'],
  invalid_request: [422, 'The request is not valid'],
  idempotency_conflict: [422, 'The idempotency key was used for another request'],
  too_many_requests: [429, 'Too many requests'],
  headers_too_large: [431, 'The headers are too large'],
  internal: [500, 'Something went wrong on our side'],
  database_unavailable: [503, 'The database cannot be reached'],
  queue_unavailable: [503, 'The queue cannot be reached'],
  shutting_down: [503, 'This server is shutting down'],
}

const findRow = (code: ProblemCode): Row => table[code] ?? table.internal

/** The HTTP status of a code; 500 for codes that are not sent. */
export const problemStatus = (code: ProblemCode): number => findRow(code)[0]

/** The title of a code: one short sentence. */
export const problemTitle = (code: ProblemCode): string => findRow(code)[1]

/** An error of HTTP itself; errors that the runtime has too are a MasonError. */
export class HttpError extends Error {
  readonly code: HttpCode
  readonly remedy: string | undefined
  readonly headers: Record<string, string>

  constructor(
    code: HttpCode,
    message: string,
    options: { remedy?: string; headers?: Record<string, string> } = {},
  ) {
    super(message)
    this.name = 'HttpError'
    this.code = code
    this.remedy = options.remedy
    this.headers = options.headers ?? {}
  }
}

const fieldErrorSchema = z.strictObject({
  pointer: z
    .string()
    .meta({ description: 'RFC 6901 pointer into the body, or "/" and the name of a parameter' }),
  detail: z.string(),
})

const userSchema = z
  .strictObject({ kind: z.string(), id: z.string(), name: z.string() })
  .meta({ description: 'Something that uses what was to be deleted' })

/** A problem document: https://www.rfc-editor.org/rfc/rfc9457 */
export const problemSchema = z.strictObject({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  code: z.string().meta({ description: 'Stable; tell problems apart by this' }),
  instance: z.string(),
  request_id: z.string(),
  remedy: z.string().optional(),
  errors: z.array(fieldErrorSchema).optional(),
  users: z.array(userSchema).optional(),
})
type Problem = z.infer<typeof problemSchema>

/** The response to an error: the problem without what the request adds, and headers. */
export type ProblemResponse = {
  problem: Omit<Problem, 'instance' | 'request_id'>
  headers: Record<string, string>
}

/** The response to anything thrown. Of an internal error only the code is sent, never the message. */
export const toProblemResponse = (error: unknown): ProblemResponse => {
  if (error instanceof HttpError)
    return createResponse(error.code, error.message, error.remedy, {
      ...retryLater(error.code),
      ...error.headers,
    })
  if (isMasonError(error)) return toMasonResponse(error)
  const status = readFastifyStatus(error)
  if (status === 413) return createResponse('payload_too_large', 'the body is larger than 32 MiB')
  if (status === 415) return createResponse('unsupported_media_type', 'this content-type cannot be read')
  if (status === 404) return createResponse('not_found', 'there is nothing at this path')
  if (status !== null) return createResponse('malformed_request', 'the request cannot be read')
  return createResponse('internal', 'give the request id when you report this')
}

const toMasonResponse = (error: MasonError): ProblemResponse => {
  if (problemStatus(error.code) >= 500) {
    const code = problemStatus(error.code) === 500 ? 'internal' : error.code
    const detail = code === 'internal' ? 'give the request id when you report this' : problemTitle(code)
    return createResponse(
      code,
      detail,
      code === 'internal' ? undefined : 'try again',
      retryLater(code, error.detail),
    )
  }
  const response = createResponse(
    error.code,
    error.message,
    error.remedy,
    retryLater(error.code, error.detail),
  )
  return { ...response, problem: { ...response.problem, ...readDetail(error.detail) } }
}

const createResponse = (
  code: ProblemCode,
  detail: string,
  remedy?: string,
  headers: Record<string, string> = {},
): ProblemResponse => ({
  problem: {
    type: `urn:mason:problem:${code}`,
    title: problemTitle(code),
    status: problemStatus(code),
    detail,
    code,
    ...(remedy === undefined ? {} : { remedy }),
  },
  headers: code === 'unauthorized' ? { ...headers, 'www-authenticate': 'Bearer realm="mason"' } : headers,
})

/** Whole seconds, at least one. */
const retryLater = (code: ProblemCode, detail?: unknown): Record<string, string> => {
  if (problemStatus(code) !== 429 && problemStatus(code) !== 503) return {}
  const seconds = Number((detail as { retry_after_s?: unknown } | null | undefined)?.retry_after_s ?? 1)
  return { 'retry-after': String(Number.isFinite(seconds) ? Math.max(1, Math.ceil(seconds)) : 1) }
}

const detailSchema = z.object({
  errors: z.array(fieldErrorSchema.strip()).min(1).optional().catch(undefined),
  users: z.array(userSchema.strip()).min(1).optional().catch(undefined),
})

/** What of an error's detail is sent: the field errors of a request, and the users of a thing. */
const readDetail = (detail: unknown): { errors?: FieldError[]; users?: z.infer<typeof userSchema>[] } => {
  const { errors, users } = detailSchema.safeParse(detail).data ?? {}
  return { ...(errors && { errors }), ...(users && { users }) }
}

/** The status of an error that fastify itself made for a bad request, or null. */
const readFastifyStatus = (error: unknown): number | null => {
  const { code, statusCode } = (error ?? {}) as { code?: unknown; statusCode?: unknown }
  const isOfFastify = typeof code === 'string' && code.startsWith('FST_') && typeof statusCode === 'number'
  return isOfFastify && statusCode >= 400 && statusCode < 500 ? statusCode : null
}
