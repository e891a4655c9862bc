import { pipeline, Readable } from 'node:stream'
import { createBrotliDecompress, createInflate, createUnzip } from 'node:zlib'
import type { Body } from './port.ts'

const decoderOf = (encoding: string) => {
  if (encoding === 'gzip' || encoding === 'x-gzip') return createUnzip()
  if (encoding === 'deflate') return createInflate()
  return encoding === 'br' ? createBrotliDecompress() : null
}

/** A body as it comes. It is not cancelled by stopping before its end. */
export async function* chunksOf(body: Body): AsyncGenerator<Uint8Array> {
  for (let bytes = await body.read(); bytes !== null; bytes = await body.read()) yield bytes
}

/** Servers are not asked to compress, since that holds streamed text back; some do nevertheless. */
export const unpacked = (body: Body, encoding: string | null): Body => {
  const decoder = encoding === null ? null : decoderOf(encoding.trim().toLowerCase())
  if (decoder === null) return body
  // a fault reaches who reads, and nobody else
  const plain = pipeline(Readable.from(chunksOf(body)), decoder, () => undefined)
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
