import type { DeclaredSample, SampleFields } from './declared-samples.ts'

const entry = (index: number, embedding: number[]) => ({ object: 'embedding', index, embedding })
const answer = (data: SampleFields[]) => ({
  object: 'list',
  data,
  model: 'text-embedding-3-small',
  usage: { prompt_tokens: 8, total_tokens: 8 },
})

/** What openaiEmbeddings must read. */
export const openaiEmbeddingsSamples: DeclaredSample[] = [
  {
    raw: answer([entry(0, [0.0023064255, -0.009327292, 0.015797347])]),
    expected: {
      embedding: [[0.0023064255, -0.009327292, 0.015797347]],
      model: 'text-embedding-3-small',
      usage: { prompt_tokens: 8, completion_tokens: 0, total_tokens: 8 },
    },
  },
  {
    raw: answer([entry(1, [0, 1]), entry(0, [1, 0])]),
    expected: {
      embedding: [
        [1, 0],
        [0, 1],
      ],
    },
  },
  {
    raw: { data: [{ embedding: [1, 0] }, { embedding: [0, 1] }] },
    expected: {
      embedding: [
        [1, 0],
        [0, 1],
      ],
      usage: null,
    },
  },
  {
    raw: { error: { message: 'Input is too long.', type: 'invalid_request_error' } },
    expected: { error: { message: 'Input is too long.' } },
  },
]
