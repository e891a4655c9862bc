import type { ProviderRequest } from '../ports.ts'
import { type Request, roleHeader } from '../wire/send.ts'

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
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    accept: 'text/event-stream, application/json',
    'user-agent': 'mason',
    [roleHeader]: ask.role,
  }
  const given = Object.entries(model.endpoint.headers)
  if (secret !== undefined && !given.some(([, value]) => value.includes('{{key}}')))
    headers.authorization = `Bearer ${secret}`
  for (const [name, value] of given) headers[name.toLowerCase()] = value.replaceAll('{{key}}', secret ?? '')
  return headers
}

/** The same value with all lone surrogates replaced, keys included. */
const wellFormed = (value: unknown): unknown => {
  if (typeof value === 'string') return value.toWellFormed()
  if (Array.isArray(value)) return value.map(wellFormed)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key.toWellFormed(), wellFormed(one)]))
}

/** JSON writes a lone surrogate as an escape, on which many servers stumble; all else as it is. */
const bodyOf = (body: object): string => {
  const text = JSON.stringify(body)
  return text.includes('\\ud') ? JSON.stringify(wellFormed(body)) : text
}

/** Where a request really goes, and how: LangChain never learns address or key, nor does it read its environment. */
export const requestTo = (path: string, asked: ProviderRequest, body: object): Request => ({
  method: 'POST',
  url: addressOf(asked.model.endpoint.base_url, path),
  headers: headersOf(asked),
  body: bodyOf(body),
})
