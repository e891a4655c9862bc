import { openaiChat } from '../../src/features/response-formats/built-in/openai-chat.ts'
import { openaiEmbeddings } from '../../src/features/response-formats/built-in/openai-embeddings.ts'
import { compileFormat } from '../../src/features/response-formats/formats/format-compiler.ts'
import type { Case, Figures, Variant } from '../case.ts'
import { handCompletion, handEmbeddings, handStream } from '../support/hand-parsers.ts'
import { median } from '../support/statistics.ts'

const rounds = 21
const readsARound = 2000

/** Bodies as vendors send them, of the sizes that runs meet. */
const completion = (message: object, finish_reason: string): string =>
  JSON.stringify({
    id: 'chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT',
    object: 'chat.completion',
    created: 1741569952,
    model: 'gpt-4.1-2025-04-14',
    choices: [{ index: 0, message: { role: 'assistant', ...message }, logprobs: null, finish_reason }],
    usage: {
      prompt_tokens: 1117,
      completion_tokens: 460,
      total_tokens: 1577,
      prompt_tokens_details: { cached_tokens: 1024, audio_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 20, audio_tokens: 0 },
    },
    service_tier: 'default',
    system_fingerprint: 'fp_51db84afab',
  })
const text = 'It is a truth universally acknowledged. '.repeat(50)
const answer = completion({ content: text, refusal: null, annotations: [] }, 'stop')
const calls = completion(
  {
    content: null,
    refusal: null,
    tool_calls: Array.from({ length: 4 }, (_, n) => ({
      id: `call_${n}`,
      type: 'function',
      function: { name: 'search_files', arguments: JSON.stringify({ query: text.slice(0, 120), limit: n }) },
    })),
  },
  'tool_calls',
)
const chunk = (delta: object | null, finish_reason: string | null): string =>
  JSON.stringify({
    id: 'chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG',
    object: 'chat.completion.chunk',
    created: 1741570283,
    model: 'gpt-4.1-2025-04-14',
    choices: delta === null ? [] : [{ index: 0, delta, logprobs: null, finish_reason }],
    usage: delta === null ? { prompt_tokens: 1117, completion_tokens: 300, total_tokens: 1417 } : null,
  })
const events = [
  chunk({ role: 'assistant', content: '' }, null),
  ...Array.from({ length: 300 }, () => chunk({ content: ' word' }, null)),
  chunk({}, 'stop'),
  chunk(null, null),
]
const vectors = JSON.stringify({
  object: 'list',
  data: Array.from({ length: 16 }, (_, index) => ({
    object: 'embedding',
    index,
    embedding: Array.from({ length: 1536 }, (_, n) => Math.sin(n + index) / 40),
  })),
  model: 'text-embedding-3-small',
  usage: { prompt_tokens: 128, total_tokens: 128 },
})

const chat = compileFormat(openaiChat)
const embeddings = compileFormat(openaiEmbeddings)
const readStream = (): unknown => {
  const stream = chat.stream([])
  for (const event of events) stream?.take(JSON.parse(event))
  return stream?.end()
}

/** Microseconds that one read takes: the median of many rounds, all reads of a round timed together. */
const measure =
  (read: () => unknown, share: number): Variant =>
  async (place): Promise<Figures> => {
    const reads = Math.max(1, Math.round(place.count(readsARound) * share))
    const us: number[] = []
    for (let round = 0; round < rounds; round++) {
      const since = performance.now()
      for (let n = 0; n < reads; n++) if (read() === null) throw new Error('nothing was read')
      us.push(((performance.now() - since) / reads) * 1000)
    }
    return { 'µs a body': median(us) }
  }

const parseCase: Case = {
  about:
    'reading an answer by the data of its response format, against code written for that one shape; JSON.parse is part of both',
  ours: {
    'a completion by its format': measure(() => chat.read(JSON.parse(answer)), 1),
    'four tool calls by their format': measure(() => chat.read(JSON.parse(calls)), 1),
    'a stream of 303 events by its format': measure(readStream, 0.02),
    '16 embeddings by their format': measure(() => embeddings.read(JSON.parse(vectors)), 0.02),
  },
  beside: {
    'a completion by hand': measure(() => handCompletion(answer), 1),
    'four tool calls by hand': measure(() => handCompletion(calls), 1),
    'a stream of 303 events by hand': measure(() => handStream(events), 0.02),
    '16 embeddings by hand': measure(() => handEmbeddings(vectors), 0.02),
  },
}

export default parseCase
