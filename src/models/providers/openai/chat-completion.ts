import type { ChatRequestBody } from '../../chat/chat-request.ts'
import type { ProviderOutcome, ProviderRequest, ResponseReader } from '../../ports/model-ports.ts'
import type { Transport } from '../../transport/http-exchange.ts'
import type { ResponseFormats } from '../response-formats.ts'
import type { ChatClient } from './langchain-clients.ts'
import { exchangeOpenAI } from './openai-request.ts'
import { createReplyDraft } from './reply-draft.ts'

/** One chat completion: its client, transport and content. */
export type ChatCompletionCall = {
  chat: ChatClient
  transport: Transport
  ask: ChatRequestBody
  /** Null: the answer is a chat completion. */
  reader: ResponseReader | null
  formats: Pick<ResponseFormats, 'openDraft'>
}

/**
 * Sends one provider request to a chat model; its outcome is a value. Rejects only when the caller aborts.
 * Sends with `completionWithRetry` and reads the raw chunks: the message chunks of `stream()` lose tool calls of servers
 * that send no role, lose the usage of a truncated stream, and need a callback manager that reads the environment.
 */
export const completeChat = (
  { chat, transport, ask, reader, formats }: ChatCompletionCall,
  request: ProviderRequest,
  signal: AbortSignal,
): Promise<ProviderOutcome> => {
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
