import { readFile } from 'node:fs/promises'
import { decodeText } from '../../../../state/files/decode-text.ts'
import { bounds, type Found, megabytes, type PrepareJob, Unreadable } from '../protocol.ts'
import { addMarkdown, createDocument, cutNote } from './lines.ts'

/** Text is read where it is; what is found are its lines and, of Markdown, its headings. */
export const prepareText = async (
  job: PrepareJob,
  format: 'markdown' | 'text',
  bytes: number,
): Promise<Found> => {
  const text = await readText(job.path, bytes)
  const document = createDocument()
  const body = text.endsWith('\n') ? text.slice(0, -1) : text
  if (format === 'markdown') addMarkdown(document, body)
  else for (const line of body.split('\n')) document.addLine(line.endsWith('\r') ? line.slice(0, -1) : line)
  return { format, document: document.describe(null, null), notes: cutNote(document) }
}

/** The whole of a text file; refuses what is binary or does not fit. */
export const readText = async (path: string, bytes: number): Promise<string> => {
  if (bytes > bounds.wholeBytes)
    throw new Unreadable(
      `it has ${megabytes(bytes)} of text, more than ${megabytes(bounds.wholeBytes)}; split it`,
    )
  const text = decodeText(await readFile(path))
  if (text === null)
    throw new Unreadable('it is named as text, but its bytes are none; upload it in its real format')
  return text
}
