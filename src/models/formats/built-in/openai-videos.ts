import { copyFields, defineFormat } from './format-declaration.ts'

const job = (status: string, progress: number) => ({
  id: 'video_68d7512d0784',
  object: 'video',
  model: 'sora-2',
  status,
  progress,
  created_at: 1758941485,
  completed_at: null,
  error: null,
  prompt: 'A paper boat on a river',
  seconds: '8',
  size: '1280x720',
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
  samples: [
    {
      raw: job('queued', 0),
      expected: { job_id: 'video_68d7512d0784', status: 'queued', model: 'sora-2', video: null },
    },
    { raw: job('in_progress', 45), expected: { status: 'in_progress' } },
    { raw: job('completed', 100), expected: { job_id: 'video_68d7512d0784', status: 'completed' } },
    {
      raw: { ...job('failed', 0), error: { code: 'moderation_blocked', message: 'The prompt was blocked.' } },
      expected: { error: { code: 'moderation_blocked' } },
    },
  ],
})
