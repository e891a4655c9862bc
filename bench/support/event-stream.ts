import { connect } from 'node:net'

/**
 * Follows a stream of server-sent events and tells the name of each as it comes, or what `pattern` captures; nothing else is read of it.
 * With a body it is the answer to a POST. Its beginning is `open`. Gives the way out.
 */
export const followEvents = (
  port: number,
  path: string,
  onEvent: (name: string) => void,
  { body, pattern = /^event: (.*)$/gm }: { body?: string; pattern?: RegExp } = {},
): (() => void) => {
  const sent =
    body === undefined
      ? ''
      : `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n`
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  let text = ''
  socket.setEncoding('latin1')
  socket.on('connect', () =>
    socket.write(
      `${body === undefined ? 'GET' : 'POST'} ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\naccept: text/event-stream\r\n${sent}\r\n${body ?? ''}`,
    ),
  )
  socket.on('data', (part: string) => {
    if (text === '' && !part.startsWith('HTTP/1.1 200')) throw new Error(`no stream: ${part.slice(0, 200)}`)
    if (text === '') onEvent('open')
    text += part
    const end = text.lastIndexOf('\n') + 1
    for (const [, name = ''] of text.slice(0, end).matchAll(pattern)) onEvent(name)
    // never empty again, or the next part would be taken for the first
    text = `\n${text.slice(end)}`
  })
  return () => void socket.destroy()
}
