import { copyFields, defineFormat } from './format-declaration.ts'

/** Version 2 (vectors by type) and version 1 (vectors alone). Source: Cohere's API reference, "Embed". */

/** Vectors of Cohere, versions 1 and 2. */
export const cohereEmbeddings = defineFormat({
  name: 'cohere-embeddings',
  category: 'embedding',
  /** Under https://api.cohere.com/v2. Source: Cohere's API reference, "Embed API (v2)". */
  post: '/embed',
  body: {
    ...copyFields('model'),
    texts: '{{input}}',
    input_type: "{{input_type || 'search_document'}}",
    embedding_types: ['float'],
    output_dimension: '{{dimensions}}',
  },
  paths: {
    embedding: 'embeddings.float || embeddings',
    error: '!embeddings && message && {message: message}',
    usage: {
      prompt_tokens: 'meta.billed_units.input_tokens',
      completion_tokens: 'meta.billed_units.output_tokens',
    },
  },
})
