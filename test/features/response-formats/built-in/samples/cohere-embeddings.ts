import type { DeclaredSample, SampleFields } from './declared-samples.ts'

const answer = (embeddings: SampleFields[string]) => ({
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

/** What cohereEmbeddings must read. */
export const cohereEmbeddingsSamples: DeclaredSample[] = [
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
]
