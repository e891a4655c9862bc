import type { Json } from '../../../state/runtime-state.ts'

/** An object of a sample response. */
export type SampleFields = { [name: string]: Json }

/** The text of a stream as a vendor sends it: server-sent events, named where the vendor names them. */
export const toSseText = (
  events: readonly SampleFields[],
  { done, named }: { done?: string; named?: boolean } = {},
): string =>
  [...events.map((event) => JSON.stringify(event)), ...(done === undefined ? [] : [done])]
    .map((data, at) => {
      const event = events[at]
      const name = named && event !== undefined && 'type' in event ? `event: ${event.type}\n` : ''
      return `${name}data: ${data}\n\n`
    })
    .join('')

/** The text of a stream of JSON lines. */
export const toNdjsonText = (events: readonly SampleFields[]): string =>
  events.map((event) => `${JSON.stringify(event)}\n`).join('')

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
