import { z } from 'zod'
import { errorDraft, readCallInput, resultDraft } from '../../graph/call-drafts.ts'
import { defineTool } from '../../graph/definitions.ts'
import type { LinePage, TextLine } from '../../state/ports/files.ts'
import { readFileLines } from './file-lines.ts'

const maxLines = 2000
const maxBytes = 100 * 1024
const maxLineChars = 20_000

const showLine = ({ number, text, chars }: TextLine): string =>
  chars <= maxLineChars ? `${number}: ${text}` : `${number}: ${text} [cut: the line has ${chars} characters]`

const describe = (
  title: string,
  first: number,
  last: number,
  page: LinePage,
  pattern: string | null,
): string => {
  const parts = [`File ${title}, lines ${first}-${page.last} of ${page.total}:`, ...page.shown.map(showLine)]
  if (page.shown.length === 0) parts.push(`No lines match pattern '${pattern}'.`)
  if (page.last < Math.min(last, page.total))
    parts.push(`[more: call read_file again with start_line=${page.last + 1}]`)
  return parts.join('\n')
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
  needs: ['files'],
  async run(state, context, signal) {
    const { file_path, start_line: first = 1, pattern = null, ...range } = readCallInput(context)
    const { end_line: last = Number.MAX_SAFE_INTEGER } = range
    const fail = (problem: string) => context.checkpoint(errorDraft(`Could not read ${file_path}`, problem))
    if (last < first)
      return fail(`Error: end_line ${last} is before start_line ${first}. Leave end_line out, or raise it.`)
    const query = { first, last, pattern, maxLines, maxBytes, maxLineChars, mode: 'page' as const }
    const opened = await readFileLines(state, context.files, file_path, query, signal)
    if (!opened.ok) return fail(opened.error)
    const { name, page } = opened
    if (page.total === 0)
      return context.checkpoint(
        resultDraft(`Read ${name}: it is empty`, `File '${name}' is empty.`, { found: 0 }),
      )
    if (first > page.total)
      return fail(
        `Error: start_line ${first} is behind the end of '${name}', which has ${page.total} lines. Use a start_line from 1 to ${page.total}.`,
      )
    const count = `${page.shown.length} ${page.shown.length === 1 ? 'line' : 'lines'}`
    const text = describe(`'${name}'${opened.locate(first)}`, first, last, page, pattern)
    return context.checkpoint(
      resultDraft(`Read ${count} of ${name}`, text, {
        file: name,
        first,
        last: page.last,
        total: page.total,
        found: page.shown.length,
      }),
    )
  },
})
