import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { onDisk } from './disk.ts'
import { FileFault } from './fault.ts'

export type Saved = { path: string; bytes: number; sha256: string }

/** Writes a stream to a path of ours, counting and hashing on the way; more than `maxBytes` are refused. Throws DiskFault. */
export const save = async (
  source: AsyncIterable<Uint8Array>,
  path: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Saved> => {
  const hash = createHash('sha256')
  let bytes = 0
  const write = async (chunks: AsyncIterable<Buffer>): Promise<void> => {
    await using file = await onDisk(open(path, 'w', 0o600))
    for await (const chunk of chunks) {
      bytes += chunk.length
      if (bytes > maxBytes) throw tooLarge(maxBytes)
      hash.update(chunk)
      await onDisk(file.writeFile(chunk))
    }
  }
  await pipeline(Readable.from(source, { objectMode: false }), write, { signal })
  return { path, bytes, sha256: hash.digest('hex') }
}

export const tooLarge = (maxBytes: number): FileFault =>
  new FileFault(
    `it is larger than ${Math.round(maxBytes / 1024 / 1024)} MB; split it or leave out what is not needed`,
  )
