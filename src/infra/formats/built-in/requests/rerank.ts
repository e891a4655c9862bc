import type { RequestTemplate } from '../../../../state/registry/response-format.ts'

/** Under https://api.cohere.com/v2, https://api.jina.ai/v1 and others. Source: their API references, "Rerank". */
export const rerankRequest: RequestTemplate = {
  method: 'POST',
  path: '/rerank',
  headers: {},
  body: { model: '{{model}}', query: '{{query}}', documents: '{{input}}', top_n: '{{top_n}}' },
}
