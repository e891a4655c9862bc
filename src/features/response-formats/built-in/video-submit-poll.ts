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
})
