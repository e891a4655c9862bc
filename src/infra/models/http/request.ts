import type { Json } from '../../../state/runtime-state.ts'
import type { ModelEntry, ProviderRequest } from '../ports.ts'
import { type Request, roleHeader } from '../wire/send.ts'
import { TemplateFailure } from './render.ts'
import type { CompiledTemplate } from './template.ts'

/** `base` with a path (that may end with a query) added; a query of the base stays, for gateways that want one. */
export const addressUnder = (base: string, path: string): string => {
  const url = new URL(base)
  const [segments = '', ...query] = path.split('?')
  url.pathname = `${url.pathname.replace(/\/+$/, '')}${segments}`
  for (const [name, value] of new URLSearchParams(query.join('?'))) url.searchParams.append(name, value)
  url.hash = ''
  return url.href
}

const headerValue = /^[\t\x20-\x7e\x80-\xff]*$/

/** The endpoint's own headers come last. Where none of all holds the key, it goes out as `authorization`. */
const headersOf = (
  { model, key, ask }: ProviderRequest,
  template: Pick<CompiledTemplate, 'holdsKey'>,
  rendered: Readonly<Record<string, string>>,
): Record<string, string> => {
  const secret = key?.secret?.reveal()
  const given = Object.entries(model.endpoint.headers)
  const placed = template.holdsKey || given.some(([, value]) => value.includes('{{key}}'))
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream, application/x-ndjson',
    'user-agent': 'mason',
    [roleHeader]: ask.role,
    ...(secret === undefined || placed ? {} : { authorization: `Bearer ${secret}` }),
    ...rendered,
    ...Object.fromEntries(
      given.flatMap(([name, value]) => {
        if (secret === undefined && value.includes('{{key}}')) return []
        return [[name.toLowerCase(), value.replaceAll('{{key}}', () => secret ?? '')]]
      }),
    ),
  }
  const wrong = Object.entries(headers).find(([, value]) => !headerValue.test(value))
  if (wrong === undefined) return headers
  throw new TemplateFailure(`/headers/${wrong[0]}`, 'gives characters that no HTTP header can carry')
}

/** Throws TemplateFailure where the template cannot be filled with what is asked. */
export const requestOf = (
  request: ProviderRequest,
  template: CompiledTemplate,
  data: Readonly<Record<string, unknown>>,
): Request => {
  const { model, key } = request
  const { method, path, headers, body } = template.render(data, key?.secret?.reveal() ?? '')
  return {
    method,
    url: addressUnder(model.endpoint.base_url, path),
    headers: headersOf(request, template, headers),
    body,
  }
}

/** What polls' paths are made of. */
export const pollFields: ReadonlySet<string> = new Set(['job_id', 'model'])
export const pollData = (model: ModelEntry, jobId: string): Record<string, Json> => ({
  job_id: jobId,
  model: model.upstream_name,
})
