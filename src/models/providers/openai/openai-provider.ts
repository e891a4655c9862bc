import { LRUCache } from 'lru-cache'
import type { Egress } from '../../../infra/egress/egress-port.ts'
import { toErrorMessage } from '../../../state/errors.ts'
import { openOnce } from '../../../state/open-once.ts'
import type { Clock } from '../../../state/ports/clock.ts'
import type { Log } from '../../../state/ports/log.ts'
import { createCallIdForms } from '../../chat/call-ids.ts'
import {
  type ChatRequestBody,
  lowerSchemaMode,
  type SchemaMode,
  toChatRequestBody,
} from '../../chat/chat-request.ts'
import {
  type CanonicalResult,
  emptyResult,
  type ModelEntry,
  type Provider,
  type ProviderOutcome,
  type ProviderRequest,
  type ResponseReader,
  toServerModelKey,
} from '../../ports/model-ports.ts'
import { VendorReportedError } from '../../ports/unreadable-response.ts'
import { isSchemaRefusal } from '../../transport/error-table.ts'
import type { Transport } from '../../transport/http-exchange.ts'
import { createJsonParser } from '../../transport/json-parser.ts'
import { createBadReplyError, createUnsentOutcome } from '../../transport/provider-errors.ts'
import { findReportedError } from '../../transport/upstream-error.ts'
import { type AnswerDraft, exchangeAnswer } from '../answer-exchange.ts'
import { createHttpRequest } from '../provider-request.ts'
import type { ResponseFormats } from '../response-formats.ts'
import { readEmbeddings } from './chat-chunk.ts'
import type { PostRequest } from './langchain-clients.ts'
import { createReplyDraft } from './reply-draft.ts'

/** JSON writes a lone surrogate as an escape, which many servers refuse, so it is replaced; not what follows a backslash. */
const toBody = (body: object): string =>
  JSON.stringify(body).replaceAll(/\\ud[0-9a-f]{3}(?<=(?<!\\)(?:\\\\)*.{6})/g, '\ufffd')

/** One request of the protocol. */
type OpenAIExchange = {
  path: '/chat/completions' | '/embeddings'
  isStreamed: boolean
  transport: Transport
  draft: AnswerDraft
}

/** Throws VendorReportedError for an error in place of an answer, in any vendor's shape. */
const assertNoError = (value: unknown): void => {
  const error = findReportedError(value)
  if (error !== null) throw new VendorReportedError('/error', 'an error in place of an answer', error)
}

/**
 * Sends what LangChain has built and gives to `post`: it does not get the address, the key or the answer, and does not
 * read the environment.
 */
const exchangeOpenAI = async (
  { path, isStreamed, transport, draft }: OpenAIExchange,
  request: ProviderRequest,
  ask: (post: PostRequest) => Promise<void>,
  signal: AbortSignal,
): Promise<ProviderOutcome> => {
  let outcome: ProviderOutcome | undefined
  const take: AnswerDraft['take'] = (chunk, whole) => {
    assertNoError(chunk)
    draft.take(chunk, whole)
  }
  await ask(async (body) => {
    const headers = { accept: 'text/event-stream, application/json' }
    const built = { method: 'POST' as const, path, headers, holdsKey: false, body: toBody(body) }
    const exchange = {
      request: createHttpRequest(request, built),
      expects: isStreamed ? ('sse' as const) : ('whole' as const),
      done: isStreamed ? '[DONE]' : null,
    }
    outcome = await exchangeAnswer(transport, exchange, { ...draft, take }, request, signal)
  })
  if (outcome === undefined) throw new Error('LangChain did not send the request')
  return outcome
}

/** Checks for one vector per text, all of one length: servers without base64 may send none. */
const findVectorError = ({ embeddings }: CanonicalResult, texts: number): string | null => {
  if (embeddings.length !== texts) return `sent ${embeddings.length} embeddings for ${texts} texts`
  const lengths = new Set(embeddings.map(({ length }) => length))
  return lengths.size > 1 || lengths.has(0)
    ? `sent embeddings of ${[...lengths].join(' and ')} numbers`
    : null
}

const createEmbeddingsDraft = (reader: ResponseReader | null, texts: number): AnswerDraft => {
  let result = emptyResult
  return {
    take: (answer) => {
      result = reader === null ? { ...emptyResult, ...readEmbeddings(answer) } : reader.read(answer)
    },
    size: () => 0,
    finished: () => result !== emptyResult,
    findEndError: () => {
      const what = findVectorError(result, texts)
      return what === null ? undefined : createBadReplyError(what, false)
    },
    usage: () => result.usage,
    end: () => result,
  }
}

/**
 * Sends one provider request to an embedding model; its outcome is a value. Rejects only when the caller aborts.
 * `reader` null: the answer is OpenAI's list of embeddings.
 */
const createEmbeddings = async (
  { transport, reader }: { transport: Transport; reader: ResponseReader | null },
  request: ProviderRequest,
  signal: AbortSignal,
): Promise<ProviderOutcome> => {
  const { EmbeddingClient } = await import('./langchain-clients.ts')
  const { input, parameters } = request.ask
  const draft = createEmbeddingsDraft(reader, input.length)
  const exchange = { path: '/embeddings' as const, isStreamed: false, transport, draft }
  const body = {
    model: request.model.upstream_name,
    input: [...input],
    // servers without base64 would silently send empty lists
    encoding_format: 'float' as const,
    ...(typeof parameters.dimensions === 'number' && { dimensions: parameters.dimensions }),
  }
  return exchangeOpenAI(exchange, request, (post) => new EmbeddingClient(post).request(body), signal)
}

/** What the provider is made of. */
export type OpenAIProviderOptions = {
  egress: Egress
  formats: ResponseFormats
  clock: Clock
  log: Log
  /** The largest answer, in bytes after decompression. */
  maxBytes?: number
}

const defaultMaxBytes = 32 * 1024 * 1024
/** How many servers, models and roles have a cached schema mode. */
const maxModes = 10_000

/** Servers that speak OpenAI's protocol, through LangChain's clients: any endpoint, any key. */
export const createOpenAIProvider = (options: OpenAIProviderOptions): Provider => {
  const { egress, formats, clock, log, maxBytes = defaultMaxBytes } = options
  // LangChain is loaded by the first call
  const openChat = openOnce(async () => new (await import('./langchain-clients.ts')).ChatClient())
  const transport: Transport = { egress, clock, maxBytes, maxEvent: maxBytes, parseJson: createJsonParser() }
  /** How a role of a model requests JSON from its server: the mode that was not refused. */
  const modes = new LRUCache<string, SchemaMode>({ max: maxModes })
  const callIds = createCallIdForms()
  const http = formats.openProvider({ egress, clock, maxBytes })

  /** Null: answers have the protocol's own shape. A broken format may be in use, or stored by another version. */
  const readerFor = (model: ModelEntry): ResponseReader | ProviderOutcome | null => {
    try {
      return model.format && formats.compile(model.format)
    } catch (error) {
      const message = toErrorMessage(error)
      return createUnsentOutcome(
        'model_unreadable_answer',
        `was not asked: the response format cannot be used: ${message}`,
      )
    }
  }

  /**
   * Sends one provider request to a chat model. With `completionWithRetry`, reading the raw chunks: the message chunks of `stream()` lose tool
   * calls of servers that send no role, lose the usage of a truncated stream, and need a callback manager that reads the environment.
   */
  const completeChat = async (
    ask: ChatRequestBody,
    reader: ResponseReader | null,
    request: ProviderRequest,
    signal: AbortSignal,
  ): Promise<ProviderOutcome> => {
    const chat = await openChat()
    const isStreamed = reader === null || reader.stream([]) !== null
    const draft = reader === null ? createReplyDraft(request) : formats.openDraft(reader, request)
    const parameters = {
      ...chat.invocationParams(ask.options, { streaming: isStreamed }),
      ...ask.parameters,
      model: request.model.upstream_name,
      messages: ask.messages,
      stream: isStreamed,
    }
    const exchange = { path: '/chat/completions' as const, isStreamed, transport, draft }
    return exchangeOpenAI(exchange, request, (post) => chat.ask(parameters, post), signal)
  }

  /** Stores and returns the next mode after a refusal of `response_format`; undefined: there is none. */
  const lowerMode = (outcome: ProviderOutcome, name: string, mode: SchemaMode): SchemaMode | undefined => {
    if (outcome.ok || !isSchemaRefusal(outcome.error)) return undefined
    const lower = lowerSchemaMode(mode)
    modes.delete(name)
    if (lower === undefined) return undefined
    modes.set(name, lower)
    return lower
  }

  return {
    prepare: () => Promise.all([openChat(), egress.prepare?.()]),
    async send(request: ProviderRequest, signal: AbortSignal): Promise<ProviderOutcome> {
      signal.throwIfAborted()
      const { model, ask } = request
      const ofCategory = formats.ofCategory(model)
      if (ofCategory !== null) return http.send({ ...request, model: ofCategory }, signal)
      const reader = readerFor(model)
      if (reader !== null && 'ok' in reader) return reader
      if (model.category === 'embedding') return createEmbeddings({ transport, reader }, request, signal)
      const name = `${toServerModelKey(model)} ${ask.role}`
      const mode = modes.get(name) ?? 'json_schema'
      const body = toChatRequestBody(callIds.apply(model, ask), mode)
      const outcome = await completeChat(body, reader, request, signal)
      if (!outcome.ok && callIds.noteRefusal(model, ask, outcome.error))
        return { ...outcome, error: { ...outcome.error, retryNow: true } }
      const lower = ask.schema === null ? undefined : lowerMode(outcome, name, mode)
      if (lower === undefined || outcome.ok) return outcome
      log.info(
        { role: ask.role, model: model.name, response_format: lower },
        'the model server refuses response_format',
      )
      return { ...outcome, error: { ...outcome.error, retryNow: true } }
    },
    async poll(request, jobId, signal) {
      const model = formats.ofCategory(request.model) ?? request.model
      return http.poll({ ...request, model }, jobId, signal)
    },
  }
}
