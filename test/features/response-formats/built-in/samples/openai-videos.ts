import type { DeclaredSample } from './declared-samples.ts'

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

/** What openaiVideos must read. */
export const openaiVideosSamples: DeclaredSample[] = [
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
]
