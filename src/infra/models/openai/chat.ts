import { ChatOpenAICompletions, OpenAIEmbeddings } from '@langchain/openai'
import type { Fetch } from './model-fetch.ts'

const publicBaseUrl = 'https://api.openai.com/v1'

const configurationOf = (fetch: Fetch) => ({
  baseURL: publicBaseUrl,
  fetch,
  logLevel: 'off' as const,
  // null and not absent: an absent value would be read from the environment
  organization: null,
  project: null,
})

/** The fetch sends the real one, so that no error or log of the SDK can hold it. */
const apiKey = 'unused'

/** LangChain's client of chat models; all its requests go through `fetch`, and name their model themselves. */
export const createChat = (fetch: Fetch): ChatOpenAICompletions =>
  new ChatOpenAICompletions({
    model: 'unnamed',
    apiKey,
    maxRetries: 0,
    streamUsage: true,
    configuration: configurationOf(fetch),
  })

type EmbeddingRequest = {
  model: string
  input: string[]
  encoding_format: 'float'
  dimensions?: number
}

/** One request, with the usage that `embedDocuments` drops. */
class Embedder extends OpenAIEmbeddings {
  request(request: EmbeddingRequest): Promise<unknown> {
    return this.embeddingWithRetry(request)
  }
}

/** LangChain's client of embedding models, for one request: it has no other way to know whose request it is. */
export const createEmbedder = (fetch: Fetch): Embedder =>
  new Embedder({ apiKey, maxRetries: 0, configuration: configurationOf(fetch) })
