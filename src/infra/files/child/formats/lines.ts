import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { cutText } from '../../../../state/cut-text.ts'
import type { Section } from '../../../../state/files/prepared.ts'
import { bounds, type FoundDocument, type PrepareJob, Unreadable } from '../protocol.ts'

/** A document's text on its way: lines, the sections they open and the pages they begin. */
export const createDocument = () => {
  const lines: string[] = []
  const sections: Section[] = []
  const pageLines: number[] = []
  let chars = 0
  let cut = false
  let blank = true
  return {
    get cut() {
      return cut
    },
    addPage(): void {
      pageLines.push(lines.length + 1)
    },
    addLine(line: string): void {
      if (chars > bounds.textChars) {
        cut = true
        return
      }
      chars += line.length + 1
      blank &&= line.trim() === ''
      lines.push(line)
    },
    addSection(title: string, level: number): void {
      const text = title.replace(/\s+/g, ' ').trim()
      if (text !== '' && sections.length < bounds.sections)
        sections.push({
          title: cutText(text, 200),
          level,
          page: pageLines.length > 0 ? pageLines.length : null,
          line: lines.length + 1,
        })
    },
    get isBlank() {
      return blank
    },
    describe: (title: string | null, pages: number | null): FoundDocument => ({
      title: title === null || title.trim() === '' ? null : cutText(title.trim(), 200),
      pages,
      lines: lines.length,
      chars,
      text: null,
      head: cutText(lines.join('\n').slice(0, 1000).toWellFormed(), 500),
      sections,
      page_lines: pageLines,
    }),
    /** The text beside the description, as a file in the job's folder. */
    async write(job: PrepareJob, title: string | null, pages: number | null): Promise<FoundDocument> {
      const path = join(job.folder, 'text')
      await writeFile(path, lines.length === 0 ? '' : `${lines.join('\n').toWellFormed()}\n`)
      return { ...this.describe(title, pages), text: { path } }
    },
  }
}

export type DocumentText = ReturnType<typeof createDocument>

/** Lines of Markdown; its headings are the sections. */
export const addMarkdown = (document: DocumentText, markdown: string): void => {
  let fence = false
  for (const line of markdown.split(/\r?\n/)) {
    if (/^\s{0,3}(```|~~~)/.test(line)) fence = !fence
    const heading = fence ? null : /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/.exec(line)
    if (heading) document.addSection(heading[2] ?? '', heading[1]?.length ?? 1)
    document.addLine(line)
  }
}

export const requireText = (document: DocumentText, what: string): void => {
  if (document.isBlank) throw new Unreadable(what)
}

export const cutNote = (document: DocumentText): string[] =>
  document.cut ? [`only its first ${bounds.textChars.toLocaleString('en')} characters are read`] : []
