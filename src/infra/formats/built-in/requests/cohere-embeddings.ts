import type { RequestTemplate } from '../../../../state/registry/response-format.ts'

/** Under https://api.cohere.com/v2. Source: Cohere's API reference, "Embed API (v2)". */
export const cohereEmbeddingsRequest: RequestTemplate = {
  method: 'POST',
  path: '/embed',
  headers: {},
  body: {
    model: '{{model}}',
    texts: '{{input}}',
    input_type: "{{input_type || 'search_document'}}",
    embedding_types: ['float'],
    output_dimension: '{{dimensions}}',
  },
}
