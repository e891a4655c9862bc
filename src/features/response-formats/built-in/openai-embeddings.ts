import { copyFields, defineFormat } from './format-declaration.ts'

/** Source: OpenAI's API reference, "Embeddings". Some vendors that follow it omit `index`, or change the order. */

/** OpenAI's embeddings, which most others follow. */
export const openaiEmbeddings = defineFormat({
  name: 'openai-embeddings',
  category: 'embedding',
  /** Under …/v1. Source: OpenAI's API reference, "Create embeddings". */
  post: '/embeddings',
  body: {
    ...copyFields('model', 'input', 'dimensions', 'user'),
    encoding_format: 'float',
  },
  paths: {
    embedding: 'data[-1].index && sort_by(data, &index)[].embedding || data[].embedding',
    model: 'model',
    error: 'error',
    usage: { prompt_tokens: 'usage.prompt_tokens', total_tokens: 'usage.total_tokens' },
  },
})
