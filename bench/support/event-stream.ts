import { connect } from 'node:net'

/** Follows a stream of server-sent events and tells the name of each as it comes; nothing else is read of it. Gives the way out. */
export const followEvents = (port: number, path: string, onEvent: (name: string) => void): (() => void) => {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  let text = ''
  socket.setEncoding('latin1')
  socket.on('connect', () =>
    socket.write(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\naccept: text/event-stream\r\n\r\n`),
  )
  socket.on('data', (part: string) => {
    if (text === '' && !part.startsWith('HTTP/1.1 200')) throw new Error(`no stream: ${part.slice(0, 200)}`)
    text += part
    const end = text.lastIndexOf('\n') + 1
    for (const [, name = ''] of text.slice(0, end).matchAll(/^event: (.*)$/gm)) onEvent(name)
    // never empty again, or the next part would be taken for the first
    text = `\n${text.slice(end)}`
  })
  return () => void socket.destroy()
}
