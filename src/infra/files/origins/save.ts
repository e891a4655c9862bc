import { createHash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { FileFault } from './fault.ts'

export type Saved = { path: string; bytes: number; sha256: string }

/** Writes a stream to a path of ours, counting and hashing on the way; more than `maxBytes` are refused. */
export const save = async (
  source: AsyncIterable<Uint8Array>,
  path: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Saved> => {
  const hash = createHash('sha256')
  let bytes = 0
  const counted = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length
      hash.update(chunk)
      done(bytes > maxBytes ? tooLarge(maxBytes) : null, chunk)
    },
  })
  await pipeline(
    Readable.from(source, { objectMode: false }),
    counted,
    createWriteStream(path, { mode: 0o600 }),
    { signal },
  )
  return { path, bytes, sha256: hash.digest('hex') }
}

export const tooLarge = (maxBytes: number): FileFault =>
  new FileFault(
    `it is larger than ${Math.round(maxBytes / 1024 / 1024)} MB; split it or leave out what is not needed`,
  )
