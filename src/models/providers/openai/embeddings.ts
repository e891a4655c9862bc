import type {
  CanonicalResult,
  ProviderOutcome,
  ProviderRequest,
  ResponseReader,
} from '../../ports/model-ports.ts'
import { type HttpExchangeResult, runHttpExchange, type Transport } from '../../transport/http-exchange.ts'
import { createBadReplyError } from '../../transport/provider-errors.ts'
import { readEmbeddings } from './chat-chunk.ts'
import { parseReply, toErrorOutcome, toProviderError, toResultOutcome } from './chat-outcome.ts'
import { createOpenAIRequest } from './openai-request.ts'
import { emptyResult } from './reply-draft.ts'

/** One request for embeddings. */
export type EmbeddingCall = {
  transport: Transport
  /** Null: the answer is OpenAI's list of embeddings. */
  reader: ResponseReader | null
}

/** Checks for one vector per text, all of one length: servers without base64 may send none. */
const findVectorError = ({ embeddings }: CanonicalResult, texts: number): string | null => {
  if (embeddings.length !== texts) return `sent ${embeddings.length} embeddings for ${texts} texts`
  const lengths = new Set(embeddings.map(({ length }) => length))
  return lengths.size > 1 || lengths.has(0)
    ? `sent embeddings of ${[...lengths].join(' and ')} numbers`
    : null
}

/** Sends one provider request to an embedding model; its outcome is a value. Rejects only when the caller aborts. */
export const createEmbeddings = async (
  { transport, reader }: EmbeddingCall,
  request: ProviderRequest,
  signal: AbortSignal,
): Promise<ProviderOutcome> => {
  const { EmbeddingClient } = await import('./langchain-clients.ts')
  const { input, parameters } = request.ask
  let answer: unknown
  let exchangeResult: HttpExchangeResult | undefined
  const embedder = new EmbeddingClient(async (body) => {
    const exchange = {
      request: createOpenAIRequest('/embeddings', request, body),
      endpoint: request.model.endpoint,
      endsAtMs: request.endsAtMs,
      expects: 'whole' as const,
      done: null,
      take: ({ text }: { text: string }): void => {
        answer = parseReply(text)
      },
    }
    exchangeResult = await runHttpExchange(transport, exchange, signal)
  })
  await embedder.request({
    model: request.model.upstream_name,
    input: [...input],
    // servers without base64 would silently send empty lists
    encoding_format: 'float',
    ...(typeof parameters.dimensions === 'number' && { dimensions: parameters.dimensions }),
  })
  const { error: exchangeError, thrown } = exchangeResult as unknown as HttpExchangeResult
  const error = exchangeError ?? (thrown === undefined ? undefined : toProviderError(thrown))
  if (error !== undefined) return toErrorOutcome(error, null, thrown, [])
  request.onRaw?.(answer)
  try {
    const result = reader === null ? { ...emptyResult, ...readEmbeddings(answer) } : reader.read(answer)
    if (result.usage !== null) request.onUsage?.(result.usage)
    const what = findVectorError(result, input.length)
    if (what !== null) return { ok: false, error: createBadReplyError(what, false), usage: result.usage }
    return toResultOutcome(result)
  } catch (unreadable) {
    return toErrorOutcome(toProviderError(unreadable), null, unreadable, [answer])
  }
}
