import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream'
import { createBrotliDecompress, createInflate, createUnzip } from 'node:zlib'

/** Servers are not asked to compress, since that holds streamed text back; some do nevertheless. */
const decoded = (body: Readable, encoding: string): Readable => {
  const decoder = decoderOf(encoding.trim().toLowerCase())
  if (decoder === null) return body
  // a fault reaches who reads, and nobody else
  return pipeline(
    body,
    decoder.on('error', () => undefined),
    () => undefined,
  )
}

const decoderOf = (encoding: string) => {
  if (encoding === 'gzip' || encoding === 'x-gzip') return createUnzip()
  if (encoding === 'deflate') return createInflate()
  return encoding === 'br' ? createBrotliDecompress() : null
}

/** One chunk at a time, and none before it is asked for, so that a slow reader slows the server down. */
const streamOf = (body: Readable): ReadableStream<Uint8Array> => {
  let wake: (() => void) | null = null
  const awake = (): void => wake?.()
  for (const event of ['readable', 'end', 'error', 'close']) body.on(event, awake)
  return new ReadableStream<Uint8Array>(
    {
      pull: (controller) =>
        new Promise((resolve, reject) => {
          const settle = (end: () => void): void => {
            wake = null
            end()
          }
          wake = () => {
            const chunk = body.readableEnded || body.destroyed ? null : (body.read() as Buffer | null)
            if (chunk !== null)
              settle(() => {
                controller.enqueue(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength))
                resolve()
              })
            else if (body.errored) settle(() => reject(body.errored))
            else if (body.readableEnded)
              settle(() => {
                controller.close()
                resolve()
              })
            else if (body.destroyed) settle(() => reject(new Error('the connection was closed')))
          }
          wake()
        }),
      cancel: () => void body.destroy(),
    },
    { highWaterMark: 0 },
  )
}

type Received = { statusCode: number; headers: Record<string, string | string[] | undefined>; body: Readable }

/** What came, as fetch gives it. */
export const responseOf = ({ statusCode, headers, body }: Received): Response => {
  // a fault of the connection before anyone reads the body has nobody else to hear it
  body.on('error', () => undefined)
  if (statusCode < 200 || statusCode > 599) {
    body.destroy()
    throw new Error(`the server answered with a status that there is not: ${statusCode}`)
  }
  const shown = new Headers()
  for (const [name, values] of Object.entries(headers))
    for (const value of [values ?? []].flat())
      shown.append(name, value.replace(/[^\t\x20-\x7e\x80-\xff]/g, '?'))
  const init = { status: statusCode, headers: shown }
  if (statusCode !== 204 && statusCode !== 205 && statusCode !== 304)
    return new Response(streamOf(decoded(body, shown.get('content-encoding') ?? '')), init)
  body.resume()
  return new Response(null, init)
}

/** At most `maxBytes` of a body; `whole` is false when there was more, which is not read. */
export const cappedBody = async (
  response: Response,
  maxBytes: number,
): Promise<{ bytes: Uint8Array; whole: boolean }> => {
  if (response.body === null) return { bytes: new Uint8Array(), whole: true }
  const reader = response.body.getReader()
  const chunks: Uint8Array[] = []
  let count = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return { bytes: Buffer.concat(chunks), whole: true }
    chunks.push(value)
    count += value.byteLength
    if (count <= maxBytes) continue
    reader.cancel().catch(() => undefined)
    return { bytes: Buffer.concat(chunks, count).subarray(0, maxBytes), whole: false }
  }
}
