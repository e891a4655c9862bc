import type { ChatRequestBody } from '../../chat/chat-request.ts'
import type { ProviderOutcome, ProviderRequest, ResponseReader } from '../../ports/model-ports.ts'
import { type HttpExchangeResult, runHttpExchange, type Transport } from '../../transport/http-exchange.ts'
import { createBadReplyError, type ProviderError, truncatedError } from '../../transport/provider-errors.ts'
import type { ResponseChunk } from '../../transport/response-splitter.ts'
import { parseReply, toErrorOutcome, toProviderError, toResultOutcome } from './chat-outcome.ts'
import type { ChatClient } from './langchain-clients.ts'
import { createOpenAIRequest } from './openai-request.ts'
import { createFormatReplyDraft, createReplyDraft, type ReplyDraft } from './reply-draft.ts'

/** One chat completion: its client, transport and content. */
export type ChatCompletionCall = {
  chat: ChatClient
  transport: Transport
  ask: ChatRequestBody
  /** Null: the answer is a chat completion. */
  reader: ResponseReader | null
}

/** How many chunks are stored, for an answer that cannot be read. */
const maxRawChunks = 500

/**
 * Sends with `completionWithRetry` and reads the raw chunks: the message chunks of `stream()` lose tool calls of servers
 * that send no role, lose the usage of a truncated stream, and need a callback manager that reads the environment.
 */
const sendChatRequest = async (
  { chat, transport, ask }: ChatCompletionCall,
  request: ProviderRequest,
  isStreamed: boolean,
  take: (chunk: ResponseChunk) => void,
  signal: AbortSignal,
): Promise<HttpExchangeResult> => {
  const parameters = {
    ...chat.invocationParams(ask.options, { streaming: isStreamed }),
    ...ask.parameters,
    model: request.model.upstream_name,
    messages: ask.messages,
    stream: isStreamed,
  }
  let result: HttpExchangeResult | undefined
  await chat.ask(parameters, async (body) => {
    const exchange = {
      request: createOpenAIRequest('/chat/completions', request, body),
      endpoint: request.model.endpoint,
      endsAtMs: request.endsAtMs,
      expects: isStreamed ? ('sse' as const) : ('whole' as const),
      done: isStreamed ? '[DONE]' : null,
      take,
    }
    result = await runHttpExchange(transport, exchange, signal)
  })
  if (result === undefined) throw new Error('LangChain did not send the request')
  return result
}

const findEndError = (draft: ReplyDraft, ended: boolean): ProviderError | undefined => {
  if (draft.finished()) return undefined
  if (!draft.started()) return createBadReplyError('sent a reply without choices')
  return ended ? undefined : truncatedError
}

/** Sends one provider request to a chat model; its outcome is a value. Rejects only when the caller aborts. */
export const completeChat = async (
  call: ChatCompletionCall,
  request: ProviderRequest,
  signal: AbortSignal,
): Promise<ProviderOutcome> => {
  const { reader } = call
  const draft = reader === null ? createReplyDraft(request) : createFormatReplyDraft(reader, request)
  const isStreamed = reader === null || reader.stream([]) !== null
  const raw: unknown[] = []
  let lastUsage: unknown = null
  const take = ({ kind, text }: ResponseChunk): void => {
    const chunk = parseReply(text)
    request.onRaw?.(chunk)
    if (reader !== null && raw.length < maxRawChunks) raw.push(chunk)
    draft.take(chunk, kind === 'whole')
    const usage = draft.usage()
    if (usage !== null && usage !== lastUsage) request.onUsage?.(usage)
    lastUsage = usage
  }
  const {
    error: exchangeError,
    thrown,
    ended,
  } = await sendChatRequest(call, request, isStreamed, take, signal)
  const failed = thrown === undefined ? undefined : toProviderError(thrown)
  const error = exchangeError ?? failed ?? findEndError(draft, ended)
  if (error !== undefined && !(error.interrupted === true && draft.finished()))
    return toErrorOutcome(error, draft.usage(), thrown, raw)
  try {
    return toResultOutcome(draft.end())
  } catch (unreadable) {
    return toErrorOutcome(toProviderError(unreadable), draft.usage(), unreadable, raw)
  }
}
