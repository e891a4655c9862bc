import { copyFields, defineFormat } from './format-declaration.ts'

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
