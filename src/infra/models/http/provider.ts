import type { Clock } from '../../../state/ports.ts'
import type { FormatView } from '../../../state/registry/response-format.ts'
import type { Egress } from '../../egress/port.ts'
import { modelAt } from '../model-at.ts'
import type { AnswerReader, Provider, ProviderOutcome, ProviderRequest } from '../ports.ts'
import type { Fault } from '../wire/faults.ts'
import { talk, type Wire } from '../wire/talk.ts'
import { openAnswer } from './answer.ts'
import { canonicalOf } from './canonical.ts'
import { checkImagesSent } from './images.ts'
import { followJob, type Poll } from './poll.ts'
import { TemplateFailure } from './render.ts'
import { pollFields, requestOf } from './request.ts'
import { type CompiledTemplate, compileTemplate } from './template.ts'
import { compileText } from './text.ts'

/** The `http` protocol: any vendor, asked by a request template and read by a response format. */

export type HttpProviderOptions = {
  egress: Egress
  clock: Clock
  /** Compiles a format's paths. */
  compile(format: FormatView): AnswerReader
  /** The most an answer may weigh, in bytes after decompression. */
  maxBytes?: number
  /** The most one event or line of a stream may hold, in characters. */
  maxEvent?: number
}

type Compiled = { format: FormatView; reader: AnswerReader; template: CompiledTemplate; poll: Poll | null }

const defaultMaxBytes = 32 * 1024 * 1024
const defaultMaxEvent = 8 * 1024 * 1024
/** Models whose refusal of schemas is remembered. */
const mostInWords = 10_000

const refusal = (what: string): ProviderOutcome => {
  const remedy = 'mend the response format or its request template in the registry'
  return { ok: false, fault: { code: 'model_bad_request', what, retry: false, remedy }, usage: null }
}

/** Whether a 400 or 422 is about the schema that the answer should have, as vendors word it. */
const refusesSchema = ({ status, body = '' }: Fault): boolean =>
  (status === 400 || status === 422) &&
  /json_?schema|response_?(format|schema|mime)|output_(config|format)|structured.?output|["'`]format["'`]/i.test(
    body,
  )

const compileFormat = (format: FormatView, options: HttpProviderOptions): Compiled => {
  if (format.request == null)
    throw new TemplateFailure('/request', 'the response format has no request template')
  const { poll } = format
  return {
    format,
    reader: options.compile(format),
    template: compileTemplate(format.request),
    poll:
      poll == null
        ? null
        : { ...poll, text: compileText(poll.path, { known: pollFields, mayHoldKey: false }) },
  }
}

export const openHttpProvider = (options: HttpProviderOptions): Provider => {
  const { egress, clock, maxBytes = defaultMaxBytes, maxEvent = defaultMaxEvent } = options
  const wire: Wire = { egress, clock, maxBytes, maxEvent }
  const compiled = new WeakMap<FormatView, Compiled>()
  /** Models that take no schema of their answer: it is asked for in words. */
  const inWordsOnly = new Set<string>()

  /** Throws TemplateFailure: a format in use may be broken all the same, or stored by another version. */
  const compiledOf = (format: FormatView): Compiled => {
    try {
      const known = compiled.get(format) ?? compileFormat(format, options)
      compiled.set(format, known)
      return known
    } catch (error) {
      if (error instanceof TemplateFailure) throw error
      throw new TemplateFailure(
        '',
        `cannot be used: ${error instanceof Error ? error.message : String(error)}`,
      )
    }
  }

  const sendTo = async (
    known: Compiled,
    request: ProviderRequest,
    signal: AbortSignal,
  ): Promise<ProviderOutcome> => {
    const { format, reader, template, poll } = known
    const { model, ask, endsAtMs, usedIds, onDelta, onUsage, onRaw } = request
    const { timeouts: clocks, allow_private: allowPrivate } = model.endpoint
    const stream = ask.stream && format.stream != null
    const inWords = ask.schema !== null && (!template.uses.has('schema') || inWordsOnly.has(modelAt(model)))
    const submitted = requestOf(request, template, canonicalOf(model, ask, { stream, inWords }))
    checkImagesSent(ask, submitted.body)
    const listeners = {
      ...(onUsage === undefined ? {} : { onUsage }),
      ...(onRaw === undefined ? {} : { onRaw }),
    }
    const answer = openAnswer({ reader, format, usedIds, onDelta, ...listeners })
    const talked = await talk(
      wire,
      {
        request: submitted,
        allowPrivate,
        clocks,
        endsAtMs,
        expects: stream ? (format.stream?.format ?? 'sse') : 'whole',
        done: format.stream?.done ?? null,
        take: answer.take,
      },
      signal,
    )
    const outcome = answer.outcome(talked)
    if (outcome.ok) {
      const { result } = outcome
      if (poll === null || result.job === null) return outcome
      return followJob(result, { wire, request, submitted, reader, format, poll }, signal)
    }
    if (ask.schema === null || inWords || !refusesSchema(outcome.fault)) return outcome
    if (inWordsOnly.size >= mostInWords) inWordsOnly.clear()
    inWordsOnly.add(modelAt(model))
    return { ...outcome, fault: { ...outcome.fault, again: true } }
  }

  return {
    prepare: async () => egress.prepare?.(),
    async send(request, signal) {
      signal.throwIfAborted()
      const { format } = request.model
      if (format === null) return refusal('was not asked: the model names no response format')
      try {
        return await sendTo(compiledOf(format), request, signal)
      } catch (error) {
        if (!(error instanceof TemplateFailure)) throw error
        return refusal(`was not asked: its response format, at ${error.pointer || '/'}: ${error.message}`)
      }
    },
  }
}
