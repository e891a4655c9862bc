import { copyFields, defineFormat, type SampleFields } from './format-declaration.ts'

/** Source: OpenAI's API reference, "Embeddings". Some vendors that follow it omit `index`, or change the order. */

const entry = (index: number, embedding: number[]) => ({ object: 'embedding', index, embedding })
const answer = (data: SampleFields[]) => ({
  object: 'list',
  data,
  model: 'text-embedding-3-small',
  usage: { prompt_tokens: 8, total_tokens: 8 },
})

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
  samples: [
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
  ],
})
