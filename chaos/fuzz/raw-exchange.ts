import { connect, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { collectReply, type RawReply } from './raw-reply.ts'

/** A request as bytes. Nothing is checked or mended on the way out, which is what `fetch` would do. */
export type RawRequest = {
  head: Buffer
  body: Buffer
  /** Sends the body in so many pieces, each a packet of its own. */
  pieces: number
  /** Hangs up when this share of the body has left; 1 stays. */
  until: number
}

/** `hung-up`: the server closed without an answer. `left`: we did, as the request wanted. `silent`: nothing for `ms`. */
export type ExchangeOutcome = { kind: 'reply'; reply: RawReply } | { kind: 'hung-up' | 'left' | 'silent' }

const patienceMs = 30_000

/** Sends one request over a connection of its own and reads the answer. A stream of events is left after its headers. */
export const exchange = (port: number, request: RawRequest, signal: AbortSignal): Promise<ExchangeOutcome> =>
  new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' })
    const answer = collectReply(request.head.subarray(0, 5).toString() === 'HEAD ')
    const settle = (outcome: ExchangeOutcome): void => {
      signal.removeEventListener('abort', onAbort)
      socket.destroy()
      resolve(outcome)
    }
    const onAbort = (): void => {
      socket.destroy()
      reject(signal.reason)
    }
    signal.addEventListener('abort', onAbort, { once: true })
    const read = (otherwise: 'hung-up' | 'left' | 'silent'): void => {
      const reply = answer.reply()
      settle(reply ? { kind: 'reply', reply } : { kind: otherwise })
    }
    const gone = request.until < 1 ? 'left' : 'hung-up'
    socket.setNoDelay(true)
    socket.setTimeout(patienceMs, () => read('silent'))
    // a server may answer and reset before it has read all: what came by then counts
    socket.on('error', () => read(gone))
    socket.on('close', () => read(gone))
    socket.on('data', (chunk) => {
      if (answer.take(chunk)) read(gone)
    })
    send(socket, request).then(
      () => request.until < 1 && settle({ kind: 'left' }),
      () => {},
    )
  })

const send = async (socket: Socket, { head, body, pieces, until }: RawRequest): Promise<void> => {
  const whole = body.subarray(0, Math.floor(body.length * until))
  const size = Math.max(1, Math.ceil(whole.length / pieces))
  await write(socket, head)
  for (let at = 0; at < whole.length; at += size) {
    await write(socket, whole.subarray(at, at + size))
    if (pieces > 1) await setImmediate()
  }
}

const write = (socket: Socket, bytes: Buffer): Promise<void> =>
  new Promise((resolve, reject) => socket.write(bytes, (error) => (error ? reject(error) : resolve())))
