import type { Json } from '../../../state/runtime-state.ts'
import type { CanonicalRequest, ModelEntry, ProviderRequest } from '../../ports/model-ports.ts'
import { listImages } from '../../routing/vision.ts'
import type { CompiledTemplate } from '../../templates/request-template.ts'
import { TemplateError } from '../../templates/template-rendering.ts'
import { joinUrl, type ProviderHttpRequest, roleHeader } from '../../transport/http-exchange.ts'

/** The text of an image in a body: the base64 of a data: address, any other address JSON-escaped. */
const toBodyText = (address: string): string => {
  const comma = /^data:/i.test(address) ? address.indexOf(',') : -1
  return comma === -1 ? JSON.stringify(address).slice(1, -1) : address.slice(comma + 1)
}

/** Throws TemplateError where an image of the request is missing in the body. */
export const assertImagesSent = (ask: CanonicalRequest, body: string | null): void => {
  const missing = listImages(ask).find(({ url }) => !body?.includes(toBodyText(url)))
  if (missing === undefined) return
  const what = /^data:/i.test(missing.url) ? 'images' : 'images by their address, only data: ones'
  throw new TemplateError('/body', `takes no ${what}`)
}

const headerValue = /^[\t\x20-\x7e\x80-\xff]*$/

/** The endpoint's own headers come last. If no header has the key, it is sent as `authorization`. */
const toHeaders = (
  { model, key, ask }: ProviderRequest,
  template: Pick<CompiledTemplate, 'holdsKey'>,
  rendered: Readonly<Record<string, string>>,
): Record<string, string> => {
  const secret = key?.secret?.reveal()
  const ownHeaders = Object.entries(model.endpoint.headers)
  const hasKey = template.holdsKey || ownHeaders.some(([, value]) => value.includes('{{key}}'))
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream, application/x-ndjson',
    'user-agent': 'mason',
    [roleHeader]: ask.role,
    ...(secret === undefined || hasKey ? {} : { authorization: `Bearer ${secret}` }),
    ...rendered,
    ...Object.fromEntries(
      ownHeaders.flatMap(([name, value]) => {
        if (secret === undefined && value.includes('{{key}}')) return []
        return [[name.toLowerCase(), value.replaceAll('{{key}}', () => secret ?? '')]]
      }),
    ),
  }
  const invalid = Object.entries(headers).find(([, value]) => !headerValue.test(value))
  if (invalid === undefined) return headers
  throw new TemplateError(`/headers/${invalid[0]}`, 'gives characters that no HTTP header can carry')
}

/** Renders the HTTP request. Throws TemplateError where the template does not fit the request. */
export const renderRequest = (
  request: ProviderRequest,
  template: CompiledTemplate,
  data: Readonly<Record<string, unknown>>,
): ProviderHttpRequest => {
  const { model, key } = request
  const { method, path, headers, body } = template.render(data, key?.secret?.reveal() ?? '')
  return {
    method,
    url: joinUrl(model.endpoint.base_url, path),
    headers: toHeaders(request, template, headers),
    body,
  }
}

/** The fields that the path of a poll may use. */
export const pollFields: ReadonlySet<string> = new Set(['job_id', 'model'])

/** The values of `pollFields`. */
export const toPollData = (model: ModelEntry, jobId: string): Record<string, Json> => ({
  job_id: jobId,
  model: model.upstream_name,
})
