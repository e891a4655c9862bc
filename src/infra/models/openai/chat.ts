import { ChatOpenAICompletions } from '@langchain/openai'
import type { Fetch } from './model-fetch.ts'

const publicBaseUrl = 'https://api.openai.com/v1'

/** LangChain's client of a chat model; all its requests go through `fetch`. */
export const createChat = (model: string, fetch: Fetch): ChatOpenAICompletions =>
  new ChatOpenAICompletions({
    model,
    apiKey: 'unused', // the fetch sends the real one, so that no error or log of the SDK can hold it
    maxRetries: 0,
    streamUsage: true,
    // null and not absent: an absent value would be read from the environment
    configuration: { baseURL: publicBaseUrl, fetch, logLevel: 'off', organization: null, project: null },
  })
