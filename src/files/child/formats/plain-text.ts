import { createReadStream } from 'node:fs'
import { open, readFile } from 'node:fs/promises'
import { decodeText } from '../../../state/text/decode-text.ts'
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

/**
 * The encoding of a text file of any size: UTF-16 by its byte order mark, UTF-8 when all its bytes are, GB18030 by its
 * first megabyte, else Windows-1252.
 */
export const detectEncoding = async (path: string): Promise<string> => {
  const head = await readHead(path, chunkBytes)
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
