import { copyFields, defineFormat } from './format-declaration.ts'

/** As Cohere, Jina and Voyage (`data` in place of `results`) rank. Source: their API references, "Rerank". */
export const rerank = defineFormat({
  name: 'rerank',
  category: 'rerank',
  /** Under https://api.cohere.com/v2, https://api.jina.ai/v1 and others. Source: their API references, "Rerank". */
  post: '/rerank',
  body: {
    ...copyFields('model', 'query', 'top_n'),
    documents: '{{input}}',
  },
  paths: {
    ranking: '(results || data)[].{index: index, score: relevance_score || score}',
    model: 'model',
    error: '!results && !data && (error || detail || message)',
    usage: {
      prompt_tokens: 'usage.prompt_tokens || usage.total_tokens || meta.tokens.input_tokens',
      total_tokens: 'usage.total_tokens',
    },
  },
})
