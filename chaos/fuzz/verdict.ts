import { z } from 'zod'
import { problemSchema } from '../../src/routes/problems.ts'
import type { ExchangeOutcome } from './raw-exchange.ts'
import type { RawReply } from './raw-reply.ts'
import type { FuzzRequest } from './requests.ts'

/** What the contract says of refusals: the codes that may come with a status. */
const codes: Record<number, readonly string[]> = {
  400: ['malformed_json', 'malformed_request'],
  401: ['unauthorized'],
  403: ['forbidden'],
  404: ['not_found'],
  405: ['method_not_allowed'],
  408: ['request_timeout'],
  409: [
    'run_ended',
    'run_not_failed',
    'session_of_another_user',
    'already_exists',
    'input_answered',
    'input_expired',
    'in_use',
  ],
  413: ['payload_too_large'],
  415: ['unsupported_media_type'],
  422: ['invalid_request', 'idempotency_conflict'],
  429: ['too_many_requests', 'budget_exhausted'],
  431: ['headers_too_large'],
}

const namedError = z.object({ code: z.union([z.int(), z.string()]), message: z.string().min(1) })
/** Of version 1.0, and of 0.3. */
const agentErrorSchema = z.union([z.object({ error: namedError }), namedError])

/** What is wrong with the answer to a request, or null. */
export const findViolation = (request: FuzzRequest, exchanged: ExchangeOutcome): string | null => {
  if (exchanged.kind === 'left') return null
  // answered before the whole of a huge body was read: the reset may overtake the answer
  if (exchanged.kind === 'hung-up' && request.body.length > 1_000_000) return null
  if (exchanged.kind !== 'reply') return `no answer: ${exchanged.kind}`
  const { reply } = exchanged
  if (!Number.isInteger(reply.status)) return 'an answer that is no HTTP'
  if (reply.status >= 500) return `${reply.status}: ${reply.body.toString('utf8', 0, 300)}`
  if (!reply.headers.get('x-request-id')) return `${reply.status} without x-request-id`
  if (reply.status < 400)
    return request.at === undefined ? null : `${reply.status}, though ${request.at} is spoilt`
  // what a person opens says in a page that its link is not good
  const isPage = /^GET \/(passkeys|consent)\//.test(request.what)
  if (isPage && reply.status === 404 && reply.headers.get('content-type') === 'text/html; charset=utf-8')
    return null
  // an envelope of A2A that cannot be read has the error of its protocol
  const isAgent = / \/a2a\//.test(request.what) && reply.status < 500
  if (isAgent && reply.headers.get('content-type') === 'application/json; charset=utf-8')
    return agentErrorSchema.safeParse(parse(reply.body.toString('utf8'))).success
      ? null
      : `${reply.status} with a body that is not an A2A error: ${reply.body.toString('utf8', 0, 300)}`
  // an answer to HEAD has no body
  return request.method === 'HEAD' || request.isOpenAi ? null : faultOfProblem(request, reply)
}

const faultOfProblem = ({ at }: FuzzRequest, { status, headers, body }: RawReply): string | null => {
  const text = body.toString('utf8')
  if (headers.get('content-type') !== 'application/problem+json; charset=utf-8')
    return `${status} of type ${headers.get('content-type')}`
  const parsed = z.string().transform(parse).pipe(problemSchema).safeParse(text)
  if (!parsed.success) return `${status} with what is no problem: ${text.slice(0, 300)}`
  const problem = parsed.data
  if (problem.status !== status || problem.request_id !== headers.get('x-request-id'))
    return `${status} whose problem does not agree with it: ${text.slice(0, 300)}`
  if (!codes[status]?.includes(problem.code)) return `${status} with the code ${problem.code}`
  if (problem.code === 'invalid_request' && !problem.errors?.length)
    return `422 without errors: ${text.slice(0, 300)}`
  if (problem.errors?.some(({ pointer, detail }) => !/^(\/|$)/.test(pointer) || detail === ''))
    return `an error without pointer or detail: ${text.slice(0, 300)}`
  if (
    at !== undefined &&
    problem.code === 'invalid_request' &&
    !problem.errors?.some(({ pointer }) => pointer.startsWith(at))
  )
    return `422 that does not name ${at}: ${text.slice(0, 300)}`
  return null
}

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
