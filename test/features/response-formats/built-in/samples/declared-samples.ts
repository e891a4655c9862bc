import type {
  FormatInput,
  FormatSample,
  StreamFormat,
} from '../../../../../src/models/schemas/response-format.ts'
import type { Json } from '../../../../../src/state/runtime-state.ts'

/** An object of a sample response. */
export type SampleFields = { [name: string]: Json }

/** A whole response (`raw`), or the events of a stream as objects. */
export type DeclaredSample = FormatSample | (Pick<FormatSample, 'expected'> & { events: SampleFields[] })

/** The text of a stream as a vendor sends it. Server-sent events have the name of their `type`, if they have one. */
const toStreamText = (events: SampleFields[], { format, done }: Pick<StreamFormat, 'format' | 'done'>) => {
  const texts = events.map((event) => {
    const data = JSON.stringify(event)
    if (format === 'ndjson') return `${data}\n`
    return `${'type' in event ? `event: ${event.type}\n` : ''}data: ${data}\n\n`
  })
  return texts.join('') + (done === undefined ? '' : `data: ${done}\n\n`)
}

/** The samples as an admin would give them with the format. */
export const toFormatSamples = (
  samples: readonly DeclaredSample[],
  { stream }: FormatInput,
): FormatSample[] =>
  samples.map((sample) => {
    if ('raw' in sample) return sample
    return { raw: toStreamText(sample.events, stream ?? { format: 'sse' }), expected: sample.expected }
  })

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
