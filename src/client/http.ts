import { sleep } from '../state/sleep.ts'
import { ClientError, isTransient, readClientError } from './client-error.ts'

/** Where the server is, and how to reach it. */
export type ServerTarget = {
  url: string
  /** The bearer token of the business. */
  token?: string | null | undefined
  /** Replaces the global `fetch`. */
  fetch?: typeof fetch | undefined
  /** What errors tell people to do. */
  remedies?: { unreachable: string; unauthorized: string } | undefined
}

/** The parameters of a request; undefined ones are left out. */
export type HttpQuery = Record<string, string | number | boolean | undefined>

/** One request. */
export type HttpRequest = {
  /** Sent as JSON. */
  json?: unknown
  /** Sent as it is. */
  body?: RequestInit['body']
  headers?: Record<string, string>
  query?: HttpQuery
  signal?: AbortSignal | undefined
  /** Whether a request without a response may be sent again: reads, and requests with an idempotency key. */
  repeatable?: boolean
  /** Until the headers of the response; null: no limit. */
  timeoutMs?: number | null
}

const responseTimeoutMs = 30_000
const maxTries = 5
const maxDelayMs = 10_000

const defaultRemedies = {
  unreachable: 'start Mason there, or correct the url of the client',
  unauthorized: 'pass a token of the business to the client',
}

/** The pause before the next try, after `tries` that failed; random, so that clients do not come back together. */
export const computeDelayMs = (tries: number, error?: unknown): number => {
  const asked = error instanceof ClientError ? error.retryAfterMs : null
  return asked ?? Math.min(250 * 2 ** tries, 5_000) * (0.5 + Math.random() / 2)
}

/** Requests to one server, which a page may name by a path, by web standards alone. A response that is not 2xx is a ClientError. */
export const createHttp = (target: ServerTarget) => {
  if (!('location' in globalThis) && !/^https?:\/\/./.test(target.url))
    throw new ClientError('invalid_settings', `url must be like http://localhost:8080, not "${target.url}"`)
  const base = target.url.replace(/(?<!\/)\/+$/, '')
  const remedies = target.remedies ?? defaultRemedies
  const send = target.fetch ?? ((...args: Parameters<typeof fetch>) => fetch(...args))

  const sendOnce = async (method: string, path: string, request: HttpRequest): Promise<Response> => {
    const { json, body, headers, query = {}, signal, timeoutMs = responseTimeoutMs } = request
    const search = new URLSearchParams(
      Object.entries(query).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, String(value)] as [string, string]],
      ),
    )
    // what throws here cannot be sent at all
    const content = json === undefined ? body : JSON.stringify(json)
    const sent = Object.fromEntries(
      new Headers({
        ...(target.token && { Authorization: `Bearer ${target.token}` }),
        ...(json !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      }),
    )
    const late = new AbortController()
    const timer =
      timeoutMs === null
        ? undefined
        : setTimeout(() => late.abort(new Error(`no response within ${timeoutMs} ms`)), timeoutMs)
    try {
      const response = await send(`${base}${path}${search.size > 0 ? `?${search}` : ''}`, {
        method,
        headers: sent,
        ...(content !== undefined && { body: content }),
        signal: signal ? AbortSignal.any([signal, late.signal]) : late.signal,
      })
      if (response.ok) return response
      throw await readClientError(response, base, remedies.unauthorized)
    } catch (error) {
      if (error instanceof ClientError) throw error
      signal?.throwIfAborted()
      const { cause, message } = error as { cause?: { message?: string; code?: string }; message: string }
      const reason = cause?.message || cause?.code || message
      throw new ClientError('server_unreachable', `${base} cannot be reached: ${reason}`, {
        remedy: remedies.unreachable,
        cause: error,
      })
    } finally {
      clearTimeout(timer)
    }
  }

  const call = async (method: string, path: string, request: HttpRequest = {}): Promise<Response> => {
    for (let tries = 1; ; tries++)
      try {
        return await sendOnce(method, path, request)
      } catch (error) {
        if (!request.repeatable || !isTransient(error) || tries >= maxTries) throw error
        const delayMs = computeDelayMs(tries, error)
        if (delayMs > maxDelayMs) throw error
        await sleep(delayMs, request.signal)
      }
  }

  return {
    base,
    call,
    /** The JSON of a response. Where its body breaks off, a repeatable request is sent again. */
    async json<Value>(method: string, path: string, request: HttpRequest = {}): Promise<Value> {
      for (let tries = 1; ; tries++) {
        const response = await call(method, path, request)
        try {
          return (await response.json()) as Value
        } catch (error) {
          request.signal?.throwIfAborted()
          if (!request.repeatable || tries >= maxTries)
            throw new ClientError('server_unreachable', `the response of ${base} broke off`, {
              remedy: remedies.unreachable,
              cause: error,
            })
        }
      }
    },
  }
}

/** See `createHttp`. */
export type Http = ReturnType<typeof createHttp>
