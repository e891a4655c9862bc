import type { RequestTemplate } from '../../../../state/registry/response-format.ts'

/** Under …/v1. Source: OpenAI's API reference, "Create image". */
export const openaiImagesRequest: RequestTemplate = {
  method: 'POST',
  path: '/images/generations',
  headers: {},
  body: {
    model: '{{model}}',
    prompt: '{{prompt}}',
    n: '{{n}}',
    size: '{{size}}',
    quality: '{{quality}}',
    style: '{{style}}',
    background: '{{background}}',
    response_format: '{{response_format}}',
    user: '{{user}}',
  },
}
