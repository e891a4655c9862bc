import { LRUCache } from 'lru-cache'
import { createCallIdForms } from '../../../models/chat/call-ids.ts'
import {
  type CanonicalRequest,
  emptyResult,
  type PendingJob,
  type Provider,
  type ProviderOutcome,
  type ProviderRequest,
  toServerModelKey,
} from '../../../models/ports/model-ports.ts'
import { exchangeAnswer } from '../../../models/providers/answer-exchange.ts'
import { createHttpRequest } from '../../../models/providers/provider-request.ts'
import type { ResponseFormats } from '../../../models/providers/response-formats.ts'
import { listImages } from '../../../models/routing/vision.ts'
import type { FormatView } from '../../../models/schemas/response-format.ts'
import { isSchemaRefusal } from '../../../models/transport/error-table.ts'
import type { ProviderHttpRequest, Transport } from '../../../models/transport/http-exchange.ts'
import { createJsonParser } from '../../../models/transport/json-parser.ts'
import { createUnsentOutcome } from '../../../models/transport/provider-errors.ts'
import { toErrorMessage } from '../../../state/errors.ts'
import { memoizeByObject } from '../../../state/memoize.ts'
import { type CompiledTemplate, compileTemplate } from '../templates/request-template.ts'
import { toTemplateData } from '../templates/template-data.ts'
import { TemplateError } from '../templates/template-rendering.ts'
import { createFormatDraft } from './format-draft.ts'
import { compilePoll, pollJob, pollJobOnce } from './job-polling.ts'

/** The text of an image in a body: the base64 of a data: address, any other address JSON-escaped. */
const toBodyText = (address: string): string => {
  const comma = /^data:/i.test(address) ? address.indexOf(',') : -1
  return comma === -1 ? JSON.stringify(address).slice(1, -1) : address.slice(comma + 1)
}

/** Throws TemplateError where an image of the request is missing in the body. */
const assertImagesSent = (ask: CanonicalRequest, body: string | Uint8Array | null): void => {
  const missing = listImages(ask).find(
    ({ url }) => typeof body !== 'string' || !body.includes(toBodyText(url)),
  )
  if (missing === undefined) return
  const what = /^data:/i.test(missing.url) ? 'images' : 'images by their address, only data: ones'
  throw new TemplateError('/body', `takes no ${what}`)
}

/** Throws TemplateError where the template has no field for the files of the request. */
const assertFilesUsed = ({ files = [] }: CanonicalRequest, { uses }: CompiledTemplate): void => {
  if (files.length > 0 && !uses.has('file') && !uses.has('files'))
    throw new TemplateError('/body', 'takes no file')
}

const headerValue = /^[\t\x20-\x7e\x80-\xff]*$/

/** Renders the HTTP request. Throws TemplateError where the template does not fit the request. */
const renderRequest = (
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

/** What the provider is made of. */
export type HttpProviderOptions = Parameters<ResponseFormats['openProvider']>[0] &
  Pick<ResponseFormats, 'compile'>

const defaultMaxBytes = 32 * 1024 * 1024
const defaultMaxEvent = 8 * 1024 * 1024
/** How many models are cached as refusing schemas. */
const maxSchemaRefusals = 10_000

const toRefusedOutcome = (what: string): ProviderOutcome =>
  createUnsentOutcome(
    'model_bad_request',
    `was not asked: ${what}`,
    'fix the response format or its request template in the registry',
  )

const compileTemplateFormat = (format: FormatView, { compile }: HttpProviderOptions) => {
  if (format.request == null)
    throw new TemplateError('/request', 'the response format has no request template')
  return {
    format,
    reader: compile(format),
    template: compileTemplate(format.request),
    poll: format.poll == null ? null : compilePoll(format.poll),
  }
}
type Compiled = ReturnType<typeof compileTemplateFormat>

/** The `http` protocol: any vendor, with a request template and a response format. */
export const openHttpProvider = (options: HttpProviderOptions): Required<Provider> => {
  const { egress, clock, maxBytes = defaultMaxBytes, maxEvent = defaultMaxEvent } = options
  const transport: Transport = { egress, clock, maxBytes, maxEvent, parseJson: createJsonParser() }
  const compile = memoizeByObject((format: FormatView) => compileTemplateFormat(format, options))
  const callIds = createCallIdForms()
  /** Models that refuse schemas: the prompt describes the schema. */
  const inWordsOnly = new LRUCache<string, true>({ max: maxSchemaRefusals })

  /** Throws TemplateError: a format in use may be broken, or stored by another version. */
  const compileOnce = (format: FormatView): Compiled => {
    try {
      return compile(format)
    } catch (error) {
      if (error instanceof TemplateError) throw error
      throw new TemplateError('', `cannot be used: ${toErrorMessage(error)}`)
    }
  }

  const sendTo = async (
    { format, reader, template, poll }: Compiled,
    request: ProviderRequest,
    signal: AbortSignal,
  ): Promise<ProviderOutcome> => {
    const { model, ask } = request
    const { stream: events = null } = format
    const stream = ask.stream && events !== null
    const schemaInPrompt =
      ask.schema !== null && (!template.uses.has('schema') || inWordsOnly.has(toServerModelKey(model)))
    const asked = callIds.apply(model, ask)
    const submitted = renderRequest(
      request,
      template,
      toTemplateData(model, asked, { stream, schemaInPrompt }),
    )
    assertImagesSent(ask, submitted.body)
    assertFilesUsed(ask, template)
    const expects = stream ? events.format : template.receivesBytes ? 'bytes' : 'whole'
    const done = events?.done ?? null
    // a path or a closing event marks the end; otherwise the end of the body does
    const marksItsEnd = events?.paths.finish !== undefined || done !== null
    const openDraft = () =>
      createFormatDraft(reader, { format: events?.format ?? 'sse', marksItsEnd, comesAsList: true }, request)
    const exchange = { request: submitted, expects, done, beforeSend: request.beforeSubmit } as const
    const outcome = await exchangeAnswer(transport, exchange, openDraft(), request, signal)
    if (outcome.ok) {
      const { result } = outcome
      if (poll === null || result.job === null || request.beforeSubmit) return outcome
      return pollJob(result, { transport, request, submitted, openDraft, poll }, signal)
    }
    if (callIds.noteRefusal(model, ask, outcome.error))
      return { ...outcome, error: { ...outcome.error, retryNow: true } }
    if (ask.schema === null || schemaInPrompt || !isSchemaRefusal(outcome.error)) return outcome
    inWordsOnly.set(toServerModelKey(model), true)
    return { ...outcome, error: { ...outcome.error, retryNow: true } }
  }

  const pollOnce = (
    { reader, template, poll }: Compiled,
    request: ProviderRequest,
    jobId: string,
    signal: AbortSignal,
  ): Promise<ProviderOutcome | PendingJob> => {
    if (poll === null) throw new TemplateError('/poll', 'does not say how to poll a job')
    const data = toTemplateData(request.model, request.ask, { stream: false, schemaInPrompt: false })
    const submitted = renderRequest(request, template, data)
    const openDraft = () =>
      createFormatDraft(reader, { format: 'sse', marksItsEnd: false, comesAsList: true }, request)
    const first = { ...emptyResult, job: { id: jobId, status: null } }
    return pollJobOnce(first, { transport, request, submitted, openDraft, poll }, signal)
  }

  const withFormat = async <Outcome>(
    { model: { format } }: ProviderRequest,
    work: (known: Compiled) => Promise<Outcome>,
    signal: AbortSignal,
  ): Promise<Outcome | ProviderOutcome> => {
    signal.throwIfAborted()
    if (format === null) return toRefusedOutcome('the model names no response format')
    try {
      return await work(compileOnce(format))
    } catch (error) {
      if (!(error instanceof TemplateError)) throw error
      return toRefusedOutcome(`its response format, at ${error.pointer || '/'}: ${error.message}`)
    }
  }

  return {
    prepare: async () => egress.prepare?.(),
    send: (request, signal) => withFormat(request, (known) => sendTo(known, request, signal), signal),
    poll: (request, jobId, signal) =>
      withFormat(request, (known) => pollOnce(known, request, jobId, signal), signal),
  }
}
