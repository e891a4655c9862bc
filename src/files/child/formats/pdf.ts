import { readFile } from 'node:fs/promises'
import { getDocumentProxy } from 'unpdf'
import {
  type FileContents,
  fileBounds,
  type PrepareJob,
  UnreadableFileError,
} from '../../protocol/child-protocol.ts'
import { createDocument, type DocumentText } from './document-text.ts'

type Item = { str?: string; hasEOL?: boolean; height?: number; transform?: number[] }
type Line = { text: string; height: number }

/** Reads the text of a PDF page by page. */
export const preparePdf = async (job: PrepareJob, bytes: number): Promise<FileContents> => {
  if (bytes > fileBounds.wholeBytes * 2)
    throw new UnreadableFileError('it has more than 96 MB; split it, or remove its pictures')
  const pdf = await openPdf(job.path)
  const document = createDocument()
  const pages = Math.min(pdf.numPages, fileBounds.pages)
  let blank = 0
  for (let number = 1; number <= pages && !document.isTruncated; number += 1) {
    const page = await pdf.getPage(number)
    const { items } = await page.getTextContent()
    document.addPage()
    const lines = toLines(items as Item[])
    if (lines.length === 0) blank += 1
    addLines(document, lines)
    page.cleanup()
  }
  const { info } = await pdf.getMetadata().catch(() => ({ info: null }))
  const title = (info as { Title?: unknown } | null)?.Title
  const contents = await document.write(
    job,
    { format: 'pdf', title: typeof title === 'string' ? title : '', pages: pdf.numPages },
    'its pages have no text (scanned pictures?); run text recognition on it and upload the result',
  )
  if (pdf.numPages > pages)
    contents.notes.push(`only the first ${pages} of its ${pdf.numPages} pages are read`)
  if (blank > 0) contents.notes.push(`${blank} of its pages have no text`)
  return contents
}

const openPdf = async (path: string) => {
  try {
    return await getDocumentProxy(new Uint8Array(await readFile(path)), {
      isEvalSupported: false,
      disableFontFace: true,
      useSystemFonts: false,
      verbosity: 0,
    })
  } catch (error) {
    if ((error as Error).name === 'PasswordException')
      throw new UnreadableFileError(
        'it is encrypted with a password; save it without one and upload it again',
      )
    throw error
  }
}

const toLines = (items: readonly Item[]): Line[] => {
  const lines: Line[] = []
  let text = ''
  let height = 0
  const end = (): void => {
    if (text.trim() !== '') lines.push({ text: text.trim(), height })
    text = ''
    height = 0
  }
  for (const { str = '', hasEOL, height: tall = 0 } of items) {
    text += str
    if (str.trim() !== '') height = Math.max(height, Math.round(tall * 2) / 2)
    if (hasEOL) end()
  }
  end()
  return lines
}

/** A short line in letters 1.2 times as tall as most of its page is a heading. */
const addLines = (document: DocumentText, lines: readonly Line[]): void => {
  const usual = commonHeight(lines)
  for (const { text, height } of lines) {
    if (usual > 0 && height >= usual * 1.2 && text.length <= 120)
      document.addSection(text, height >= usual * 1.6 ? 1 : 2)
    document.addLine(text)
  }
}

/** The height of most characters. */
const commonHeight = (lines: readonly Line[]): number => {
  const chars = new Map<number, number>()
  for (const { text, height } of lines) chars.set(height, (chars.get(height) ?? 0) + text.length)
  return [...chars].sort((a, b) => b[1] - a[1])[0]?.[0] ?? 0
}
