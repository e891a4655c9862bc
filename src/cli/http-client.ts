import { safeParse } from 'secure-json-parse'
import { z } from 'zod'
import { errorCodes, MasonError } from '../state/errors.ts'

/** Calls to the HTTP API of a server. Errors are MasonError with the server's code. */
export type HttpClient = ReturnType<typeof createHttpClient>

/** The server is unreachable or failed itself, so the state of the run is unknown. */
class UnreachableError extends MasonError {}

const problemSchema = z.object({
  code: z.enum(errorCodes).catch('internal'),
  title: z.string().nullish(),
  detail: z.string().nullish(),
  errors: z.array(z.object({ pointer: z.string(), detail: z.string() })).nullish(),
})

const responseTimeoutMs = 30_000

type ServerTarget = { url: string; token: string | null }

/** `fetch` from the server at `url`; `token` becomes the bearer token. Throws where no response comes. */
export const createServerFetch = ({ url, token }: ServerTarget) => {
  const base = url.replace(/(?<!\/)\/+$/, '')
  const authorization = token ? { Authorization: `Bearer ${token}` } : {}
  const send = (path: string, init: RequestInit & { headers: Record<string, string> }): Promise<Response> =>
    fetch(base + path, { ...init, headers: { ...authorization, ...init.headers } }).catch(
      (error: unknown) => {
        if (init.signal?.aborted && !(init.signal.reason instanceof DOMException)) throw init.signal.reason
        throw createUnreachableError(base, error)
      },
    )
  return { base, send }
}

/** A client of the API at `url`; `token` becomes the bearer token. */
export const createHttpClient = (target: ServerTarget) => {
  const { base, send } = createServerFetch(target)
  const call: typeof send = async (path, init) => {
    const response = await send(path, init)
    if (!response.ok) throw await readProblem(response, base)
    return response
  }
  return {
    async post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<unknown> {
      const response = await call(path, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', ...headers },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(responseTimeoutMs),
      })
      return response.json()
    },
    /** The response with its body unread; throws for any status but 2xx. */
    get: (path: string, headers: Record<string, string>, signal: AbortSignal): Promise<Response> =>
      call(path, { headers, signal }),
    /** Whether the same call may succeed later. */
    isTransient: (error: unknown): boolean => error instanceof UnreachableError,
  }
}

/** The error of a `fetch` that got no response. */
const createUnreachableError = (base: string, error: unknown): UnreachableError => {
  const { cause, message } = error as { cause?: { message?: string; code?: string }; message: string }
  const reason = cause?.message || cause?.code || message
  return new UnreachableError('internal', `${base} cannot be reached: ${reason}`, {
    remedy: 'start `mason serve` there, or correct --url or MASON_URL',
    cause: error,
  })
}

/** The error in a response that is not 2xx: its problem document (RFC 9457), else its status. */
export const readProblem = async (
  response: Response,
  base: string,
  tokenRemedy = 'pass the token of the business with --token or MASON_TOKEN',
): Promise<MasonError> => {
  const text = await response.text().catch(() => '')
  const { data: problem } = problemSchema.safeParse(safeParse(text))
  const message = problem?.detail ?? problem?.title ?? `${base} answered ${response.status}`
  const options = {
    ...(response.status === 401 || response.status === 403 ? { remedy: tokenRemedy } : {}),
    ...(problem?.errors ? { detail: { errors: problem.errors } } : {}),
  }
  const ErrorClass = response.status >= 500 ? UnreachableError : MasonError
  return new ErrorClass(problem?.code ?? 'internal', message, options)
}
