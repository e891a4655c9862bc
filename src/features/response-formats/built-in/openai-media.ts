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

/** The body of the answer is the recording. Source: OpenAI's API reference, "Create speech". */
export const openaiSpeech = defineFormat({
  name: 'openai-speech',
  category: 'text-to-speech',
  post: '/audio/speech',
  receives: 'bytes',
  body: {
    ...copyFields('model', 'response_format', 'speed', 'instructions'),
    input: '{{prompt}}',
    voice: "{{voice || 'alloy'}}",
  },
  paths: { audio: 'base64 && @', error: 'error' },
})

/** A form with the recording. Source: OpenAI's API reference, "Create transcription". */
export const openaiTranscriptions = defineFormat({
  name: 'openai-transcriptions',
  category: 'speech-to-text',
  post: '/audio/transcriptions',
  encoding: 'multipart',
  body: {
    ...copyFields('file', 'model', 'language', 'prompt', 'temperature'),
    response_format: 'json',
  },
  paths: {
    text: 'text',
    error: 'error',
    usage: inputOutputUsage,
  },
})

/** A job, and a path for the bytes of a finished one. Source: OpenAI's API reference, "Videos". */
export const openaiVideos = defineFormat({
  name: 'openai-videos',
  category: 'text-to-video',
  post: '/videos',
  encoding: 'multipart',
  body: {
    ...copyFields('model', 'prompt', 'size'),
    seconds: '{{seconds || duration}}',
    input_reference: '{{file}}',
  },
  paths: { job_id: 'id', status: 'status', model: 'model', error: 'error' },
  poll: {
    path: '/videos/{{job_id}}',
    content: '/videos/{{job_id}}/content',
    method: 'GET',
    interval_ms: 5000,
    done: ['completed'],
    failed: ['failed'],
  },
})
