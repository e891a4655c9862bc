import { z } from 'zod'
import { type ErrorCode, isMasonError, type MasonError } from '../state/errors.ts'

/** What goes wrong in HTTP alone, beside the codes of the runtime. */
export type HttpCode =
  | 'malformed_request'
  | 'method_not_allowed'
  | 'unsupported_media_type'
  | 'request_timeout'
  | 'headers_too_large'
  | 'shutting_down'

export type ProblemCode = ErrorCode | HttpCode

type Row = readonly [status: number, title: string]

/** THE table: every code that goes out, its status and its title. Any other code is our own fault: `internal`. */
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

const rowOf = (code: ProblemCode): Row => table[code] ?? table.internal
export const statusOf = (code: ProblemCode): number => rowOf(code)[0]
export const titleOf = (code: ProblemCode): string => rowOf(code)[1]

/** A fault of HTTP itself; whatever the runtime knows too is a MasonError. */
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

const faultSchema = z.strictObject({
  pointer: z
    .string()
    .meta({ description: 'RFC 6901 pointer into the body, or "/" and the name of a parameter' }),
  detail: z.string(),
})
export type Fault = z.infer<typeof faultSchema>

const userSchema = z
  .strictObject({ kind: z.string(), id: z.string(), name: z.string() })
  .meta({ description: 'Something that uses what was to be deleted' })

/** RFC 9457. */
export const problemSchema = z.strictObject({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  code: z.string().meta({ description: 'Stable; tell problems apart by this' }),
  instance: z.string(),
  request_id: z.string(),
  remedy: z.string().optional(),
  errors: z.array(faultSchema).optional(),
  users: z.array(userSchema).optional(),
})
type Problem = z.infer<typeof problemSchema>

/** A thrown thing as it goes out: the problem without what the request adds, and its headers. */
export type Answer = {
  problem: Omit<Problem, 'instance' | 'request_id'>
  headers: Record<string, string>
}

/** Whatever was thrown, as an answer. Of what is our own fault only the code goes out, and never the message. */
export const answerOf = (error: unknown): Answer => {
  if (error instanceof HttpError)
    return answer(error.code, error.message, error.remedy, { ...retryLater(error.code), ...error.headers })
  if (isMasonError(error)) return answerOfMason(error)
  const status = fastifyStatus(error)
  if (status === 413) return answer('payload_too_large', 'the body is larger than 32 MiB')
  if (status === 415) return answer('unsupported_media_type', 'this content-type cannot be read')
  if (status === 404) return answer('not_found', 'there is nothing at this path')
  if (status !== null) return answer('malformed_request', 'the request cannot be read')
  return answer('internal', 'give the request id when you report this')
}

const answerOfMason = (error: MasonError): Answer => {
  if (statusOf(error.code) >= 500) {
    const code = statusOf(error.code) === 500 ? 'internal' : error.code
    const detail = code === 'internal' ? 'give the request id when you report this' : titleOf(code)
    return answer(code, detail, code === 'internal' ? undefined : 'try again', retryLater(code, error.detail))
  }
  const made = answer(error.code, error.message, error.remedy, retryLater(error.code, error.detail))
  return { ...made, problem: { ...made.problem, ...namedIn(error.detail) } }
}

const answer = (
  code: ProblemCode,
  detail: string,
  remedy?: string,
  headers: Record<string, string> = {},
): Answer => ({
  problem: {
    type: `urn:mason:problem:${code}`,
    title: titleOf(code),
    status: statusOf(code),
    detail,
    code,
    ...(remedy === undefined ? {} : { remedy }),
  },
  headers: code === 'unauthorized' ? { ...headers, 'www-authenticate': 'Bearer realm="mason"' } : headers,
})

/** Whole seconds, at least one. */
const retryLater = (code: ProblemCode, detail?: unknown): Record<string, string> => {
  if (statusOf(code) !== 429 && statusOf(code) !== 503) return {}
  const seconds = Number((detail as { retry_after_s?: unknown } | null | undefined)?.retry_after_s ?? 1)
  return { 'retry-after': String(Number.isFinite(seconds) ? Math.max(1, Math.ceil(seconds)) : 1) }
}

const namedSchema = z.object({
  errors: z.array(faultSchema.strip()).min(1).optional().catch(undefined),
  users: z.array(userSchema.strip()).min(1).optional().catch(undefined),
})

/** What of an error's detail goes out: the faults of a request, and who uses a thing. */
const namedIn = (detail: unknown): { errors?: Fault[]; users?: z.infer<typeof userSchema>[] } => {
  const { errors, users } = namedSchema.safeParse(detail).data ?? {}
  return { ...(errors && { errors }), ...(users && { users }) }
}

/** The status of an error that fastify itself made for a bad request, or null. */
const fastifyStatus = (error: unknown): number | null => {
  const { code, statusCode } = (error ?? {}) as { code?: unknown; statusCode?: unknown }
  const theirs = typeof code === 'string' && code.startsWith('FST_') && typeof statusCode === 'number'
  return theirs && statusCode >= 400 && statusCode < 500 ? statusCode : null
}
