import type { RequestTemplate } from '../../../../state/registry/response-format.ts'

/** Under https://open.bigmodel.cn/api/paas/v4. Source: Zhipu's API reference, "CogVideoX". */
export const videoSubmitPollRequest: RequestTemplate = {
  method: 'POST',
  path: '/videos/generations',
  headers: {},
  body: {
    model: '{{model}}',
    prompt: '{{prompt}}',
    image_url: '{{image}}',
    quality: '{{quality}}',
    size: '{{size}}',
    duration: '{{duration}}',
    fps: '{{parameters.fps}}',
    with_audio: '{{parameters.with_audio}}',
  },
}
