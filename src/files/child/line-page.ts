import { RE2JS, RE2JSException } from 're2js'
import type { LinePage, LineQuery, TextLine } from '../../state/ports/files.ts'
import { cutText } from '../../state/text/cut-text.ts'
import { decodeText } from '../../state/text/decode-text.ts'
import { RefusedStatementError } from '../protocol/child-protocol.ts'

/** Of longer lines only the start is searched. */
const maxSearchedChars = 500_000
/** What an excerpt shows before the match. */
const leadChars = 100

/**
 * The lines of a text that a query asks for; null: it is binary. Lines end in \n or \r\n, and the end of the last one opens
 * no further one. Throws `RefusedStatementError` for a pattern that does not compile.
 */
export const readLinePage = (bytes: Uint8Array, query: LineQuery): LinePage | null => {
  const text = decodeText(bytes)
  if (text === null) return null
  const { first, last, maxLines, maxBytes, mode } = query
  const pattern = query.pattern === null ? null : compilePattern(query.pattern)
  const page: LinePage = { total: 0, last, found: 0, shown: [], hasLongLines: false }
  let shownBytes = 0
  let isFull = false
  // one line after the other: a list of all lines takes many times the memory of the text
  for (let start = 0, end = 0; start < text.length; start = end + 1) {
    end = text.indexOf('\n', start)
    if (end === -1) end = text.length
    page.total += 1
    const number = page.total
    if (number < first || number > page.last) continue
    const line = text.slice(start, end > start && text[end - 1] === '\r' ? end - 1 : end)
    page.hasLongLines ||= line.length > maxSearchedChars
    if (pattern && !pattern.test(line.slice(0, maxSearchedChars))) continue
    page.found += 1
    if (isFull) continue
    const shown = mode === 'page' ? toStart(number, line, query) : toExcerpt(number, line, pattern, query)
    shownBytes += Buffer.byteLength(`${number}: ${shown.text}`) + 1
    isFull = page.shown.length === maxLines || shownBytes > maxBytes
    if (!isFull) page.shown.push(shown)
    else if (mode === 'page') page.last = number - 1
  }
  page.last = Math.min(page.last, page.total)
  return page
}

const compilePattern = (source: string): RE2JS => {
  try {
    return RE2JS.compile(source)
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error
    const reason = error.message.replace(/^error parsing regexp: /, '')
    throw new RefusedStatementError(
      `Invalid pattern '${source}': ${reason}. The syntax is RE2: no look-around, no back-references`,
    )
  }
}

const toStart = (number: number, line: string, { maxLineChars }: LineQuery): TextLine => ({
  number,
  text: cutText(line, maxLineChars),
  chars: line.length,
})

/** A line without its indentation, and of a long line the part around what matched. */
const toExcerpt = (
  number: number,
  line: string,
  pattern: RE2JS | null,
  { maxLineChars }: LineQuery,
): TextLine => {
  const trimmed = line.trim()
  const { length: chars } = line
  if (trimmed.length <= maxLineChars) return { number, text: trimmed, chars }
  const indent = line.length - line.trimStart().length
  const matcher = pattern?.matcher(line.slice(0, maxSearchedChars))
  const [matchStart, matchEnd] = matcher?.find() ? [matcher.start(), matcher.end()] : [0, 0]
  const start = matchEnd - indent <= maxLineChars ? 0 : Math.max(0, matchStart - indent - leadChars)
  const part = trimmed.slice(start, start + maxLineChars).replace(/^[\uDC00-\uDFFF]|[\uD800-\uDBFF]$/g, '')
  const text = `${start > 0 ? '…' : ''}${part}${start + maxLineChars < trimmed.length ? '…' : ''}`
  return { number, text, chars }
}
