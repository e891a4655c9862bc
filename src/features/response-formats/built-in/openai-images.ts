import { copyFields, defineFormat, inputOutputUsage } from './format-declaration.ts'

/** Base64 or URLs, as the request asks. Source: OpenAI's API reference, "Images". */
export const openaiImages = defineFormat({
  name: 'openai-images',
  category: 'text-to-image',
  /** Under …/v1. Source: OpenAI's API reference, "Create image". */
  post: '/images/generations',
  body: {
    ...copyFields('model', 'prompt', 'n', 'response_format', 'user'),
    ...copyFields('size', 'quality', 'style', 'background'),
    output_format: '{{parameters.output_format}}',
  },
  paths: {
    images: 'data[].{url: url, base64: b64_json}',
    error: 'error',
    usage: inputOutputUsage,
  },
})
