import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { toProblemResponse } from '../../routes/problems.ts'
import { type ErrorCode, isMasonError, type MasonError } from '../../state/errors.ts'

/** The body of an error: https://platform.openai.com/docs/guides/error-codes */
export const openAIErrorSchema = z.strictObject({
  error: z.strictObject({
    message: z.string(),
    type: z.string(),
    param: z.string().nullable(),
    code: z.string().nullable(),
  }),
})
type Body = z.infer<typeof openAIErrorSchema>
type Row = readonly [status: number, type: string, code: string]

const request = 'invalid_request_error'

/** Codes for which OpenAI has another name or status than the rest of this server. */
const rows: Partial<Record<string, Row>> = {
  invalid_request: [400, request, 'invalid_request'],
  unauthorized: [401, request, 'invalid_api_key'],
  forbidden: [403, request, 'insufficient_permissions'],
  not_found: [404, request, 'model_not_found'],
  too_many_requests: [429, 'rate_limit_error', 'rate_limit_exceeded'],
  budget_exhausted: [429, 'insufficient_quota', 'budget_exhausted'],
  model_rate_limited: [429, 'rate_limit_error', 'rate_limit_exceeded'],
  model_bad_request: [400, request, 'model_bad_request'],
  model_content_filtered: [400, request, 'content_filter'],
  model_context_too_long: [400, request, 'context_length_exceeded'],
  // the refused key is one of the registry, not the caller's
  model_unauthorized: [502, 'server_error', 'model_unauthorized'],
  model_unavailable: [502, 'server_error', 'model_unavailable'],
  model_bad_reply: [502, 'server_error', 'model_bad_reply'],
  model_unreadable_answer: [502, 'server_error', 'model_unreadable_answer'],
  egress_refused: [502, 'server_error', 'egress_refused'],
  model_timeout: [504, 'server_error', 'model_timeout'],
  no_model_available: [503, 'server_error', 'no_model_available'],
} satisfies Partial<Record<ErrorCode, Row>>

const detailSchema = z.looseObject({
  retry_after_ms: z.number().nonnegative().optional().catch(undefined),
  /** Every candidate has reached a limit of its key. */
  limited: z.boolean().optional().catch(undefined),
  /** It is no model that is not found. */
  unknown_path: z.boolean().optional().catch(undefined),
})

/** `/messages/0/content` as OpenAI writes it: `messages[0].content`. */
const toParam = (pointer: string | undefined): string | null =>
  pointer
    ?.slice(1)
    .replace(/\/(\d+)(?=\/|$)/g, '[$1]')
    .replaceAll('/', '.') || null

const findRow = (error: unknown, status: number, code: string): Row => {
  const { limited, unknown_path } = (isMasonError(error) && detailSchema.safeParse(error.detail).data) || {}
  if (limited) return rows.model_rate_limited as Row
  if (unknown_path) return [404, request, 'unknown_url']
  return rows[code] ?? [status, status < 500 ? request : 'server_error', code]
}

const isModelError = (error: unknown): error is MasonError =>
  isMasonError(error) && /^(model_|no_model_available$|egress_refused$)/.test(error.code)

/** The response to anything thrown, in OpenAI's shape. Of an internal error only the code is sent. */
export const toOpenAIError = (
  error: unknown,
): { status: number; headers: Record<string, string>; body: Body } => {
  const { problem, headers } = toProblemResponse(error)
  const code = isModelError(error) ? error.code : problem.code
  const [status, type, openAICode] = findRow(error, problem.status, code)
  const [fieldError] = problem.errors ?? []
  const message = isModelError(error)
    ? error.message
    : fieldError === undefined
      ? [problem.detail, problem.remedy].filter(Boolean).join('; ')
      : `${toParam(fieldError.pointer) ?? 'the body'}: ${fieldError.detail}`
  const param = openAICode === 'model_not_found' ? 'model' : toParam(fieldError?.pointer)
  return {
    status,
    headers: { ...headers, ...(isModelError(error) && retryAfter(error, status)) },
    body: { error: { message, type, param, code: openAICode } },
  }
}

/** Whole seconds, at least one. */
const retryAfter = ({ detail }: MasonError, status: number): Record<string, string> => {
  const ms = detailSchema.safeParse(detail).data?.retry_after_ms
  if (status !== 429 && (status !== 503 || ms === undefined)) return {}
  return { 'retry-after': String(Math.max(1, Math.ceil((ms ?? 0) / 1000))) }
}

/** The error handler of the OpenAI-compatible endpoint. */
export const sendOpenAIError = (error: unknown, request: FastifyRequest, reply: FastifyReply): void => {
  const { status, headers, body } = toOpenAIError(error)
  if (status === 500) request.log.error({ err: error }, 'a request failed')
  else if (status > 500) request.log.warn({ err: error }, 'a request could not be served')
  void reply.code(status).headers(headers).type('application/json; charset=utf-8').send(body)
}
