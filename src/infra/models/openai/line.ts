import type { ModelEntry, ProviderRequest } from '../ports.ts'
import type { Exchange } from './exchange.ts'
import { type Line, roleHeader } from './model-fetch.ts'

/** Adds a path of the API to an endpoint's address; a query in it stays, for gateways that want one. */
const addressOf = (baseUrl: string, path: string): string => {
  const url = new URL(baseUrl)
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/${path}`
  url.hash = ''
  return url.href
}

/** The endpoint's own headers come last; one that holds `{{key}}` takes the place of `authorization`. */
const headersOf = ({ model, key, ask }: ProviderRequest): Record<string, string> => {
  const secret = key?.secret?.reveal()
  const given = Object.entries(model.endpoint.headers)
  const hasOwn = given.some(([, value]) => value.includes('{{key}}'))
  return {
    'content-type': 'application/json',
    accept: 'text/event-stream, application/json',
    'user-agent': 'mason',
    [roleHeader]: ask.role,
    ...(secret === undefined || hasOwn ? {} : { authorization: `Bearer ${secret}` }),
    ...Object.fromEntries(
      given.map(([name, value]) => [name.toLowerCase(), value.replaceAll('{{key}}', secret ?? '')]),
    ),
  }
}

export const lineOf = (
  request: ProviderRequest,
  exchange: Exchange,
  path: string,
  onBody: Line['onBody'],
): Line => ({
  exchange,
  url: addressOf(request.model.endpoint.base_url, path),
  headers: headersOf(request),
  allowPrivate: request.model.endpoint.allow_private,
  idleMs: request.model.endpoint.timeouts.idleMs,
  onBody,
})

/** What a server may be remembered by: its endpoint and what the model is called there. */
export const modelAt = ({ endpoint, upstream_name }: ModelEntry): string => `${endpoint.id} ${upstream_name}`
