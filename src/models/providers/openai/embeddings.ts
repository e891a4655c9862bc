import {
  type CanonicalResult,
  emptyResult,
  type ProviderOutcome,
  type ProviderRequest,
  type ResponseReader,
} from '../../ports/model-ports.ts'
import type { Transport } from '../../transport/http-exchange.ts'
import { createBadReplyError } from '../../transport/provider-errors.ts'
import type { AnswerDraft } from '../answer-exchange.ts'
import { readEmbeddings } from './chat-chunk.ts'
import { exchangeOpenAI } from './openai-request.ts'

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
export const createEmbeddings = async (
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
