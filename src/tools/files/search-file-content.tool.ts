import { z } from 'zod'
import { errorDraft, readCallInput, resultDraft } from '../../graph/call-drafts.ts'
import { defineTool } from '../../graph/definitions.ts'
import { turnPrompt } from '../../state/turn.ts'
import { readFileLines } from './file-lines.ts'
import { compilePattern, findLines, type LineMatch, maxSearchedLength } from './pattern.ts'

const maxMatches = 200
const maxLineLength = 500
const leadLength = 100
/** More matches than `minRanked` are ordered by a model of the category rerank, where there is one; of these at most. */
const minRanked = 20
const maxRanked = 1000

/** A line for the model: without its indentation, and of a long line the part around what matched. */
const showLine = (line: string, match: LineMatch): string => {
  const trimmed = line.trim()
  if (trimmed.length <= maxLineLength) return trimmed
  const indent = line.length - line.trimStart().length
  const end = match.end - indent
  const start = end <= maxLineLength ? 0 : Math.max(0, match.start - indent - leadLength)
  const part = trimmed.slice(start, start + maxLineLength).replace(/^[\uDC00-\uDFFF]|[\uD800-\uDBFF]$/g, '')
  return `${start > 0 ? '…' : ''}${part}${start + maxLineLength < trimmed.length ? '…' : ''}`
}

export default defineTool({
  server: 'search_tool_server',
  name: 'search_file_content',
  description:
    "Searches one of the run's own files (text, PDF, DOCX, ODT, PPTX, HTML) line by line with a regular expression (RE2 " +
    'syntax; (?i) ignores case) and gives the matching lines with their numbers and pages, 200 at most.',
  kinds: ['call'],
  pure: true,
  provenance: 'file',
  input: z.strictObject({
    file_path: z.string().min(1).max(4096).describe('The name of the file'),
    pattern: z.string().min(1).max(1000).describe('Matched within one line'),
  }),
  reads: ['prompts', 'origin_files', 'preprocessed_files'],
  writes: [],
  needs: ['files', 'blobs'],
  async run(state, context, signal) {
    const { file_path, pattern: source } = readCallInput(context)
    const fail = (fault: string) => context.checkpoint(errorDraft(`Could not search ${file_path}`, fault))
    const compiled = compilePattern(source)
    if (!compiled.ok) return fail(compiled.error)
    const opened = await readFileLines(state, context, file_path, signal)
    if (!opened.ok) return fail(opened.error)
    const { name, lines, locate } = opened
    const show = (line: string, number: number, match: LineMatch): string =>
      `[Line ${number}${locate(number)}: ${showLine(line, match)}]`
    const found = await findLines(lines, compiled.pattern, maxRanked, show, signal)
    const { total } = found
    const ranked =
      total > minRanked ? await context.models.rerank?.(turnPrompt(state), found.shown, signal) : null
    const ordered = ranked ? ranked.order.map((at) => found.shown[at] ?? '') : found.shown
    const shown = ordered.slice(0, maxMatches)
    const text = [
      total === 0
        ? `No matches found in '${file_path}' for pattern '${source}'.`
        : `Matches in '${file_path}'${ranked ? ', the most relevant first' : ''}: ${shown.join(', ')}`,
      ...(total > shown.length ? [`(and ${total - shown.length} more matching lines)`] : []),
      ...(lines.some(({ length }) => length > maxSearchedLength)
        ? [`(only the first ${maxSearchedLength} characters of a line were searched)`]
        : []),
    ].join(' ')
    const summary = `Found ${total} ${total === 1 ? 'line' : 'lines'} in ${name}`
    return context.checkpoint({
      ...resultDraft(summary, text, { file: name, found: total }),
      ...(ranked && { usage: ranked.usage }),
    })
  },
})
