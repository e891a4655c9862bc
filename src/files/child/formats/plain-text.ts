import { createReadStream } from 'node:fs'
import { open, readFile } from 'node:fs/promises'
import { decodeText, detectUtf16, guessEncoding } from '../../../state/text/decode-text.ts'
import {
  type FileContents,
  fileBounds,
  formatBytes,
  type PrepareJob,
  UnreadableFileError,
} from '../../protocol/child-protocol.ts'
import { addMarkdown, createDocument } from './document-text.ts'

/** Reads a text file: its lines and, of Markdown, its headings. The file itself stays the text. */
export const prepareText = async (
  job: PrepareJob,
  format: 'markdown' | 'text',
  bytes: number,
): Promise<FileContents> => {
  const text = await readTextFile(job.path, bytes)
  const document = createDocument()
  const body = text.endsWith('\n') ? text.slice(0, -1) : text
  if (format === 'markdown') addMarkdown(document, body)
  else for (const line of body.split('\n')) document.addLine(line.endsWith('\r') ? line.slice(0, -1) : line)
  return document.describe({ format })
}

/** The whole of a text file. Throws `UnreadableFileError` when it is binary or too large. */
export const readTextFile = async (path: string, bytes: number): Promise<string> => {
  if (bytes > fileBounds.wholeBytes)
    throw new UnreadableFileError(
      `it has ${formatBytes(bytes)} of text, more than ${formatBytes(fileBounds.wholeBytes)}; split it`,
    )
  const text = decodeText(await readFile(path))
  if (text === null)
    throw new UnreadableFileError(
      'it has the name of a text file, but is binary; upload it in its real format',
    )
  return text
}

/** The first `maxBytes` bytes of a file. */
export const readHead = async (path: string, maxBytes: number): Promise<Buffer> => {
  await using file = await open(path)
  const buffer = Buffer.alloc(maxBytes)
  const { bytesRead } = await file.read(buffer, 0, maxBytes, 0)
  return buffer.subarray(0, bytesRead)
}

const chunkBytes = 1024 * 1024

/** The encoding of a text file of any size: UTF-8 when all its bytes are, else by its first megabyte. */
export const detectEncoding = async (path: string): Promise<string> => {
  const head = await readHead(path, chunkBytes)
  return detectUtf16(head) ?? ((await isAllUtf8(path)) ? 'utf-8' : guessEncoding(head))
}

/** A guess is no secret: the note of a text that is neither UTF-8 nor UTF-16. */
export const describeEncoding = async (path: string): Promise<string[]> => {
  const encoding = await detectEncoding(path)
  if (encoding.startsWith('utf-16') || (encoding === 'utf-8' && (await isAllUtf8(path)))) return []
  return [
    `by its bytes its encoding is ${encoding}; if its text looks wrong, save it as UTF-8 and upload it again`,
  ]
}

const isAllUtf8 = async (path: string): Promise<boolean> => {
  try {
    for await (const _text of readTextChunks(path, 'utf-8', { fatal: true }));
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return false
    throw error
  }
}

/** Reads the text of a file chunk by chunk. `fatal`: throws where the bytes are not of the encoding. */
export async function* readTextChunks(
  path: string,
  encoding: string,
  options?: { fatal: boolean },
): AsyncGenerator<string> {
  const decoder = new TextDecoder(encoding, options)
  for await (const chunk of createReadStream(path, { highWaterMark: chunkBytes }) as AsyncIterable<Buffer>)
    yield decoder.decode(chunk, { stream: true })
  yield decoder.decode()
}
