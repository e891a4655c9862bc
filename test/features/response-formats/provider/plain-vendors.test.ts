import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { cohereEmbeddings } from '../../../../src/features/response-formats/built-in/cohere-embeddings.ts'
import { openaiEmbeddings } from '../../../../src/features/response-formats/built-in/openai-embeddings.ts'
import { openaiImages } from '../../../../src/features/response-formats/built-in/openai-media.ts'
import { rerank } from '../../../../src/features/response-formats/built-in/rerank.ts'
import { call, modelOf, resultOf } from '../../../support/http-call.ts'
import { startVendor } from '../../../support/http-vendor.ts'

const model = z.literal('upstream-1')

describe('a vendor of one kind that takes nothing but its own shape', () => {
  it.each([
    {
      name: 'openai-embeddings',
      format: openaiEmbeddings,
      path: '/v1/embeddings',
      body: z.strictObject({
        model,
        input: z.tuple([z.literal('a'), z.literal('b')]),
        encoding_format: z.literal('float'),
        dimensions: z.literal(2),
      }),
      ask: { input: ['a', 'b'], parameters: { dimensions: 2 } },
      answer: {
        object: 'list',
        data: [
          { object: 'embedding', index: 0, embedding: [0.5, -0.5] },
          { object: 'embedding', index: 1, embedding: [0.25, 1] },
        ],
        model: 'served-1',
        usage: { prompt_tokens: 4, total_tokens: 4 },
      },
      result: {
        embeddings: [
          [0.5, -0.5],
          [0.25, 1],
        ],
        usage: { prompt_tokens: 4, completion_tokens: 0, total_tokens: 4 },
      },
    },
    {
      name: 'cohere-embeddings',
      format: cohereEmbeddings,
      path: '/v1/embed',
      body: z.strictObject({
        model,
        texts: z.tuple([z.literal('a'), z.literal('b')]),
        input_type: z.literal('search_query'),
        embedding_types: z.tuple([z.literal('float')]),
      }),
      ask: { input: ['a', 'b'], parameters: { input_type: 'search_query' } },
      answer: { id: 'e', embeddings: { float: [[0.5], [1]] }, meta: { billed_units: { input_tokens: 4 } } },
      result: { embeddings: [[0.5], [1]], usage: { prompt_tokens: 4 } },
    },
    {
      name: 'rerank',
      format: rerank,
      path: '/v1/rerank',
      body: z.strictObject({
        model,
        query: z.literal('which?'),
        documents: z.tuple([z.literal('a'), z.literal('b')]),
        top_n: z.literal(1),
      }),
      ask: { input: ['a', 'b'], query: 'which?', parameters: { top_n: 1 } },
      answer: { results: [{ index: 1, relevance_score: 0.75 }], usage: { total_tokens: 9 } },
      result: { ranking: [{ index: 1, score: 0.75 }] },
    },
    {
      name: 'openai-images',
      format: openaiImages,
      path: '/v1/images/generations',
      body: z.strictObject({
        model,
        prompt: z.literal('a cat'),
        n: z.literal(1),
        size: z.literal('1024x1024'),
      }),
      ask: { prompt: 'a cat', parameters: { n: 1, size: '1024x1024' } },
      answer: { created: 1, data: [{ url: 'https://i.example.com/1.png' }] },
      result: { images: [{ url: 'https://i.example.com/1.png' }] },
    },
  ])('$name', async ({ format, path, body, ask, answer, result }) => {
    await using vendor = await startVendor((request) => {
      expect(request.path).toBe(path)
      body.parse(request.body)
      return { body: answer }
    })
    // an address with a slash at its end is the same address
    const called = await call({ model: modelOf(format, `${vendor.url}/v1/`), ask: { messages: [], ...ask } })
    expect(resultOf(called)).toMatchObject(result)
  })
})
