import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { DocumentSection } from '../../../state/files/prepared-files.ts'
import { cutText } from '../../../state/text/cut-text.ts'
import {
  type DocumentContents,
  type FileContents,
  fileBounds,
  type PrepareJob,
  UnreadableFileError,
} from '../../protocol/child-protocol.ts'

/** Collects a document's text: its lines, its sections and where its pages begin. */
export const createDocument = () => {
  const lines: string[] = []
  const sections: DocumentSection[] = []
  const pageLines: number[] = []
  let chars = 0
  let isTruncated = false
  let isBlank = true
  return {
    /** Whether the limit of characters has cut the text. */
    get isTruncated() {
      return isTruncated
    },
    addPage(): void {
      pageLines.push(lines.length + 1)
    },
    addLine(line: string): void {
      if (chars > fileBounds.textChars) {
        isTruncated = true
        return
      }
      chars += line.length + 1
      isBlank &&= line.trim() === ''
      lines.push(line)
    },
    addSection(title: string, level: number): void {
      const text = title.replace(/\s+/g, ' ').trim()
      if (text !== '' && sections.length < fileBounds.sections)
        sections.push({
          title: cutText(text, 200),
          level,
          page: pageLines.length > 0 ? pageLines.length : null,
          line: lines.length + 1,
        })
    },
    get isBlank() {
      return isBlank
    },
    describe: (title: string | null, pages: number | null): DocumentContents => ({
      title: title === null || title.trim() === '' ? null : cutText(title.trim(), 200),
      pages,
      lines: lines.length,
      chars,
      text: null,
      head: cutText(lines.join('\n').slice(0, 1000).toWellFormed(), 500),
      sections,
      page_lines: pageLines,
    }),
    /** The contents of a file with this document, whose text it writes to a file in the job's folder. */
    async write(
      job: PrepareJob,
      format: string,
      title: string | null,
      pages: number | null,
    ): Promise<FileContents> {
      const path = join(job.folder, 'text')
      await writeFile(path, lines.length === 0 ? '' : `${lines.join('\n').toWellFormed()}\n`)
      const document = { ...this.describe(title, pages), text: { path } }
      return { format, document, notes: truncationNotes(this) }
    },
  }
}

/** See `createDocument`. */
export type DocumentText = ReturnType<typeof createDocument>

/** Adds lines of Markdown; its headings become sections. */
export const addMarkdown = (document: DocumentText, markdown: string): void => {
  let inFence = false
  for (const line of markdown.split(/\r?\n/)) {
    if (/^\s{0,3}(```|~~~)/.test(line)) inFence = !inFence
    const heading = inFence ? null : /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/.exec(line)
    if (heading) document.addSection(heading[2] ?? '', heading[1]?.length ?? 1)
    document.addLine(line)
  }
}

/** Throws `UnreadableFileError` with this message when the document has no text. */
export const requireText = (document: DocumentText, message: string): void => {
  if (document.isBlank) throw new UnreadableFileError(message)
}

/** The note that the text is cut; none when it is whole. */
export const truncationNotes = (document: DocumentText): string[] =>
  document.isTruncated
    ? [`only its first ${fileBounds.textChars.toLocaleString('en')} characters are read`]
    : []
