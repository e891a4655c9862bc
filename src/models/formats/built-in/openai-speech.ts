import { copyFields, defineFormat } from './format-declaration.ts'

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
  samples: [
    {
      raw: { base64: 'SUQzBAAAAAAAI1RTU0UAAAAP', mime_type: 'audio/mpeg' },
      expected: { audio: { base64: 'SUQzBAAAAAAAI1RTU0UAAAAP', mime_type: 'audio/mpeg' } },
    },
    {
      raw: { base64: 'UklGRiQAAABXQVZFZm10IBAAAAAB', mime_type: 'audio/wav' },
      expected: { audio: { mime_type: 'audio/wav' } },
    },
    {
      raw: { error: { message: 'The voice is not known.', type: 'invalid_request_error', code: null } },
      expected: { error: { message: 'The voice is not known.' } },
    },
  ],
})
