import { isUtf8 } from 'node:buffer'
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'

const chunkBytes = 1024 * 1024
const newline = 0x0a

/** The encoding of a text file of any size: a mark, UTF-8 to its last byte, GB18030 by its start, or Windows-1252. */
export const encodingOf = async (path: string): Promise<string> => {
  const head = await readHead(path)
  if (head[0] === 0xff && head[1] === 0xfe) return 'utf-16le'
  if (head[0] === 0xfe && head[1] === 0xff) return 'utf-16be'
  if (await isAllUtf8(path)) return 'utf-8'
  try {
    new TextDecoder('gb18030', { fatal: true }).decode(head, { stream: true })
    return 'gb18030'
  } catch {
    return 'windows-1252'
  }
}

const readHead = async (path: string): Promise<Buffer> => {
  const file = await open(path)
  try {
    const buffer = Buffer.alloc(chunkBytes)
    const { bytesRead } = await file.read(buffer, 0, chunkBytes, 0)
    return buffer.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

/** A line end is never inside a character of UTF-8, so pieces are cut there. */
const isAllUtf8 = async (path: string): Promise<boolean> => {
  let rest: Buffer = Buffer.alloc(0)
  for await (const chunk of createReadStream(path, { highWaterMark: chunkBytes }) as AsyncIterable<Buffer>) {
    const end = chunk.lastIndexOf(newline)
    if (end === -1 && rest.length < 4 * chunkBytes) {
      rest = Buffer.concat([rest, chunk])
      continue
    }
    if (!isUtf8(Buffer.concat([rest, chunk.subarray(0, end + 1)]))) return false
    rest = chunk.subarray(end + 1)
  }
  return isUtf8(rest)
}

/** The text of a file, piece by piece. */
export async function* textOf(path: string, encoding: string): AsyncGenerator<string> {
  const decoder = new TextDecoder(encoding)
  for await (const chunk of createReadStream(path, { highWaterMark: chunkBytes }) as AsyncIterable<Buffer>)
    yield decoder.decode(chunk, { stream: true })
  yield decoder.decode()
}
