import { LRUCache } from 'lru-cache'
import type { Egress } from '../../../infra/egress/egress-port.ts'
import { createCallIdForms } from '../../../models/chat/call-ids.ts'
import {
  type CanonicalRequest,
  type CanonicalResult,
  emptyResult,
  type PendingJob,
  type Provider,
  type ProviderOutcome,
  type ProviderRequest,
  type ResponseReader,
  toServerModelKey,
} from '../../../models/ports/model-ports.ts'
import { type AnswerDraft, exchangeAnswer } from '../../../models/providers/answer-exchange.ts'
import { createHttpRequest, joinUrl } from '../../../models/providers/provider-request.ts'
import { listImages } from '../../../models/routing/vision.ts'
import type { FormatView, PollFormat } from '../../../models/schemas/response-format.ts'
import { isSchemaRefusal } from '../../../models/transport/error-table.ts'
import type { ProviderHttpRequest, Transport } from '../../../models/transport/http-exchange.ts'
import { createJsonParser } from '../../../models/transport/json-parser.ts'
import { downloadMedia } from '../../../models/transport/media-download.ts'
import {
  createBadReplyError,
  createTimeoutError,
  createUnsentOutcome,
  type ProviderError,
} from '../../../models/transport/provider-errors.ts'
import { toErrorMessage } from '../../../state/errors.ts'
import type { Clock } from '../../../state/ports/clock.ts'
import { type CompiledTemplate, compileTemplate, renderPath } from '../templates/request-template.ts'
import { toTemplateData } from '../templates/template-data.ts'
import { TemplateError } from '../templates/template-rendering.ts'
import { compileTemplateText, type TemplateText } from '../templates/template-text.ts'
import { createFormatDraft } from './format-draft.ts'

/** How a response format polls a job, with its compiled path. */
type JobPoll = PollFormat & { text: TemplateText; contentText: TemplateText | null }

const pollFields: ReadonlySet<string> = new Set(['job_id', 'model'])

/** Throws TemplateTextError. */
const compilePoll = (poll: PollFormat): JobPoll => {
  const rules = { fields: pollFields, allowsKey: false }
  return {
    ...poll,
    text: compileTemplateText(poll.path, rules),
    contentText: poll.content === undefined ? null : compileTemplateText(poll.content, rules),
  }
}

/** Consecutive polls that may fail before the job is given up: it is paid for, so a short failure must not lose it. */
const defaultMaxFailures = 5

type Options = {
  transport: Transport
  request: ProviderRequest
  /** The request that submitted the job; polls reuse its headers. */
  submitted: ProviderHttpRequest
  openDraft(): AnswerDraft
  poll: JobPoll
  maxFailures?: number
}

const toFailedOutcome = (result: CanonicalResult, status: string): ProviderOutcome => {
  const error: ProviderError = { code: 'model_unavailable', what: `ended its job as ${status}`, retry: false }
  return { ok: false, error, usage: result.usage }
}

/** Polls one job, a request at a time. */
const createPolling = (
  first: CanonicalResult,
  { transport, request, submitted, openDraft, poll, maxFailures = defaultMaxFailures }: Options,
  signal: AbortSignal,
) => {
  const { clock } = transport
  const { model, endsAtMs } = request
  const { endpoint } = model
  const { 'content-type': _, ...headers } = submitted.headers
  const jobId = first.job?.id ?? ''
  let result = first
  let failures = 0
  const isDone = (): boolean => poll.done.includes(result.job?.status ?? '')
  const toUrl = (text: TemplateText, pointer: string): string =>
    joinUrl(endpoint.base_url, renderPath(text, { job_id: jobId, model: model.upstream_name }, pointer))

  const fetchContent = async (text: TemplateText): Promise<ProviderOutcome> => {
    const url = toUrl(text, '/poll/content')
    const downloaded = await downloadMedia(transport, { url, headers, endpoint, endsAtMs }, signal)
    return 'error' in downloaded
      ? { ok: false, error: downloaded.error, usage: null }
      : { ok: true, result: { ...result, video: downloaded } }
  }
  const send = (): Promise<ProviderOutcome> => {
    if (isDone() && poll.contentText !== null) return fetchContent(poll.contentText)
    const url = toUrl(poll.text, '/poll/path')
    const pollRequest = { method: poll.method, url, headers, body: null }
    const exchange = { request: pollRequest, expects: 'whole' as const, done: null }
    return exchangeAnswer(transport, exchange, openDraft(), request, signal)
  }
  /** What the latest result says. A job that is done has its content fetched at once. */
  const judge = (waitMs = poll.interval_ms): ProviderOutcome | PendingJob => {
    const status = result.job?.status ?? null
    if (status !== null && poll.failed.includes(status)) return toFailedOutcome(result, status)
    if (isDone() && (poll.contentText === null || result.video !== null)) return { ok: true, result }
    if (jobId === '')
      return { ok: false, error: createBadReplyError('named no job to ask for'), usage: result.usage }
    if (waitMs >= endsAtMs - clock.monotonicMs())
      return { ok: false, error: createTimeoutError('total', endpoint.timeouts.totalMs), usage: result.usage }
    return { againInMs: isDone() && failures === 0 ? 0 : waitMs }
  }

  return {
    judge,
    async poll(): Promise<ProviderOutcome | PendingJob> {
      const outcome = await send()
      if (outcome.ok) {
        result = { ...outcome.result, usage: outcome.result.usage ?? result.usage }
        failures = 0
        return judge()
      }
      failures += 1
      const { retry, reported, code, retryAfterMs = 0 } = outcome.error
      // what a vendor says of the job is final; that it limits our polls is not
      const isFinal = !retry || (reported && code !== 'model_rate_limited')
      if (isFinal || failures === maxFailures) return { ...outcome, usage: outcome.usage ?? result.usage }
      return judge(Math.max(poll.interval_ms, retryAfterMs))
    },
  }
}

const isPending = (outcome: ProviderOutcome | PendingJob): outcome is PendingJob => 'againInMs' in outcome

/** Polls a job until it is done, failed, or out of time. Rejects only when the caller aborts, with the signal's reason. */
const pollJob = async (
  first: CanonicalResult,
  options: Options,
  signal: AbortSignal,
): Promise<ProviderOutcome> => {
  const polling = createPolling(first, options, signal)
  let outcome = polling.judge()
  while (isPending(outcome)) {
    if (outcome.againInMs > 0) await options.transport.clock.sleep(outcome.againInMs, signal)
    outcome = await polling.poll()
  }
  return outcome
}

/** Polls a job once, and fetches its content where it is done; `againInMs`: it goes on. A failed poll does not end it. */
const pollJobOnce = async (
  job: CanonicalResult,
  options: Omit<Options, 'maxFailures'>,
  signal: AbortSignal,
): Promise<ProviderOutcome | PendingJob> => {
  const polling = createPolling(job, { ...options, maxFailures: Number.POSITIVE_INFINITY }, signal)
  let outcome = await polling.poll()
  while (isPending(outcome) && outcome.againInMs === 0) outcome = await polling.poll()
  return outcome
}

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
export type HttpProviderOptions = {
  egress: Egress
  clock: Clock
  /** Compiles a format's paths. */
  compile(format: FormatView): ResponseReader
  /** The largest answer, in bytes after decompression. */
  maxBytes?: number
  /** The longest event or line of a stream, in characters. */
  maxEvent?: number
}

type Compiled = {
  format: FormatView
  reader: ResponseReader
  template: CompiledTemplate
  poll: JobPoll | null
}

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

const compileTemplateFormat = (format: FormatView, { compile }: HttpProviderOptions): Compiled => {
  if (format.request == null)
    throw new TemplateError('/request', 'the response format has no request template')
  return {
    format,
    reader: compile(format),
    template: compileTemplate(format.request),
    poll: format.poll == null ? null : compilePoll(format.poll),
  }
}

/** The `http` protocol: any vendor, with a request template and a response format. */
export const openHttpProvider = (options: HttpProviderOptions): Required<Provider> => {
  const { egress, clock, maxBytes = defaultMaxBytes, maxEvent = defaultMaxEvent } = options
  const transport: Transport = { egress, clock, maxBytes, maxEvent, parseJson: createJsonParser() }
  const compiled = new WeakMap<FormatView, Compiled>()
  const callIds = createCallIdForms()
  /** Models that refuse schemas: the prompt describes the schema. */
  const inWordsOnly = new LRUCache<string, true>({ max: maxSchemaRefusals })

  /** Throws TemplateError: a format in use may be broken, or stored by another version. */
  const compileOnce = (format: FormatView): Compiled => {
    try {
      const known = compiled.get(format) ?? compileTemplateFormat(format, options)
      compiled.set(format, known)
      return known
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
