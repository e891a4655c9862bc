import { ChatOpenAICompletions, type OpenAIClient, OpenAIEmbeddings } from '@langchain/openai'

/** Sends a request that LangChain has built. The sender keeps the answer; LangChain does not get it. */
export type PostRequest = (request: object) => Promise<void>

type Completion = Parameters<ChatOpenAICompletions['completionWithRetry']>[0]
type Options = OpenAIClient.RequestOptions & { post: PostRequest }

/**
 * Replaces the SDK's own client: our transport does address, key, headers, timeouts, retries and the reading of answers.
 * docs/decisions/0018; test/models/providers/openai/langchain-clients.test.ts fails when LangChain changes.
 */
const asOpenAIClient = (client: object): OpenAIClient => client as OpenAIClient

/** LangChain's client of chat models; it builds the requests. */
export class ChatClient extends ChatOpenAICompletions {
  constructor() {
    super({ model: 'unnamed', apiKey: 'unused', maxRetries: 0, streamUsage: true })
    const post = (request: object, options: { post: PostRequest }) => options.post(request)
    this.client = asOpenAIClient({ chat: { completions: { create: post, parse: post } } })
    // no queue and no retries: the call path has its own
    this.caller.call = (work, ...args) => work(...args)
  }

  async ask(request: object, post: PostRequest): Promise<void> {
    await this.completionWithRetry(request as Completion, { post } as Options)
  }
}

/** LangChain's client of embedding models, for one request: it passes no options on to `post`. */
export class EmbeddingClient extends OpenAIEmbeddings {
  constructor(post: PostRequest) {
    super({ apiKey: 'unused', maxRetries: 0 })
    this.client = asOpenAIClient({ embeddings: { create: post } })
  }

  /** With the usage that `embedDocuments` drops. */
  async request(request: Parameters<OpenAIEmbeddings['embeddingWithRetry']>[0]): Promise<void> {
    await this.embeddingWithRetry(request)
  }
}
