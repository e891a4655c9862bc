import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { DocumentSection } from '../../../state/files/prepared-files.ts'
import { cutText } from '../../../state/text/cut-text.ts'
import { fileBounds, type PrepareJob, UnreadableFileError } from '../../protocol/child-protocol.ts'

type DocumentFacts = { format: string; title?: string | undefined; pages?: number | null }

/** Collects a document's text: its lines, its sections and where its pages begin. */
export const createDocument = () => {
  const lines: string[] = []
  const sections: DocumentSection[] = []
  const pageLines: number[] = []
  let chars = 0
  let isTruncated = false
  let isBlank = true

  const describe = ({ format, title = '', pages = null }: DocumentFacts) => ({
    format,
    document: {
      title: title.trim() === '' ? null : cutText(title.trim(), 200),
      pages,
      lines: lines.length,
      chars,
      text: null,
      head: cutText(lines.join('\n').slice(0, 1000).toWellFormed(), 500),
      sections,
      page_lines: pageLines,
    },
    notes: isTruncated
      ? [`only its first ${fileBounds.textChars.toLocaleString('en')} characters are read`]
      : [],
  })

  return {
    /** Whether the limit of characters has cut the text. */
    get isTruncated() {
      return isTruncated
    },
    get isBlank() {
      return isBlank
    },
    addPage(): void {
      if (pageLines.length < fileBounds.pages) pageLines.push(lines.length + 1)
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
    /** The contents of a file that is its own text. */
    describe,
    /**
     * The contents of a file with this text, written to a file in the job's folder. Throws `UnreadableFileError` with
     * `blankReason` when there is none.
     */
    async write(job: PrepareJob, facts: DocumentFacts, blankReason: string) {
      if (isBlank) throw new UnreadableFileError(blankReason)
      const path = join(job.folder, 'text')
      await writeFile(path, `${lines.join('\n').toWellFormed()}\n`)
      const contents = describe(facts)
      return { ...contents, document: { ...contents.document, text: { path } } }
    },
  }
}

/** See `createDocument`. */
export type DocumentText = ReturnType<typeof createDocument>

/** A heading without the # that may close it. No pattern: one that finds an end takes quadratic time. */
const withoutEnd = (heading: string): string => {
  let end = heading.trimEnd().length
  while (heading[end - 1] === '#') end -= 1
  return heading.slice(0, end)
}

/** Adds lines of Markdown; its headings become sections. */
export const addMarkdown = (document: DocumentText, markdown: string): void => {
  let inFence = false
  for (const line of markdown.split(/\r?\n/)) {
    if (/^\s{0,3}(```|~~~)/.test(line)) inFence = !inFence
    const heading = inFence ? null : /^ {0,3}(#{1,6})\s+(.*)/.exec(line)
    if (heading) document.addSection(withoutEnd(heading[2] ?? ''), heading[1]?.length ?? 1)
    document.addLine(line)
  }
}
