import type { Json } from '../../../state/runtime-state.ts'

/** A piece of an answer. */
export type Fields = { [name: string]: Json }

/** The text of a stream as a vendor sends it: server-sent events, named where the vendor names them. */
export const sse = (
  events: readonly Fields[],
  { done, named }: { done?: string; named?: boolean } = {},
): string =>
  [...events.map((event) => JSON.stringify(event)), ...(done === undefined ? [] : [done])]
    .map((data, at) => {
      const event = events[at]
      const name = named && event !== undefined && 'type' in event ? `event: ${event.type}\n` : ''
      return `${name}data: ${data}\n\n`
    })
    .join('')

/** One JSON text a line. */
export const ndjson = (events: readonly Fields[]): string =>
  events.map((event) => `${JSON.stringify(event)}\n`).join('')
