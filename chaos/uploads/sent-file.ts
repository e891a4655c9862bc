import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { type Random, randomFrom } from '../fleet/random.ts'

const chunkBytes = 64 * 1024

/** A file that is made as it is sent: `length` bytes, of which no two chunks are equal. */
export const createSentFile = (length: number, seed: number) => {
  // the last part of a byte would never leave, and the sender wait for it without end
  if (!Number.isInteger(length)) throw new Error(`a file has whole bytes, not ${length}; round its length`)
  const random: Random = randomFrom(seed)
  const base = Buffer.from(Array.from({ length: chunkBytes }, () => random.below(256)))
  const readChunk = (at: number): Buffer => {
    const chunk = Buffer.from(base)
    chunk.writeUInt32BE(at)
    return chunk.subarray(0, Math.min(chunkBytes, length - at * chunkBytes))
  }
  async function* readFrom(offset: number, onSent: (sent: number) => void): AsyncGenerator<Buffer> {
    for (let at = offset; at < length; ) {
      const chunk = readChunk(Math.floor(at / chunkBytes)).subarray(at % chunkBytes)
      yield chunk
      at += chunk.length
      onSent(at)
    }
  }
  return {
    length,
    hash: (): string => {
      const hash = createHash('sha256')
      for (let at = 0; at * chunkBytes < length; at++) hash.update(readChunk(at))
      return hash.digest('hex')
    },
    /** Sends the bytes from `offset` on, `onSent` with how many have left; null where the connection broke off. */
    async send(
      address: string,
      method: 'POST' | 'PATCH',
      headers: Record<string, string>,
      { offset = 0, onSent = () => {} }: { offset?: number; onSent?(sent: number): void } = {},
    ): Promise<Response | null> {
      const body = Readable.toWeb(Readable.from(readFrom(offset, onSent), { objectMode: false }))
      return fetch(address, {
        ...{ method, headers, duplex: 'half' },
        body: body as unknown as ReadableStream,
      } as RequestInit).catch(() => null)
    },
  }
}
