import { addMarkdown, createDocument } from '../../files/child/formats/document-text.ts'
import {
  encryptedMessage,
  type FileContents,
  type PrepareJob,
  UnreadableFileError,
} from '../../files/protocol/child-protocol.ts'
import { openArchive, readXml } from './archive.ts'
import { toMarkdown } from './html.ts'

/** OpenDocument elements as HTML: what stands before and after their content. */
const htmlAround: Readonly<Record<string, readonly [before: string, after: string]>> = {
  p: ['<p>', '</p>'],
  list: ['<ul>', '</ul>'],
  'list-item': ['<li>', '</li>'],
  table: ['<table>', '</table>'],
  'table-row': ['<tr>', '</tr>'],
  'table-cell': ['<td>', '</td>'],
  'covered-table-cell': ['<td>', '</td>'],
  'note-body': [' (', ')'],
  notes: ['<blockquote>', '</blockquote>'],
  s: ['&nbsp;', ''],
  tab: [' ', ''],
  'line-break': ['<br>', ''],
}

/** What is no text of the document: a table of contents repeats its headings, and deleted text is gone. */
const skipped: ReadonlySet<string> = new Set([
  'table-of-content',
  'tracked-changes',
  'annotation',
  'note-citation',
  'forms',
  'scripts',
])

/** Reads an OpenDocument text or presentation as Markdown. Each slide is a page. */
export const prepareOpenDocument = async (job: PrepareJob, format: 'odt' | 'odp'): Promise<FileContents> => {
  using archive = await openArchive(job.path)
  await readXml(archive, 'META-INF/manifest.xml', {
    open: (element) => {
      if (element === 'encryption-data') throw new UnreadableFileError(encryptedMessage)
    },
  })
  const document = createDocument()
  let pages = 0
  let html = ''
  let inTitle = false
  let skippedDepth = 0
  let textDepth = 0
  const after: string[] = []
  const addHtml = (): void => {
    addMarkdown(document, toMarkdown(html))
    html = ''
  }
  await readXml(archive, 'content.xml', {
    open(element, attributes) {
      if (skippedDepth > 0 || skipped.has(element)) {
        skippedDepth += 1
        return
      }
      if (element === 'page') document.addPage()
      if (element === 'frame') inTitle = attributes['presentation:class'] === 'title'
      const isText = element === 'p' || element === 'h'
      if (isText) textDepth += 1
      const level = element === 'h' ? toLevel(attributes['text:outline-level']) : 1
      const isHeading = element === 'h' || (element === 'p' && inTitle)
      const heading = [`<h${level}>`, `</h${level}>`] as const
      // a note or a text box is inside the paragraph it belongs to, and HTML has no paragraphs in paragraphs
      const around = isText && textDepth > 1 ? [' ', ' '] : isHeading ? heading : htmlAround[element]
      html += around?.[0] ?? ''
      after.push(around?.[1] ?? '')
    },
    text(text) {
      if (skippedDepth === 0 && textDepth > 0) html += text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
    },
    close(element) {
      if (skippedDepth > 0) {
        skippedDepth -= 1
        return
      }
      html += after.pop() ?? ''
      if (element === 'p' || element === 'h') textDepth -= 1
      if (element !== 'page') return
      pages += 1
      addHtml()
    },
  })
  addHtml()
  const facts = { format, pages: pages === 0 ? null : pages }
  return document.write(job, facts, 'it has no text; if it holds pictures only, upload those')
}

const toLevel = (outlineLevel = '1'): number =>
  Math.min(6, Math.max(1, Math.trunc(Number(outlineLevel)) || 1))
