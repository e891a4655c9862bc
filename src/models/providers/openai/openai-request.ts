import type { ProviderRequest } from '../../ports/model-ports.ts'
import { joinUrl, type ProviderHttpRequest, roleHeader } from '../../transport/http-exchange.ts'

/** The endpoint's own headers come last; one with `{{key}}` replaces `authorization`. */
const toHeaders = ({ model, key, ask }: ProviderRequest): Record<string, string> => {
  const secret = key?.secret?.reveal()
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    accept: 'text/event-stream, application/json',
    'user-agent': 'mason',
    [roleHeader]: ask.role,
  }
  const ownHeaders = Object.entries(model.endpoint.headers)
  if (secret !== undefined && !ownHeaders.some(([, value]) => value.includes('{{key}}')))
    headers.authorization = `Bearer ${secret}`
  for (const [name, value] of ownHeaders)
    headers[name.toLowerCase()] = value.replaceAll('{{key}}', () => secret ?? '')
  return headers
}

/** The same value with all lone surrogates replaced, keys included. */
const toWellFormedJson = (value: unknown): unknown => {
  if (typeof value === 'string') return value.toWellFormed()
  if (Array.isArray(value)) return value.map(toWellFormedJson)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key.toWellFormed(), toWellFormedJson(one)]),
  )
}

/** JSON writes a lone surrogate as an escape, which many servers refuse, so it is replaced. */
const toBody = (body: object): string => {
  const text = JSON.stringify(body)
  return text.includes('\\ud') ? JSON.stringify(toWellFormedJson(body)) : text
}

/** The HTTP request. LangChain does not get the address or the key and does not read the environment. */
export const createOpenAIRequest = (
  path: string,
  request: ProviderRequest,
  body: object,
): ProviderHttpRequest => ({
  method: 'POST',
  url: joinUrl(request.model.endpoint.base_url, path),
  headers: toHeaders(request),
  body: toBody(body),
})
