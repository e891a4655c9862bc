import { copyFields, defineFormat, inputOutputUsage } from './format-declaration.ts'

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
