/** One message of an event stream, as it was sent. */
export type SseMessage = { event: string; id: string | null; data: string }

/**
 * The messages of an event stream (https://html.spec.whatwg.org/multipage/server-sent-events.html). An
 * incomplete message at the end is dropped. `onBytes` is called for all that arrives, comments too.
 */
export async function* parseEventStream(
  body: ReadableStream<Uint8Array>,
  onBytes: () => void,
): AsyncGenerator<SseMessage> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let message: SseMessage = { event: 'message', id: null, data: '' }
  let lines: string[] = []
  let rest = ''
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      onBytes()
      const parts = (rest + decoder.decode(next.value, { stream: true })).split('\n')
      rest = parts.pop() ?? ''
      for (const part of parts) {
        const line = part.endsWith('\r') ? part.slice(0, -1) : part
        if (line === '') {
          if (lines.length > 0) yield { ...message, data: lines.join('\n') }
          message = { event: 'message', id: null, data: '' }
          lines = []
          continue
        }
        const [, field = '', value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? []
        if (field === 'data') lines.push(value)
        else if (field === 'event') message.event = value
        else if (field === 'id') message.id = value
      }
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

/** A message as text of an event stream; `data` has no line ends, as JSON has none. */
export const formatSseMessage = ({ event, id, data }: SseMessage): string =>
  `${id === null ? '' : `id: ${id}\n`}event: ${event}\ndata: ${data}\n\n`
