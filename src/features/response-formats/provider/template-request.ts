import type { CanonicalRequest, ProviderRequest } from '../../../models/ports/model-ports.ts'
import { createHttpRequest } from '../../../models/providers/provider-request.ts'
import { listImages } from '../../../models/routing/vision.ts'
import type { ProviderHttpRequest } from '../../../models/transport/http-exchange.ts'
import type { CompiledTemplate } from '../templates/request-template.ts'
import { TemplateError } from '../templates/template-rendering.ts'

/** The text of an image in a body: the base64 of a data: address, any other address JSON-escaped. */
const toBodyText = (address: string): string => {
  const comma = /^data:/i.test(address) ? address.indexOf(',') : -1
  return comma === -1 ? JSON.stringify(address).slice(1, -1) : address.slice(comma + 1)
}

/** Throws TemplateError where an image of the request is missing in the body. */
export const assertImagesSent = (ask: CanonicalRequest, body: string | Uint8Array | null): void => {
  const missing = listImages(ask).find(
    ({ url }) => typeof body !== 'string' || !body.includes(toBodyText(url)),
  )
  if (missing === undefined) return
  const what = /^data:/i.test(missing.url) ? 'images' : 'images by their address, only data: ones'
  throw new TemplateError('/body', `takes no ${what}`)
}

/** Throws TemplateError where the template has no field for the files of the request. */
export const assertFilesUsed = ({ files = [] }: CanonicalRequest, { uses }: CompiledTemplate): void => {
  if (files.length > 0 && !uses.has('file') && !uses.has('files'))
    throw new TemplateError('/body', 'takes no file')
}

const headerValue = /^[\t\x20-\x7e\x80-\xff]*$/

/** Renders the HTTP request. Throws TemplateError where the template does not fit the request. */
export const renderRequest = (
  request: ProviderRequest,
  { holdsKey, render }: CompiledTemplate,
  data: Readonly<Record<string, unknown>>,
): ProviderHttpRequest => {
  const { headers, ...rendered } = render(data, request.key?.secret?.reveal() ?? '')
  const accept = 'application/json, text/event-stream, application/x-ndjson'
  const built = createHttpRequest(request, { ...rendered, holdsKey, headers: { accept, ...headers } })
  const invalid = Object.entries(built.headers).find(([, value]) => !headerValue.test(value))
  if (invalid === undefined) return built
  throw new TemplateError(`/headers/${invalid[0]}`, 'gives characters that no HTTP header can carry')
}
