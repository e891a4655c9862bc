import TurndownService from 'turndown'
import { addMarkdown, createDocument } from '../../files/child/formats/document-text.ts'
import { readTextFile } from '../../files/child/formats/plain-text.ts'
import {
  type FileContents,
  fileBounds,
  type PrepareJob,
  UnreadableFileError,
} from '../../files/protocol/child-protocol.ts'

/** Reads an HTML page as Markdown. */
export const prepareHtml = async (job: PrepareJob, bytes: number): Promise<FileContents> => {
  const html = await readTextFile(job.path, bytes)
  const document = createDocument()
  addMarkdown(document, toMarkdown(html))
  const title = /<title[^<>]*>([^<]{0,500})/i.exec(html)?.[1]
  return document.write(
    job,
    { format: 'html', title },
    'it has no text; if a script renders its content, save the page as PDF',
  )
}

/** Converts HTML to Markdown: headings, lists, links, tables; no scripts and styles. Fetches nothing. */
export const toMarkdown = (html: string): string => {
  if (measureDepth(html) > fileBounds.nesting)
    throw new UnreadableFileError(
      `its elements are nested more than ${fileBounds.nesting} deep; save the page as PDF or text`,
    )
  const turndown = new TurndownService({
    headingStyle: 'atx',
    codeBlockStyle: 'fenced',
    bulletListMarker: '-',
  })
  turndown.remove(['head', 'title', 'script', 'style', 'noscript', 'template', 'iframe', 'object'] as never)
  turndown.addRule('image', {
    filter: 'img',
    replacement: (_content, node) => (node as unknown as HtmlNode).getAttribute('alt') ?? '',
  })
  turndown.addRule('cell', {
    filter: ['td', 'th'],
    replacement: (content) =>
      ` ${content
        .trim()
        .replaceAll('|', '\\|')
        .replace(/(?<!\s)\s*\n\s*/g, ' ')} |`,
  })
  const isHeader = createHeaderRows()
  turndown.addRule('row', {
    filter: 'tr',
    replacement: (content, node) => {
      const row = node as unknown as HtmlNode
      const rule = isHeader(row) ? `\n|${' --- |'.repeat(listChildren(row, 'TD', 'TH').length)}` : ''
      return `\n|${content}${rule}`
    },
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
    .turndown(html.replace(longSpace, (space) => (space.includes('\n') ? '\n' : ' ')))
    .replace(/(?<![^\S\n])[^\S\n]+$/gm, '')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
}

/** turndown looks for the end of each space from every character of it. */
const longSpace = /\s{200,}/g

type HtmlNode = {
  nodeName: string
  parentNode: HtmlNode | null
  childNodes: ArrayLike<HtmlNode>
  getAttribute(name: string): string | null
}

const listChildren = (node: HtmlNode, ...names: string[]): HtmlNode[] =>
  Array.from(node.childNodes).filter(({ nodeName }) => names.includes(nodeName))

/** Whether a row is the header of its table. Looks through the children of a table once, not once for each row. */
const createHeaderRows = (): ((row: HtmlNode) => boolean) => {
  const firstChildren = new WeakMap<HtmlNode, Map<string, HtmlNode>>()
  const findFirst = (parent: HtmlNode | null, name: string): HtmlNode | undefined => {
    if (parent === null) return undefined
    const found = firstChildren.get(parent) ?? new Map(Array.from(parent.childNodes, toNamed).reverse())
    firstChildren.set(parent, found)
    return found.get(name)
  }
  return (row) => {
    const { parentNode: body } = row
    if (findFirst(body, 'TR') !== row) return false
    return body?.nodeName !== 'TBODY' || findFirst(body.parentNode, 'THEAD') === undefined
  }
}

const toNamed = (node: HtmlNode): [name: string, node: HtmlNode] => [node.nodeName, node]

const voidElements = /^(area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr|p|li|td|th|tr|option)$/

/** How deep elements are nested, at least as deep as a parser nests them. */
const measureDepth = (html: string): number => {
  let depth = 0
  let deepest = 0
  for (const [whole, close, name = ''] of html.matchAll(/<(\/?)([a-z][a-z0-9]*)(?![a-z0-9])[^<>]*>/gi)) {
    if (voidElements.test(name.toLowerCase()) || whole.endsWith('/>')) continue
    depth = close ? Math.max(0, depth - 1) : depth + 1
    deepest = Math.max(deepest, depth)
  }
  return deepest
}
