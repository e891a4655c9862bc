import type { DeclaredSample } from './declared-samples.ts'

/** What rerank must read. */
export const rerankSamples: DeclaredSample[] = [
  {
    raw: {
      results: [
        { index: 3, relevance_score: 0.999071 },
        { index: 4, relevance_score: 0.7867867 },
        { index: 0, relevance_score: 0.32713068 },
      ],
      id: '07734bd2-2473-4f07-94e1-0d9f0e6843cf',
      meta: { api_version: { version: '2' }, billed_units: { search_units: 1 } },
    },
    expected: {
      ranking: [
        { index: 3, score: 0.999071 },
        { index: 4, score: 0.7867867 },
        { index: 0, score: 0.32713068 },
      ],
      usage: null,
    },
  },
  {
    raw: {
      model: 'jina-reranker-v2-base-multilingual',
      usage: { total_tokens: 815, prompt_tokens: 815 },
      results: [{ index: 0, document: { text: 'Organic skincare' }, relevance_score: 0 }],
    },
    expected: {
      ranking: [{ index: 0, score: 0 }],
      model: 'jina-reranker-v2-base-multilingual',
      usage: { prompt_tokens: 815, completion_tokens: 0, total_tokens: 815 },
    },
  },
  {
    raw: {
      object: 'list',
      data: [{ relevance_score: 0.4375, index: 1 }],
      model: 'rerank-2.5',
      usage: { total_tokens: 26 },
    },
    expected: { ranking: [{ index: 1, score: 0.4375 }], usage: { prompt_tokens: 26 } },
  },
  {
    raw: { detail: 'Payload size exceeds 4MB.' },
    expected: { error: 'Payload size exceeds 4MB.' },
  },
]
