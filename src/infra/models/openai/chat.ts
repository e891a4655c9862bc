import { ChatOpenAICompletions, type OpenAIClient, OpenAIEmbeddings } from '@langchain/openai'

/** Sends a request as LangChain has worded it. What comes of it is told to whoever asked, and not to LangChain. */
export type Post = (request: object) => Promise<void>

type Completion = Parameters<ChatOpenAICompletions['completionWithRetry']>[0]
type Options = OpenAIClient.RequestOptions & { post: Post }

/**
 * Stands in for the SDK's own client, of whose work nothing is left to do: address, key, headers, clocks, retries and
 * the reading of answers are the wire's. It costs a third of a millisecond a request.
 */
const postsIn = (client: object): OpenAIClient => client as OpenAIClient

/** LangChain's client of chat models; it words the requests. */
export class Chat extends ChatOpenAICompletions {
  constructor() {
    super({ model: 'unnamed', apiKey: 'unused', maxRetries: 0, streamUsage: true })
    const post = (request: object, options: { post: Post }) => options.post(request)
    this.client = postsIn({ chat: { completions: { create: post, parse: post } } })
    // at once: retries and queues are the call path's
    this.caller.call = (work, ...args) => work(...args)
  }

  async ask(request: object, post: Post): Promise<void> {
    await this.completionWithRetry(request as Completion, { post } as Options)
  }
}

/** LangChain's client of embedding models, for one request: it has no other way to know whose request it is. */
export class Embedder extends OpenAIEmbeddings {
  constructor(post: Post) {
    super({ apiKey: 'unused', maxRetries: 0 })
    this.client = postsIn({ embeddings: { create: post } })
  }

  /** With the usage that `embedDocuments` drops. */
  async request(request: Parameters<OpenAIEmbeddings['embeddingWithRetry']>[0]): Promise<void> {
    await this.embeddingWithRetry(request)
  }
}
