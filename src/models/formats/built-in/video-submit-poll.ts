import { copyFields, defineFormat } from './format-declaration.ts'

/** Creates a task, then polls it until it is done. Source: Zhipu's API reference, "CogVideoX" and "async-result". */
export const videoSubmitPoll = defineFormat({
  name: 'video-submit-poll',
  category: 'text-to-video',
  /** Under https://open.bigmodel.cn/api/paas/v4. Source: Zhipu's API reference, "CogVideoX". */
  post: '/videos/generations',
  body: {
    ...copyFields('model', 'prompt', 'quality', 'size', 'duration'),
    image_url: "{{image || file && join('', ['data:', file.mime_type, ';base64,', file.base64])}}",
    fps: '{{parameters.fps}}',
    with_audio: '{{parameters.with_audio}}',
  },
  paths: {
    job_id: 'id',
    status: 'task_status',
    video: 'video_result[0].url',
    model: 'model',
    error: 'error',
  },
  poll: {
    path: '/async-result/{{job_id}}',
    method: 'GET',
    interval_ms: 5000,
    done: ['SUCCESS'],
    failed: ['FAIL'],
  },
  samples: [
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
  ],
})
