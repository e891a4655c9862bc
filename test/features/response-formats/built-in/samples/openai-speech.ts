import type { DeclaredSample } from './declared-samples.ts'

/** What openaiSpeech must read. */
export const openaiSpeechSamples: DeclaredSample[] = [
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
]
