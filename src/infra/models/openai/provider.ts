import type { Clock, Log } from '../../../state/ports.ts'
import type { Egress } from '../../egress/port.ts'
import { modelAt } from '../model-at.ts'
import type { AnswerReader, ModelEntry, Provider, ProviderOutcome, ProviderRequest } from '../ports.ts'
import type { Wire } from '../wire/talk.ts'
import { askOf, lowerMode, refusesFormat, type SchemaMode } from './ask.ts'
import type { Chat } from './chat.ts'
import { converse } from './converse.ts'
import { embed } from './embed.ts'

export type OpenAIProviderOptions = {
  egress: Egress
  /** Of a model that names a response format; null where the protocol's own shape is meant. */
  readerOf(model: ModelEntry): AnswerReader | null
  clock: Clock
  log: Log
  /** The most an answer may weigh, in bytes after decompression. */
  maxBytes?: number
}

const defaultMaxBytes = 32 * 1024 * 1024
/** Servers, models and roles whose way of asking for JSON is remembered. */
const mostModes = 10_000

/** Loads LangChain at the first call and builds its client once. */
const loadChat = async (): Promise<Chat> => {
  const { Chat } = await import('./chat.ts')
  return new Chat()
}

const wrongCategory = (category: string): ProviderOutcome => ({
  ok: false,
  fault: {
    code: 'model_bad_request',
    what: `cannot be asked: protocol "openai" serves chat and embeddings, not ${category}`,
    remedy: 'give the model an endpoint of protocol "http", and a response format with a request template',
    retry: false,
  },
  usage: null,
})

/** One that is in use all the same, or was stored by another version. */
const brokenFormat = (error: unknown) => ({
  ok: false as const,
  fault: {
    code: 'model_unreadable_answer' as const,
    what: `was not asked: the response format cannot be used: ${error instanceof Error ? error.message : String(error)}`,
    retry: false,
  },
  usage: null,
})

const notChat = new Set([
  'text-to-image',
  'image-edit',
  'text-to-video',
  'text-to-speech',
  'speech-to-text',
  'rerank',
])

/** Servers that speak OpenAI's protocol, through LangChain's clients: any endpoint, any key. */
export const createOpenAIProvider = (options: OpenAIProviderOptions): Provider => {
  const { egress, readerOf, clock, log, maxBytes = defaultMaxBytes } = options
  const wire: Wire = { egress, clock, maxBytes, maxEvent: maxBytes }
  /** How a server lets a role of a model ask for JSON: what it did not refuse last. */
  const modes = new Map<string, SchemaMode>()
  let chat: Promise<Chat> | undefined

  const readerFor = (model: ModelEntry): AnswerReader | null | Extract<ProviderOutcome, { ok: false }> => {
    try {
      return readerOf(model)
    } catch (error) {
      return brokenFormat(error)
    }
  }

  /** The same request in a humbler way, after a refusal of `response_format`; undefined when there is none. */
  const lowered = (outcome: ProviderOutcome, place: string, mode: SchemaMode): SchemaMode | undefined => {
    if (outcome.ok || !refusesFormat(outcome.fault)) return undefined
    const lower = lowerMode(mode)
    modes.delete(place)
    if (lower === undefined) return undefined
    if (modes.size >= mostModes) modes.clear()
    modes.set(place, lower)
    return lower
  }

  return {
    prepare() {
      chat ??= loadChat()
      return Promise.all([chat, egress.prepare?.()])
    },
    async send(request: ProviderRequest, signal: AbortSignal): Promise<ProviderOutcome> {
      signal.throwIfAborted()
      const { model, ask } = request
      const reader = readerFor(model)
      if (reader !== null && 'ok' in reader) return reader
      if (model.category === 'embedding') return embed({ wire, reader }, request, signal)
      if (notChat.has(model.category)) return wrongCategory(model.category)
      chat ??= loadChat()
      const client = await chat
      const place = `${modelAt(model)} ${ask.role}`
      const mode = modes.get(place) ?? 'json_schema'
      const conversation = { chat: client, wire, ask: askOf(ask, mode), reader }
      const outcome = await converse(conversation, request, signal)
      const lower = ask.schema === null ? undefined : lowered(outcome, place, mode)
      if (lower === undefined || outcome.ok) return outcome
      log.info(
        { role: ask.role, model: model.name, response_format: lower },
        'the model server refuses response_format',
      )
      return { ...outcome, fault: { ...outcome.fault, again: true } }
    },
  }
}
