import type { DeclaredSample } from './declared-samples.ts'

/** What openaiTranscriptions must read. */
export const openaiTranscriptionsSamples: DeclaredSample[] = [
  {
    raw: {
      text: 'Good morning, this is the weekly call.',
      usage: {
        type: 'tokens',
        input_tokens: 31,
        input_token_details: { text_tokens: 0, audio_tokens: 31 },
        output_tokens: 11,
        total_tokens: 42,
      },
    },
    expected: {
      text: 'Good morning, this is the weekly call.',
      usage: { prompt_tokens: 31, completion_tokens: 11, total_tokens: 42 },
    },
  },
  {
    raw: { text: 'Yes.', usage: { type: 'duration', seconds: 3 } },
    expected: { text: 'Yes.', usage: null },
  },
  {
    raw: { error: { message: 'The audio could not be decoded.', type: 'invalid_request_error' } },
    expected: { error: { message: 'The audio could not be decoded.' } },
  },
]
