import { LRUCache } from 'lru-cache'
import type { Egress } from '../../../infra/egress/egress-port.ts'
import type { Clock } from '../../../state/ports/clock.ts'
import {
  type Provider,
  type ProviderOutcome,
  type ProviderRequest,
  type ResponseReader,
  toServerModelKey,
} from '../../ports/model-ports.ts'
import type { FormatView } from '../../schemas/response-format.ts'
import { type CompiledTemplate, compileTemplate } from '../../templates/request-template.ts'
import { toTemplateData } from '../../templates/template-data.ts'
import { TemplateError } from '../../templates/template-rendering.ts'
import { compileTemplateText } from '../../templates/template-text.ts'
import { runHttpExchange, type Transport } from '../../transport/http-exchange.ts'
import { createUnsentOutcome, type ProviderError } from '../../transport/provider-errors.ts'
import { type JobPoll, pollJob } from './job-polling.ts'
import { assertImagesSent, pollFields, renderRequest } from './template-request.ts'
import { openTemplateResponse } from './template-response.ts'

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
    what,
    'fix the response format or its request template in the registry',
  )

/** Whether a 400 or 422 is about the schema of the answer, in the words of vendors. */
const isSchemaRefusal = ({ status, body = '' }: ProviderError): boolean =>
  (status === 400 || status === 422) &&
  /json_?schema|response_?(format|schema|mime)|output_(config|format)|structured.?output|["'`]format["'`]/i.test(
    body,
  )

const compileTemplateFormat = (format: FormatView, options: HttpProviderOptions): Compiled => {
  if (format.request == null)
    throw new TemplateError('/request', 'the response format has no request template')
  const { poll } = format
  return {
    format,
    reader: options.compile(format),
    template: compileTemplate(format.request),
    poll:
      poll == null
        ? null
        : { ...poll, text: compileTemplateText(poll.path, { fields: pollFields, allowsKey: false }) },
  }
}

/** The `http` protocol: any vendor, with a request template and a response format. */
export const openHttpProvider = (options: HttpProviderOptions): Provider => {
  const { egress, clock, maxBytes = defaultMaxBytes, maxEvent = defaultMaxEvent } = options
  const transport: Transport = { egress, clock, maxBytes, maxEvent }
  const compiled = new WeakMap<FormatView, Compiled>()
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
      throw new TemplateError('', `cannot be used: ${error instanceof Error ? error.message : String(error)}`)
    }
  }

  const sendTo = async (
    known: Compiled,
    request: ProviderRequest,
    signal: AbortSignal,
  ): Promise<ProviderOutcome> => {
    const { format, reader, template, poll } = known
    const { model, ask, endsAtMs } = request
    const stream = ask.stream && format.stream != null
    const inWords =
      ask.schema !== null && (!template.uses.has('schema') || inWordsOnly.has(toServerModelKey(model)))
    const submitted = renderRequest(
      request,
      template,
      toTemplateData(model, ask, { stream, schemaInPrompt: inWords }),
    )
    assertImagesSent(ask, submitted.body)
    const answer = openTemplateResponse({ ...request, reader, format })
    const exchangeResult = await runHttpExchange(
      transport,
      {
        request: submitted,
        endpoint: model.endpoint,
        endsAtMs,
        expects: stream ? (format.stream?.format ?? 'sse') : 'whole',
        done: format.stream?.done ?? null,
        take: answer.take,
      },
      signal,
    )
    const outcome = answer.outcome(exchangeResult)
    if (outcome.ok) {
      const { result } = outcome
      if (poll === null || result.job === null) return outcome
      return pollJob(result, { transport, request, submitted, reader, format, poll }, signal)
    }
    if (ask.schema === null || inWords || !isSchemaRefusal(outcome.error)) return outcome
    inWordsOnly.set(toServerModelKey(model), true)
    return { ...outcome, error: { ...outcome.error, retryNow: true } }
  }

  return {
    prepare: async () => egress.prepare?.(),
    async send(request, signal) {
      signal.throwIfAborted()
      const { format } = request.model
      if (format === null) return toRefusedOutcome('was not asked: the model names no response format')
      try {
        return await sendTo(compileOnce(format), request, signal)
      } catch (error) {
        if (!(error instanceof TemplateError)) throw error
        return toRefusedOutcome(
          `was not asked: its response format, at ${error.pointer || '/'}: ${error.message}`,
        )
      }
    },
  }
}
