import type { ProviderRequest } from '../ports/model-ports.ts'
import type { ProviderHttpRequest } from '../transport/http-exchange.ts'

/** Adds a path, with or without a query, to `base`; a query of the base stays, for gateways that need one. */
export const joinUrl = (base: string, path: string): string => {
  const url = new URL(base)
  const [segments = '', ...query] = path.split('?')
  url.pathname = `${url.pathname.replace(/(?<!\/)\/+$/, '')}${segments}`
  for (const [name, value] of new URLSearchParams(query.join('?'))) url.searchParams.append(name, value)
  url.hash = ''
  return url.href
}

/** What a protocol asks for. `headers` must have `accept`; `holdsKey`: the key is in one of them. */
type ProtocolRequest = Omit<ProviderHttpRequest, 'url'> & { path: string; holdsKey: boolean }

/** The HTTP request to the endpoint. Its own headers come last. If no header has the key, it is sent as `authorization`. */
export const createHttpRequest = (
  { model: { endpoint }, key, ask }: ProviderRequest,
  { method, path, headers, holdsKey, body }: ProtocolRequest,
): ProviderHttpRequest => {
  const secret = key?.secret?.reveal()
  const ownHeaders = Object.entries(endpoint.headers)
  const hasKey = holdsKey || ownHeaders.some(([, value]) => value.includes('{{key}}'))
  return {
    method,
    url: joinUrl(endpoint.base_url, path),
    headers: {
      'content-type': 'application/json',
      'user-agent': 'mason',
      // shows the role of a request to the vendor
      'x-mason-role': ask.role,
      ...(secret === undefined || hasKey ? {} : { authorization: `Bearer ${secret}` }),
      ...headers,
      ...Object.fromEntries(
        ownHeaders
          .filter(([, value]) => secret !== undefined || !value.includes('{{key}}'))
          .map(([name, value]) => [name.toLowerCase(), value.replaceAll('{{key}}', () => secret ?? '')]),
      ),
    },
    body,
  }
}
