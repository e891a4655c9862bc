import { z } from 'zod'
import { type ErrorCode, isMasonError, MasonError } from '../state/errors.ts'
import { omitUndefined } from './parameters.ts'

/** Every code that is sent, with its status and title. Any other code is sent as `internal`. */
const table = {
  malformed_json: [400, 'The body is not JSON'],
  malformed_request: [400, 'The request cannot be read'],
  unauthorized: [401, 'A valid token is needed'],
  forbidden: [403, 'The token does not allow this'],
  quota_exceeded: [403, 'A quota of the business is used up'],
  not_found: [404, 'Not found'],
  method_not_allowed: [405, 'This path does not take this method'],
  request_timeout: [408, 'The request took too long to arrive'],
  run_ended: [409, 'The run has ended'],
  run_not_failed: [409, 'The run has not failed'],
  has_effects: [409, 'The run has side effects'],
  has_payments: [409, 'The run has payments, which never repeat'],
  no_prompt: [409, 'The prompt of the action is not known'],
  session_of_another_user: [409, 'The session belongs to another user'],
  already_exists: [409, 'There is one already'],
  in_use: [409, 'It is in use'],
  upload_offset: [409, 'The upload goes on at another offset'],
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
  budget_exhausted: [429, 'A budget is used up'],
  headers_too_large: [431, 'The headers are too large'],
  internal: [500, 'Something went wrong on our side'],
  database_unavailable: [503, 'The database cannot be reached'],
  queue_unavailable: [503, 'The queue cannot be reached'],
  server_busy: [503, 'This server has no memory for the body at present'],
  shutting_down: [503, 'This server is shutting down'],
} as const

/** Every code of a problem document. */
export type ProblemCode = ErrorCode | keyof typeof table

/** The HTTP status of a code and its title, one short sentence; those of `internal` for codes that are not sent. */
export const findProblem = (code: ProblemCode): (typeof table)[keyof typeof table] =>
  code in table ? table[code as keyof typeof table] : table.internal

/** An error of HTTP itself; errors that the runtime has too are a MasonError. */
export class HttpError extends Error {
  readonly code: Exclude<ProblemCode, ErrorCode>
  readonly remedy: string | undefined
  readonly headers: Record<string, string>

  constructor(
    code: HttpError['code'],
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

const effectSchema = z
  .strictObject({
    action: z.int().nullable(),
    node: z.string().nullable(),
    kind: z.string(),
    status: z.string(),
  })
  .meta({ description: 'A side effect that would be repeated, and its action; null: it has none' })

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
  effects: z.array(effectSchema).optional(),
  upload_offset: z.int().optional().meta({ description: 'Where the upload goes on' }),
})
type Problem = z.infer<typeof problemSchema>

/** The response to an error: the problem without what the request adds, and headers. */
export type ProblemResponse = {
  problem: Omit<Problem, 'instance' | 'request_id'>
  headers: Record<string, string>
}

/** The response to anything thrown. Of an internal error only the code is sent, never the message. */
export const toProblemResponse = (error: unknown): ProblemResponse => {
  if (error instanceof HttpError) return createResponse(error.code, error.message, error)
  if (isMasonError(error)) {
    const [status, title] = findProblem(error.code)
    if (status < 500) {
      const members = omitUndefined(detailSchema.safeParse(error.detail).data ?? {})
      // contract: each has errors, also one that is about the whole request
      const whole = error.code === 'invalid_request' && { errors: [{ pointer: '', detail: error.message }] }
      return createResponse(error.code, error.message, error, { ...whole, ...members })
    }
    if (status > 500) return createResponse(error.code, title, { remedy: 'try again', detail: error.detail })
  }
  const status = readFastifyStatus(error)
  if (status === 413) return createResponse('payload_too_large', 'the body is larger than 32 MiB')
  if (status === 415) return createResponse('unsupported_media_type', 'the content-type must be type/subtype')
  if (status === 404) return createResponse('not_found', 'there is nothing at this path')
  if (status !== null) return createResponse('malformed_request', 'the request cannot be read')
  return createResponse('internal', 'give the request id when you report this')
}

/** `members` are further members of the problem. */
const createResponse = (
  code: ProblemCode,
  message: string,
  error: { remedy?: string | undefined; headers?: Record<string, string>; detail?: unknown } = {},
  members: z.infer<typeof detailSchema> = {},
): ProblemResponse => {
  const [status, title] = findProblem(code)
  return {
    problem: {
      type: `urn:mason:problem:${code}`,
      title,
      status,
      detail: message,
      code,
      ...omitUndefined({ remedy: error.remedy, ...members }),
    },
    headers: {
      ...((status === 429 || status === 503) && { 'retry-after': readRetryAfter(error.detail) }),
      ...error.headers,
      ...(code === 'unauthorized' && { 'www-authenticate': 'Bearer realm="mason"' }),
    },
  }
}

/** Whole seconds, at least one. */
const readRetryAfter = (detail: unknown): string => {
  const seconds = Number((detail as { retry_after_s?: unknown } | null | undefined)?.retry_after_s ?? 1)
  return String(Number.isFinite(seconds) ? Math.max(1, Math.ceil(seconds)) : 1)
}

/** What of an error's detail is sent: the field errors of a request, the users of a thing, the offset of an upload. */
const detailSchema = z.object({
  errors: z.array(fieldErrorSchema.strip()).min(1).optional().catch(undefined),
  users: z.array(userSchema.strip()).min(1).optional().catch(undefined),
  effects: z.array(effectSchema.strip()).min(1).optional().catch(undefined),
  upload_offset: z.int().optional().catch(undefined),
})

/** The status of an error that fastify itself made for a bad request, or null. */
const readFastifyStatus = (error: unknown): number | null => {
  const { code, statusCode } = (error ?? {}) as { code?: unknown; statusCode?: unknown }
  const isOfFastify = typeof code === 'string' && code.startsWith('FST_') && typeof statusCode === 'number'
  return isOfFastify && statusCode >= 400 && statusCode < 500 ? statusCode : null
}

/** Throws the `not_found` of a run that does not exist or belongs to another business: callers cannot tell which. */
export const throwNoSuchRun = (id: string): never => {
  throw new MasonError('not_found', `there is no run "${id}"`, { remedy: 'GET /v1/runs lists the runs' })
}
