import { z } from 'zod'
import { errorCodes, MasonError } from '../state/errors.ts'

/** Calls to the API of a Mason elsewhere. Errors are MasonError with the code the server gave. */
export type Http = {
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<unknown>
  /** The response with its body unread; any other than 2xx is thrown. */
  get(path: string, headers: Record<string, string>, signal: AbortSignal): Promise<Response>
  /** Whether the same call may well succeed a little later. */
  isPassing(error: unknown): boolean
}

/** The server could not be reached, or not make sense of; nothing is said about the run. */
class Unreachable extends MasonError {}

const problemSchema = z.object({
  code: z.enum(errorCodes).catch('internal'),
  title: z.string().nullish(),
  detail: z.string().nullish(),
  errors: z.array(z.object({ pointer: z.string(), detail: z.string() })).nullish(),
})

const answerMs = 30_000

export const createHttp = ({ url, token }: { url: string; token: string | null }): Http => {
  const base = url.replace(/\/+$/, '')
  const authorization = token ? { Authorization: `Bearer ${token}` } : {}

  const call = async (path: string, init: RequestInit & { headers: Record<string, string> }) => {
    const response = await fetch(base + path, {
      ...init,
      headers: { ...authorization, ...init.headers },
    }).catch((error: unknown) => {
      if (init.signal?.aborted && !(init.signal.reason instanceof DOMException)) throw init.signal.reason
      throw unreachable(base, error)
    })
    if (!response.ok) throw await problemOf(response, base)
    return response
  }

  return {
    async post(path, body, headers = {}) {
      const response = await call(path, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', ...headers },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(answerMs),
      })
      return response.json()
    },
    get: (path, headers, signal) => call(path, { headers, signal }),
    isPassing: (error) => error instanceof Unreachable,
  }
}

export const unreachable = (base: string, error: unknown): Unreachable => {
  const { cause, message } = error as { cause?: { message?: string; code?: string }; message: string }
  return new Unreachable(
    'internal',
    `${base} cannot be reached: ${cause?.message || cause?.code || message}`,
    {
      remedy: 'is `mason serve` running there? Check --url or MASON_URL',
      cause: error,
    },
  )
}

export const problemOf = async (
  response: Response,
  base: string,
  tokenRemedy = 'give the token of the business with --token or MASON_TOKEN',
): Promise<MasonError> => {
  const text = await response.text().catch(() => '')
  const { data: problem } = problemSchema.safeParse(parsed(text))
  const message = problem?.detail ?? problem?.title ?? `${base} answered ${response.status}`
  const options = {
    ...(response.status === 401 || response.status === 403 ? { remedy: tokenRemedy } : {}),
    ...(problem?.errors ? { detail: { errors: problem.errors } } : {}),
  }
  return response.status >= 500
    ? new Unreachable(problem?.code ?? 'internal', message, options)
    : new MasonError(problem?.code ?? 'internal', message, options)
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
