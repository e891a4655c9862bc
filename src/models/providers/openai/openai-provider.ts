import { LRUCache } from 'lru-cache'
import type { Egress } from '../../../infra/egress/egress-port.ts'
import { toErrorMessage } from '../../../state/errors.ts'
import { openOnce } from '../../../state/open-once.ts'
import type { Clock } from '../../../state/ports/clock.ts'
import type { Log } from '../../../state/ports/log.ts'
import { createCallIdForms } from '../../chat/call-ids.ts'
import { lowerSchemaMode, type SchemaMode, toChatRequestBody } from '../../chat/chat-request.ts'
import {
  type ModelEntry,
  type Provider,
  type ProviderOutcome,
  type ProviderRequest,
  type ResponseReader,
  toServerModelKey,
} from '../../ports/model-ports.ts'
import { isSchemaRefusal } from '../../transport/error-table.ts'
import type { Transport } from '../../transport/http-exchange.ts'
import { createJsonParser } from '../../transport/json-parser.ts'
import { createUnsentOutcome } from '../../transport/provider-errors.ts'
import type { ResponseFormats } from '../response-formats.ts'
import { completeChat } from './chat-completion.ts'
import { createEmbeddings } from './embeddings.ts'

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
      const client = await openChat()
      const name = `${toServerModelKey(model)} ${ask.role}`
      const mode = modes.get(name) ?? 'json_schema'
      const body = toChatRequestBody(callIds.apply(model, ask), mode)
      const outcome = await completeChat(
        { chat: client, transport, ask: body, reader, formats },
        request,
        signal,
      )
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
