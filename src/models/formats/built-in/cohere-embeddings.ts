import type { Json } from '../../../state/runtime-state.ts'
import { copyFields, defineFormat } from './format-declaration.ts'

/** Version 2 (vectors by type) and version 1 (vectors alone). Source: Cohere's API reference, "Embed". */

const answer = (embeddings: Json) => ({
  id: 'da6e531f-54c5-4a73-bf92-f60566d8d753',
  embeddings,
  texts: ['hello', 'goodbye'],
  meta: {
    api_version: { version: '2' },
    billed_units: { input_tokens: 4 },
  },
})
const vectors = [
  [0.016296387, -0.008354187, -0.04699707],
  [-0.0074539185, 0.011650085, 0.02706909],
]

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
  samples: [
    {
      raw: { ...answer({ float: vectors }), response_type: 'embeddings_by_type' },
      expected: { embedding: vectors, usage: { prompt_tokens: 4, completion_tokens: 0, total_tokens: 4 } },
    },
    {
      raw: { ...answer(vectors), response_type: 'embeddings_floats' },
      expected: { embedding: vectors },
    },
    {
      raw: { id: 'da6e531f', message: 'invalid request: texts must not be empty' },
      expected: { error: { message: 'invalid request: texts must not be empty' } },
    },
  ],
})
