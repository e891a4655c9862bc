import { z } from 'zod'
import { errorDraft, readCallInput, resultDraft } from '../../graph/call-drafts.ts'
import { defineTool } from '../../graph/definitions.ts'
import { cutText } from '../../state/text/cut-text.ts'
import { readFileLines } from './file-lines.ts'
import { compilePattern, eachLine, type LinePattern } from './pattern.ts'

const maxLines = 2000
const maxBytes = 100 * 1024
const maxLineLength = 20_000

const showLine = (line: string, number: number): string =>
  line.length <= maxLineLength
    ? `${number}: ${line}`
    : `${number}: ${cutText(line, maxLineLength)} [cut: the line has ${line.length} characters]`

type LineRange = { first: number; last: number }
/** `last` is the last line looked at: before the end of the range when the page was full. */
type LinePage = { shown: string[]; last: number }

const readPage = async (
  lines: readonly string[],
  range: LineRange,
  pattern: LinePattern | undefined,
  signal: AbortSignal,
): Promise<LinePage> => {
  const page: LinePage = { shown: [], last: range.last }
  let bytes = 0
  const visit = (line: string, number: number): boolean => {
    if (pattern && !pattern.find(line)) return true
    const shown = showLine(line, number)
    bytes += Buffer.byteLength(shown) + 1
    if (page.shown.length === maxLines || bytes > maxBytes) {
      page.last = number - 1
      return false
    }
    page.shown.push(shown)
    return true
  }
  await eachLine(lines, range, visit, signal)
  return page
}

const describe = (
  title: string,
  total: number,
  range: LineRange,
  page: LinePage,
  pattern?: string,
): string => {
  const parts = [`File ${title}, lines ${range.first}-${page.last} of ${total}:`, ...page.shown]
  if (page.shown.length === 0) parts.push(`No lines match pattern '${pattern}'.`)
  if (page.last < range.last) parts.push(`[more: call read_file again with start_line=${page.last + 1}]`)
  return parts.join('\n')
}

/** The range asked for, within the file; or what is wrong with it. */
const toRange = (name: string, total: number, first: number, last: number): LineRange | string => {
  if (last < first)
    return `Error: end_line ${last} is before start_line ${first}. Leave end_line out, or raise it.`
  if (first > total)
    return `Error: start_line ${first} is behind the end of '${name}', which has ${total} lines. Use a start_line from 1 to ${total}.`
  return { first, last: Math.min(last, total) }
}

export default defineTool({
  server: 'search_tool_server',
  name: 'read_file',
  description:
    "Reads one of the run's own files (text, PDF, DOCX, ODT, PPTX, HTML) with line numbers, at most 2000 lines and 100 KB a call.",
  kinds: ['call'],
  pure: true,
  provenance: 'file',
  input: z.strictObject({
    file_path: z.string().min(1).max(4096).describe('The name of the file'),
    start_line: z.int().min(1).optional().describe('The first line, from 1'),
    end_line: z.int().min(1).optional().describe('The last line'),
    pattern: z.string().min(1).max(1000).optional().describe('RE2; lines that match'),
  }),
  reads: ['origin_files', 'preprocessed_files'],
  writes: [],
  needs: ['files', 'blobs'],
  async run(state, context, signal) {
    const { file_path, start_line = 1, end_line = Number.MAX_SAFE_INTEGER, pattern } = readCallInput(context)
    const fail = (fault: string) => context.checkpoint(errorDraft(`Could not read ${file_path}`, fault))
    const compiled = pattern === undefined ? undefined : compilePattern(pattern)
    if (compiled && !compiled.ok) return fail(compiled.error)
    const opened = await readFileLines(state, context, file_path, signal)
    if (!opened.ok) return fail(opened.error)
    const { name, lines } = opened
    if (lines.length === 0)
      return context.checkpoint(
        resultDraft(`Read ${name}: it is empty`, `File '${name}' is empty.`, { found: 0 }),
      )
    const range = toRange(name, lines.length, start_line, end_line)
    if (typeof range === 'string') return fail(range)
    const page = await readPage(lines, range, compiled?.pattern, signal)
    const count = `${page.shown.length} ${page.shown.length === 1 ? 'line' : 'lines'}`
    const title = `'${name}'${opened.locate(range.first)}`
    const text = describe(title, lines.length, range, page, pattern)
    return context.checkpoint(
      resultDraft(`Read ${count} of ${name}`, text, {
        file: name,
        first: range.first,
        last: page.last,
        total: lines.length,
        found: page.shown.length,
      }),
    )
  },
})
