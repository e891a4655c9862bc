import { pipeline, Readable } from 'node:stream'
import { createBrotliDecompress, createInflate, createUnzip } from 'node:zlib'
import type { Dispatcher } from 'undici'
import type { EgressBody, EgressResponse } from './egress-port.ts'

/** Bytes that may wait for the reader before the server is paused. */
const maxBufferedBytes = 64 * 1024
/** How long, and for how many bytes, the end of a cancelled body is awaited, so that its connection can be reused. */
const drainTimeoutMs = 25
const maxDrainedBytes = 64 * 1024

const toHeaders = (headers: Record<string, string | string[] | undefined>): EgressResponse['headers'] => ({
  get(name) {
    const value = headers[name]
    return value === undefined ? null : [value].flat().join(', ')
  },
})

/**
 * Sends one request through undici's dispatcher. It avoids the streams and objects of fetch, which cost more than all other
 * work on a response of a few kilobytes. Rejects with the signal's reason at any stage, and with what `beforeSend` throws.
 */
export const receiveResponse = (
  dispatch: (handler: Dispatcher.DispatchHandler) => void,
  beforeSend: () => void,
  signal: AbortSignal | null,
): Promise<EgressResponse> =>
  new Promise((resolve, reject) => {
    let controller: Dispatcher.DispatchController | null = null
    let waiting: Buffer[] = []
    let size = 0
    let dropped = 0
    let isWanted = true
    let ended = false
    let failed = false
    let failure: unknown
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
      failure = error
      settle()
      // no effect where the body ended early: the response has already resolved
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
    const body: EgressBody = {
      async read() {
        if (size === 0 && isWanted && !ended && !failed)
          await new Promise<void>((resume) => {
            wake = resume
          })
        if (size > 0) return take()
        if (failed && isWanted) throw failure
        return null
      },
      cancel() {
        if (!isWanted) return
        isWanted = false
        waiting = []
        size = 0
        wake()
        if (ended || failed) return
        signal?.removeEventListener('abort', abort)
        const error = new Error('the rest of this response was cancelled')
        closing = setTimeout(() => stop(error), drainTimeoutMs)
        controller?.resume()
      },
    }

    signal?.addEventListener('abort', abort)
    dispatch({
      onRequestStart(started) {
        controller = started
        if (failed) return started.abort(failure as Error)
        // undici writes as soon as this returns
        try {
          beforeSend()
        } catch (error) {
          stop(error)
        }
      },
      onResponseStart(_, status, headers) {
        // informational responses come before the final one
        if (status < 200) return
        if (status > 599) return stop(new Error(`the server sent an invalid status: ${status}`))
        const responseHeaders = toHeaders(headers)
        resolve({
          status,
          headers: responseHeaders,
          body: decompressBody(body, responseHeaders.get('content-encoding')),
        })
      },
      onResponseData(from, bytes) {
        if (isWanted) {
          waiting.push(bytes)
          size += bytes.length
          if (size > maxBufferedBytes) from.pause()
          wake()
          return
        }
        dropped += bytes.length
        if (dropped > maxDrainedBytes)
          stop(new Error('the cancelled rest of this response is too long to drain'))
      },
      onResponseEnd() {
        ended = true
        settle()
      },
      onResponseError: (_, error) => fail(error),
    })
  })

const createDecoder = (encoding: string) => {
  if (encoding === 'gzip' || encoding === 'x-gzip') return createUnzip()
  if (encoding === 'deflate') return createInflate()
  return encoding === 'br' ? createBrotliDecompress() : null
}

/** The chunks of a body as they arrive. Stopping early does not cancel the body. */
export async function* readBodyChunks(body: EgressBody): AsyncGenerator<Uint8Array> {
  for (let bytes = await body.read(); bytes !== null; bytes = await body.read()) yield bytes
}

/** Requests do not ask for compression, because it delays streamed text, but some servers compress anyway. */
const decompressBody = (body: EgressBody, encoding: string | null): EgressBody => {
  const decoder = encoding === null ? null : createDecoder(encoding.trim().toLowerCase())
  if (decoder === null) return body
  // an error reaches the reader through the iterator
  const plain = pipeline(Readable.from(readBodyChunks(body)), decoder, () => undefined)
  const chunks: AsyncIterator<Buffer> = plain[Symbol.asyncIterator]()
  return {
    async read() {
      const { done, value } = await chunks.next()
      return done === true ? null : value
    },
    cancel() {
      body.cancel()
      plain.destroy()
    },
  }
}
