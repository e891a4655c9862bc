import type { DeclaredSample } from './declared-samples.ts'

/** What openaiImages must read. */
export const openaiImagesSamples: DeclaredSample[] = [
  {
    raw: {
      created: 1713833628,
      background: 'opaque',
      output_format: 'png',
      quality: 'high',
      size: '1024x1024',
      data: [{ b64_json: 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk' }],
      usage: {
        total_tokens: 4210,
        input_tokens: 50,
        output_tokens: 4160,
        input_tokens_details: { text_tokens: 10, image_tokens: 40 },
      },
    },
    expected: {
      images: [{ base64: 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk' }],
      usage: { prompt_tokens: 50, completion_tokens: 4160, total_tokens: 4210 },
    },
  },
  {
    raw: {
      created: 1589478378,
      data: [
        { url: 'https://images.example.com/a.png', revised_prompt: 'A white siamese cat' },
        { url: 'https://images.example.com/b.png' },
      ],
    },
    expected: {
      images: [{ url: 'https://images.example.com/a.png' }, { url: 'https://images.example.com/b.png' }],
      usage: null,
    },
  },
  {
    raw: {
      error: { code: 'moderation_blocked', message: 'Your request was rejected.', type: 'user_error' },
    },
    expected: { error: { code: 'moderation_blocked' } },
  },
]
