/** Requests to the server that served this page, with its cookie. */

/** The path of a proxy in front, '' for none. */
export const base = document.querySelector<HTMLMetaElement>('meta[name="mason-base"]')?.content ?? ''

/** For a write that is done once however often it is sent. */
export const createKey = (): string => crypto.randomUUID?.() ?? String(Math.random())

export type Query = Record<string, string | number | undefined>

/** What the server answered instead: what happened and what to do. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly remedy = '',
  ) {
    super(message)
  }
}

export const toUrl = (path: string, query: Query = {}): string => {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== '') search.set(name, String(value))
  return `${base}${path}${search.size > 0 ? `?${search}` : ''}`
}

type Problem = {
  code?: string
  detail?: string
  title?: string
  remedy?: string
  errors?: { pointer?: string; detail?: string }[]
}

const toError = async (response: Response): Promise<ApiError> => {
  const problem = (await response.json().catch(() => ({}))) as Problem
  const fields = (problem.errors ?? []).map(({ pointer = '', detail = '' }) => `${pointer} ${detail}`)
  const text = [problem.detail ?? problem.title ?? `HTTP ${response.status}`, ...fields].join('\n')
  if (response.status === 401) signedOut.notify()
  return new ApiError(response.status, problem.code ?? `http_${response.status}`, text, problem.remedy)
}

/** Tells when the server no longer knows who this is. */
export const signedOut = { notify: () => {} }

export type Options = { method?: string; query?: Query; body?: unknown; signal?: AbortSignal; key?: string }

/** A response that is fine, else an ApiError. Status 0: the server cannot be reached. */
export const request = async (
  path: string,
  { method = 'GET', query, body, signal, key }: Options = {},
  headers: Record<string, string> = {},
): Promise<Response> => {
  const response = await fetch(toUrl(path, query), {
    method,
    credentials: 'same-origin',
    headers: {
      ...headers,
      // a write with the cookie has to be JSON, also without a body
      ...(method !== 'GET' && { 'content-type': 'application/json' }),
      ...(key && { 'idempotency-key': key }),
    },
    body: body === undefined ? null : JSON.stringify(body),
    signal: signal ?? null,
  }).catch((error: Error) => {
    if (signal?.aborted) throw error
    throw new ApiError(0, 'unreachable', '')
  })
  if (!response.ok) throw await toError(response)
  return response
}

export const call = async <Answer>(path: string, options?: Options): Promise<Answer> => {
  const response = await request(path, options)
  return (response.status === 204 ? null : await response.json()) as Answer
}

export type Page<Item> = { data: Item[]; next_cursor?: string | null }

/** The request as a command line; the token is left for the reader to set. */
export const toCurl = (path: string, { method = 'GET', query, body }: Options = {}): string => {
  const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
  const parts = [
    'curl',
    ...(method === 'GET' ? [] : ['-X', method]),
    quote(location.origin + toUrl(path, query)),
  ]
  parts.push('-H', '"Authorization: Bearer $MASON_TOKEN"')
  if (body !== undefined)
    parts.push('-H', quote('content-type: application/json'), '-d', quote(JSON.stringify(body)))
  return parts.join(' ')
}
