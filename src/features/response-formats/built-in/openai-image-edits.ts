import { copyFields, defineFormat } from './format-declaration.ts'
import { openaiImages } from './openai-images.ts'

/** A form with one `image`, or `image[]` for several. Source: OpenAI's API reference, "Create image edit". */
export const openaiImageEdits = defineFormat({
  name: 'openai-image-edits',
  category: 'image-edit',
  post: '/images/edits',
  encoding: 'multipart',
  body: {
    ...copyFields('model', 'prompt', 'n', 'size', 'quality', 'background', 'response_format', 'user'),
    image: '{{!files[1] && file || `null`}}',
    'image[]': '{{files[1] && files || `null`}}',
  },
  paths: openaiImages.paths,
})
