import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

export type Answer = { status: number; body: string }

/** One kept-alive connection that does one request after the other, with as little work as can be: the client shares the machine with what it measures. */
export type HttpConnection = {
  post(path: string, body: string): Promise<Answer>
  close(): void
}

export const openConnection = async (port: number): Promise<HttpConnection> => {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  const next = createReader(socket)
  return {
    async post(path, body) {
      socket.write(
        `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      )
      return next()
    },
    close: () => void socket.destroy(),
  }
}

const createReader = (socket: Socket): (() => Promise<Answer>) => {
  let text = ''
  let settle: { resolve(answer: Answer): void; reject(error: Error): void } | null = null
  // bodies are measured in characters: answers here are ASCII
  socket.setEncoding('latin1')
  socket.on('data', (part: string) => {
    text += part
    const read = readAnswer(text)
    if (!read) return
    text = text.slice(read.length)
    settle?.resolve(read.answer)
  })
  socket.on('error', (error) => settle?.reject(error))
  socket.on('close', () => settle?.reject(new Error('the server hung up')))
  return () =>
    new Promise((resolve, reject) => {
      settle = { resolve, reject }
    })
}

/** The answer at the beginning of a text, once it is whole. */
const readAnswer = (text: string): { answer: Answer; length: number } | null => {
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return null
  const head = text.slice(0, end).toLowerCase()
  const status = Number(head.slice(9, 12))
  const start = end + 4
  const size = /content-length: *(\d+)/.exec(head)?.[1]
  if (size !== undefined) {
    const length = start + Number(size)
    return text.length < length ? null : { answer: { status, body: text.slice(start, length) }, length }
  }
  const last = text.indexOf('\r\n0\r\n\r\n', start - 2)
  if (last < 0) return null
  return { answer: { status, body: unchunk(text.slice(start, last + 2)) }, length: last + 7 }
}

const unchunk = (text: string): string => {
  let body = ''
  for (let at = 0; at < text.length; ) {
    const line = text.indexOf('\r\n', at)
    const size = Number.parseInt(text.slice(at, line), 16)
    body += text.slice(line + 2, line + 2 + size)
    at = line + 2 + size + 2
  }
  return body
}
