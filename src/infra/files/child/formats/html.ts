import TurndownService from 'turndown'
import { type Found, type PrepareJob, Unreadable } from '../protocol.ts'
import { addMarkdown, createDocument, cutNote, requireText } from './lines.ts'
import { readText } from './text.ts'

/** Deeper nesting makes a parser that calls itself run out of stack. */
const mostDepth = 1000

export const prepareHtml = async (job: PrepareJob, bytes: number): Promise<Found> => {
  const html = await readText(job.path, bytes)
  const document = createDocument()
  addMarkdown(document, markdownOf(html))
  requireText(document, 'there is no text in it; if a script makes its content, save the page as PDF')
  const title = /<title[^>]*>([^<]{0,500})/i.exec(html)?.[1] ?? null
  return { format: 'html', document: await document.write(job, title, null), notes: cutNote(document) }
}

/** Markdown of HTML: headings, lists, links, tables; nothing of scripts and styles. Nothing is fetched. */
export const markdownOf = (html: string): string => {
  if (depthOf(html) > mostDepth)
    throw new Unreadable(`its elements are nested more than ${mostDepth} deep; save the page as PDF or text`)
  const turndown = new TurndownService({
    headingStyle: 'atx',
    codeBlockStyle: 'fenced',
    bulletListMarker: '-',
  })
  turndown.remove(['head', 'title', 'script', 'style', 'noscript', 'template', 'iframe', 'object'] as never)
  turndown.addRule('image', {
    filter: 'img',
    replacement: (_content, node) => (node as unknown as Element).getAttribute('alt') ?? '',
  })
  turndown.addRule('cell', {
    filter: ['td', 'th'],
    replacement: (content) =>
      ` ${content
        .trim()
        .replaceAll('|', '\\|')
        .replace(/\s*\n\s*/g, ' ')} |`,
  })
  turndown.addRule('row', {
    filter: 'tr',
    replacement: (content, node) => `\n|${content}${ruleOf(node as unknown as Row)}`,
  })
  turndown.addRule('part', {
    filter: ['thead', 'tbody', 'tfoot'],
    replacement: (content) => `\n${content.trim()}`,
  })
  turndown.addRule('table', {
    filter: 'table',
    replacement: (content) => `\n\n${content.trim().replace(/\n{2,}/g, '\n')}\n\n`,
  })
  return turndown
    .turndown(html)
    .replace(/[^\S\n]+$/gm, '')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
}

type Element = { getAttribute(name: string): string | null }
type Row = {
  parentNode: { nodeName: string; firstChild: unknown; previousSibling: unknown } | null
  cells?: unknown
  childNodes: ArrayLike<{ nodeName: string }>
}

/** The line under the first row that makes a table of Markdown. */
const ruleOf = (row: Row): string => {
  const parent = row.parentNode
  const cells = Array.from(row.childNodes).filter(
    ({ nodeName }) => nodeName === 'TD' || nodeName === 'TH',
  ).length
  const rows = parent
    ? Array.from((parent as unknown as Row).childNodes).filter(({ nodeName }) => nodeName === 'TR')
    : []
  const first = rows[0] === (row as unknown) && (parent?.nodeName !== 'TBODY' || !hasHead(parent as never))
  return first ? `\n|${' --- |'.repeat(cells)}` : ''
}

const hasHead = (body: { parentNode: { childNodes: ArrayLike<{ nodeName: string }> } | null }): boolean =>
  Array.from(body.parentNode?.childNodes ?? []).some(({ nodeName }) => nodeName === 'THEAD')

const voids = /^(area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr|p|li|td|th|tr|option)$/

/** How deep the elements of HTML are nested, at the least what a parser makes of it. */
const depthOf = (html: string): number => {
  let depth = 0
  let most = 0
  for (const [whole, close, name = ''] of html.matchAll(/<(\/?)([a-z][a-z0-9]*)[^<>]*>/gi)) {
    if (voids.test(name.toLowerCase()) || whole.endsWith('/>')) continue
    depth = close ? Math.max(0, depth - 1) : depth + 1
    most = Math.max(most, depth)
  }
  return most
}
