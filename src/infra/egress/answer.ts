import type { Dispatcher } from 'undici'
import type { Answer, Body } from './port.ts'
import { unpacked } from './unpack.ts'

/** Bytes that may wait for whoever reads before the server is slowed down. */
const mostWaiting = 64 * 1024
/** How long, and for how many bytes, the end of a body that nobody wants is waited for, so that its connection lives on. */
const closingMs = 25
const mostDropped = 64 * 1024

const noSuchStatus = (status: number): Error =>
  new Error(`the server answered with a status that there is not: ${status}`)

const headersOf = (headers: Record<string, string | string[] | undefined>): Answer['headers'] => ({
  get(name) {
    const value = headers[name]
    return value === undefined ? null : [value].flat().join(', ')
  },
})

/**
 * What undici tells of one request, as an answer: without the streams and objects of fetch, which cost more than all
 * else that is done with an answer of a few kilobytes. Rejects with the signal's reason, at any stage, and with what
 * `beforeSend` throws.
 */
export const receiveAnswer = (
  dispatch: (handler: Dispatcher.DispatchHandler) => void,
  beforeSend: () => void,
  signal: AbortSignal | null,
): Promise<Answer> =>
  new Promise((resolve, reject) => {
    let controller: Dispatcher.DispatchController | null = null
    let waiting: Buffer[] = []
    let size = 0
    let dropped = 0
    let wanted = true
    let ended = false
    let failed = false
    let fault: unknown
    let wake = (): void => {}
    let closing: NodeJS.Timeout | undefined

    const settle = (): void => {
      signal?.removeEventListener('abort', abort)
      clearTimeout(closing)
      wake()
    }
    const fail = (error: unknown): void => {
      if (ended || failed) return
      failed = true
      fault = error
      settle()
      // the answer is there already where its body broke off
      reject(error)
    }
    const stop = (error: unknown): void => {
      fail(error)
      // without a connection there is nothing to stop yet
      controller?.abort(error as Error)
    }
    const abort = (): void => {
      waiting = []
      size = 0
      stop(signal?.reason)
    }
    const take = (): Buffer => {
      const [first] = waiting
      const bytes = waiting.length === 1 && first !== undefined ? first : Buffer.concat(waiting, size)
      waiting = []
      size = 0
      controller?.resume()
      return bytes
    }
    const body: Body = {
      async read() {
        if (size === 0 && wanted && !ended && !failed)
          await new Promise<void>((heard) => {
            wake = heard
          })
        if (size > 0) return take()
        if (failed && wanted) throw fault
        return null
      },
      cancel() {
        if (!wanted) return
        wanted = false
        waiting = []
        size = 0
        wake()
        if (ended || failed) return
        signal?.removeEventListener('abort', abort)
        const error = new Error('nobody reads the rest of this answer')
        closing = setTimeout(() => stop(error), closingMs)
        controller?.resume()
      },
    }

    signal?.addEventListener('abort', abort)
    dispatch({
      onRequestStart(started) {
        controller = started
        if (failed) return started.abort(fault as Error)
        // undici writes as soon as this returns
        try {
          beforeSend()
        } catch (error) {
          stop(error)
        }
      },
      onResponseStart(_, status, headers) {
        // those that only announce the answer
        if (status < 200) return
        if (status > 599) return stop(noSuchStatus(status))
        const shown = headersOf(headers)
        resolve({ status, headers: shown, body: unpacked(body, shown.get('content-encoding')) })
      },
      onResponseData(from, bytes) {
        if (wanted) {
          waiting.push(bytes)
          size += bytes.length
          if (size > mostWaiting) from.pause()
          wake()
          return
        }
        dropped += bytes.length
        if (dropped > mostDropped) stop(new Error('the rest of this answer is too long to be waited for'))
      },
      onResponseEnd() {
        ended = true
        settle()
      },
      onResponseError: (_, error) => fail(error),
    })
  })
