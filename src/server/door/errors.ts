import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { type ErrorCode, isMasonError, type MasonError } from '../../state/errors.ts'
import { answerOf } from '../problems.ts'

/** https://platform.openai.com/docs/guides/error-codes */
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

/** What OpenAI calls by another name or answers with another status than the rest of this server. */
const rows: Partial<Record<string, Row>> = {
  malformed_json: [400, request, 'malformed_json'],
  invalid_request: [400, request, 'invalid_request'],
  unauthorized: [401, request, 'invalid_api_key'],
  forbidden: [403, request, 'insufficient_permissions'],
  not_found: [404, request, 'model_not_found'],
  payload_too_large: [413, request, 'payload_too_large'],
  too_many_requests: [429, 'rate_limit_error', 'rate_limit_exceeded'],
  model_rate_limited: [429, 'rate_limit_error', 'rate_limit_exceeded'],
  model_bad_request: [400, request, 'model_bad_request'],
  model_content_filtered: [400, request, 'content_filter'],
  model_context_too_long: [400, request, 'context_length_exceeded'],
  // the key that was refused is one of ours, not the caller's
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
})

/** `/messages/0/content` as OpenAI writes it: `messages[0].content`. */
const paramOf = (pointer: string | undefined): string | null =>
  pointer
    ?.slice(1)
    .replace(/\/(\d+)(?=\/|$)/g, '[$1]')
    .replaceAll('/', '.') || null

const rowOf = (error: unknown, status: number, code: string): Row => {
  const limited =
    isMasonError(error, 'no_model_available') && detailSchema.safeParse(error.detail).data?.limited
  if (limited) return rows.model_rate_limited as Row
  return rows[code] ?? [status, status < 500 ? request : 'server_error', code]
}

const isOfModels = (error: unknown): error is MasonError =>
  isMasonError(error) && /^(model_|no_model_available$|egress_refused$)/.test(error.code)

/** Whatever was thrown, as OpenAI would say it. Of what is our own fault nothing but the code goes out. */
export const openAIErrorOf = (
  error: unknown,
): { status: number; headers: Record<string, string>; body: Body } => {
  const { problem, headers } = answerOf(error)
  const code = isOfModels(error) ? error.code : problem.code
  const [status, type, shownCode] = rowOf(error, problem.status, code)
  const [fault] = problem.errors ?? []
  const message = isOfModels(error)
    ? error.message
    : fault === undefined
      ? problem.detail
      : `${paramOf(fault.pointer) ?? 'the body'}: ${fault.detail}`
  const param = shownCode === 'model_not_found' ? 'model' : paramOf(fault?.pointer)
  return {
    status,
    headers: { ...headers, ...(isOfModels(error) && retryAfter(error, status)) },
    body: { error: { message, type, param, code: shownCode } },
  }
}

/** Whole seconds, at least one. */
const retryAfter = ({ detail }: MasonError, status: number): Record<string, string> => {
  const ms = detailSchema.safeParse(detail).data?.retry_after_ms
  if (status !== 429 && (status !== 503 || ms === undefined)) return {}
  return { 'retry-after': String(Math.max(1, Math.ceil((ms ?? 0) / 1000))) }
}

/** The error handler of the routes of the door. */
export const sendOpenAIError = (error: unknown, request: FastifyRequest, reply: FastifyReply): void => {
  const { status, headers, body } = openAIErrorOf(error)
  if (status === 500) request.log.error({ err: error }, 'a request failed')
  else if (status > 500) request.log.warn({ err: error }, 'a request could not be served')
  void reply.code(status).headers(headers).type('application/json; charset=utf-8').send(body)
}
