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
})
