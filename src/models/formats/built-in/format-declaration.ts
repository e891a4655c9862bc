import type { Json } from '../../../state/runtime-state.ts'
import type { FormatInput, FormatSample, StreamFormat } from '../../schemas/response-format.ts'

/** An object of a sample response. */
export type SampleFields = { [name: string]: Json }

type FormatDeclaration = Omit<FormatInput, 'category' | 'request' | 'samples'> & {
  /** Text unless it says otherwise. */
  category?: string
  /** The path under the endpoint's base URL to which requests are posted, and another one for streams. */
  post: string
  postStream?: string
  headers?: Record<string, string>
  encoding?: 'multipart'
  receives?: 'bytes'
  body: Json
  /** A whole response (`raw`), or the events of a stream as objects. */
  samples: (FormatSample | (Pick<FormatSample, 'expected'> & { events: SampleFields[] }))[]
}

/** The text of a stream as a vendor sends it. Server-sent events have the name of their `type`, if they have one. */
const toStreamText = (events: SampleFields[], { format, done }: Pick<StreamFormat, 'format' | 'done'>) => {
  const texts = events.map((event) => {
    const data = JSON.stringify(event)
    if (format === 'ndjson') return `${data}\n`
    return `${'type' in event ? `event: ${event.type}\n` : ''}data: ${data}\n\n`
  })
  return texts.join('') + (done === undefined ? '' : `data: ${done}\n\n`)
}

/** The counts of vendors that say input and output. */
export const inputOutputUsage = {
  prompt_tokens: 'usage.input_tokens',
  completion_tokens: 'usage.output_tokens',
  total_tokens: 'usage.total_tokens',
}

/** A built-in format. */
export const defineFormat = ({
  category = 'text',
  post: path,
  postStream,
  headers = {},
  encoding,
  receives,
  body,
  samples,
  ...format
}: FormatDeclaration) => ({
  ...format,
  category,
  request: {
    method: 'POST' as const,
    path,
    ...(postStream !== undefined && { stream_path: postStream }),
    headers,
    ...(encoding && { encoding }),
    ...(receives && { receives }),
    body,
  },
  samples: samples.map((sample): FormatSample => {
    if ('raw' in sample) return sample
    return { raw: toStreamText(sample.events, format.stream ?? { format: 'sse' }), expected: sample.expected }
  }),
})

/** Members of a request's body that have the same name in the data of the template. */
export const copyFields = (...names: string[]): Record<string, string> =>
  Object.fromEntries(names.map((name) => [name, `{{${name}}}`]))

/** The usage that a sample expects; the total is the sum of the first two. */
export const toSampleUsage = (prompt_tokens: number, completion_tokens: number, more: SampleFields) => ({
  prompt_tokens,
  completion_tokens,
  total_tokens: prompt_tokens + completion_tokens,
  ...more,
})

/** A call in OpenAI's chat protocol: whole, or a chunk of one. Absent members are left out. */
export const toSampleCall = (
  { index, id, name }: { index?: number; id?: string; name?: string | undefined },
  text: string,
): SampleFields => ({
  ...(index !== undefined && { index }),
  ...(id !== undefined && { id, type: 'function' }),
  function: { ...(name !== undefined && { name }), arguments: text },
})
