import { fillSecrets, toLowerNames } from '../../../accounts/http-hosts.ts'
import type { Egress, EgressResponse } from '../../../infra/egress/egress-port.ts'
import { MasonError } from '../../../state/errors.ts'
import { hasLongNumbers, parseExactJson } from '../../../state/text/exact-json.ts'

/** So much of a response is read. */
const maxBytes = 4 * 1024 * 1024

/** What became of an exchange, beside its response. */
export type Exchange = { isSent: boolean; status: number | null }

type FetchOptions = {
  egress: Egress
  allowPrivate: boolean
  headers: Readonly<Record<string, string>>
  signal: AbortSignal
  /** Takes the secrets out of a response: an agent may echo its headers. */
  redact: (text: string) => string
  /** Called in the moment before the first byte; nothing is sent where it throws. */
  beforeSend?: () => void
}

const readBody = async ({ body }: EgressResponse): Promise<string> => {
  const chunks: Uint8Array[] = []
  let size = 0
  for (let chunk = await body.read(); chunk !== null; chunk = await body.read()) {
    chunks.push(chunk)
    size += chunk.length
    if (size <= maxBytes) continue
    body.cancel()
    throw new MasonError('invalid_request', `the agent answered with more than ${maxBytes / 1024 ** 2} MB`)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** JSON whose integers beyond 2^53 are texts: the SDK would round them. */
const keepDigits = (body: string): string => {
  try {
    return hasLongNumbers(body) ? JSON.stringify(parseExactJson(body)) : body
  } catch {
    return body
  }
}

const hasNoBody = (status: number): boolean => status === 204 || status === 304

/**
 * A `fetch` for the SDK over Mason's egress: addresses are checked, responses limited, redirects not followed. `exchange` tells what
 * became of the last request.
 */
export const createEgressFetch = ({
  egress,
  allowPrivate,
  headers,
  signal,
  redact,
  beforeSend,
}: FetchOptions) => {
  const exchange: Exchange = { isSent: false, status: null }
  const fetchImpl = async (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    Object.assign(exchange, { isSent: false, status: null })
    const response = await egress.request(String(input instanceof Request ? input.url : input), {
      method: init.method ?? 'GET',
      headers: { ...Object.fromEntries(new Headers(init.headers)), ...toLowerNames(headers) },
      body: typeof init.body === 'string' ? init.body : null,
      signal,
      allowPrivate,
      maxRedirects: 0,
      beforeSend() {
        beforeSend?.()
        exchange.isSent = true
      },
    })
    const body = redact(await readBody(response))
    exchange.status = response.status
    const type = response.headers.get('content-type')
    return new Response(hasNoBody(response.status) ? null : keepDigits(body), {
      status: response.status,
      headers: type === null ? {} : { 'content-type': type },
    })
  }
  return { fetchImpl: fetchImpl as typeof fetch, exchange }
}

/** The headers of an agent with their secrets. Throws `secret_unreadable` with the name of the header whose secret is missing. */
export const fillHeaders = (
  headers: Readonly<Record<string, string>>,
  secrets: Readonly<Record<string, string>>,
): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => {
      const filled = fillSecrets(value, secrets)
      if (filled !== null) return [name, filled]
      throw new MasonError(
        'secret_unreadable',
        `the header ${name} of the agent names a secret that is missing`,
        {
          remedy: 'an admin sets it: PATCH /admin/v1/businesses/{id} with secrets',
        },
      )
    }),
  )
