import type { RequestTemplate } from '../../../../state/registry/response-format.ts'

/** Under …/v1. Source: OpenAI's API reference, "Create embeddings". */
export const openaiEmbeddingsRequest: RequestTemplate = {
  method: 'POST',
  path: '/embeddings',
  headers: {},
  body: {
    model: '{{model}}',
    input: '{{input}}',
    dimensions: '{{dimensions}}',
    encoding_format: 'float',
    user: '{{user}}',
  },
}
