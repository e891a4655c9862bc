import type { DeclaredSample } from './declared-samples.ts'

/** What videoSubmitPoll must read. */
export const videoSubmitPollSamples: DeclaredSample[] = [
  {
    raw: {
      id: '8868902201637896192',
      request_id: '654321',
      model: 'cogvideox-3',
      task_status: 'PROCESSING',
    },
    expected: { job_id: '8868902201637896192', status: 'PROCESSING', video: null },
  },
  {
    raw: { model: 'cogvideox-3', request_id: '654321', task_status: 'PROCESSING' },
    expected: { status: 'PROCESSING', video: null },
  },
  {
    raw: {
      model: 'cogvideox-3',
      request_id: '654321',
      task_status: 'SUCCESS',
      video_result: [
        {
          cover_image_url: 'https://sfile.example.com/cover.png',
          url: 'https://sfile.example.com/video.mp4',
        },
      ],
    },
    expected: {
      status: 'SUCCESS',
      video: { url: 'https://sfile.example.com/video.mp4' },
      model: 'cogvideox-3',
    },
  },
  {
    raw: { model: 'cogvideox-3', request_id: '654321', task_status: 'FAIL' },
    expected: { status: 'FAIL', video: null },
  },
  {
    raw: { error: { code: '1301', message: 'The input may contain unsafe content.' } },
    expected: { error: { code: '1301' } },
  },
]
