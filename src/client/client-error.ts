import { type ErrorCode, errorCodes, MasonError } from '../state/errors.ts'

/** The problem document of a response that is not 2xx (RFC 9457). */
export type Problem = {
  code: string
  title?: string
  detail?: string
  remedy?: string
  request_id?: string
  /** What is wrong with which field; `pointer` is a JSON Pointer into the body. */
  errors?: { pointer: string; detail: string }[]
  upload_offset?: number
}

/**
 * A call that failed. `code` is the server's code (`internal` where this version of the client does not know it; `problem.code` has
 * the server's word), or `server_unreachable` where no response came: then it is not known whether the server has acted.
 *
 * @example
 * ```ts
 * import { ClientError, createClient } from 'mason-runtime/client'
 *
 * const client = createClient({ url: 'http://127.0.0.1:8080' })
 * try {
 *   await client.submit({ prompt: '', user_id: 'ann' })
 * } catch (error) {
 *   if (error instanceof ClientError && error.code === 'invalid_request') console.log(error.problem?.errors)
 * }
 * ```
 */
export class ClientError extends MasonError {
  /** Null: there was no response. */
  readonly status: number | null
  readonly problem: Problem | null
  /** What the server asked to wait before another try. */
  readonly retryAfterMs: number | null

  constructor(
    code: ErrorCode,
    message: string,
    options: {
      status?: number
      problem?: Problem | null
      retryAfterMs?: number | null
      remedy?: string
      cause?: unknown
    } = {},
  ) {
    const { status, problem, retryAfterMs, ...rest } = options
    super(code, message, { ...rest, ...(problem?.errors && { detail: { errors: problem.errors } }) })
    this.name = 'ClientError'
    this.status = status ?? null
    this.problem = problem ?? null
    this.retryAfterMs = retryAfterMs ?? null
  }
}

/** Whether the same request may succeed later: no response, too many requests, or an error of the server itself. */
export const isTransient = (error: unknown): error is ClientError =>
  error instanceof ClientError &&
  (error.status === null || error.status >= 500 || error.status === 429 || error.status === 408)

/** The error in a response that is not 2xx. `name` is what the message calls the server. */
export const readClientError = async (
  response: Response,
  name: string,
  tokenRemedy: string,
): Promise<ClientError> => {
  const problem = parseProblem(await response.text().catch(() => ''))
  const { status } = response
  const code = errorCodes.find((known) => known === problem?.code) ?? 'internal'
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
  const remedy = status === 401 || status === 403 ? tokenRemedy : problem?.remedy
  return new ClientError(code, problem?.detail ?? problem?.title ?? `${name} answered ${status}`, {
    status,
    problem,
    retryAfterMs: Number.isFinite(seconds) ? seconds * 1000 : null,
    ...(remedy !== undefined && { remedy }),
  })
}

const parseProblem = (text: string): Problem | null => {
  try {
    const value: unknown = JSON.parse(text)
    const isProblem = typeof value === 'object' && value !== null && 'code' in value
    return isProblem ? (value as Problem) : null
  } catch {
    return null
  }
}
