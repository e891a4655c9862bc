import { z } from 'zod'
import { errorDraft, readCallInput, resultDraft } from '../../graph/call-drafts.ts'
import { defineTool } from '../../graph/definitions.ts'
import { readFileLines } from './file-lines.ts'
import { compilePattern, eachLine, type LineMatch, type LinePattern, maxSearchedLength } from './pattern.ts'

const maxMatches = 200
const maxLineLength = 500
const leadLength = 100

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

type SearchResult = { shown: string[]; total: number; tooLong: number }

type Lines = { lines: readonly string[]; locate(line: number): string }

const search = async (
  { lines, locate }: Lines,
  pattern: LinePattern,
  signal: AbortSignal,
): Promise<SearchResult> => {
  const found: SearchResult = { shown: [], total: 0, tooLong: 0 }
  const visit = (line: string, number: number): true => {
    const match = pattern.find(line)
    if (line.length > maxSearchedLength) found.tooLong += 1
    if (match) found.total += 1
    if (match && found.total <= maxMatches)
      found.shown.push(`[Line ${number}${locate(number)}: ${showLine(line, match)}]`)
    return true
  }
  await eachLine(lines, { first: 1, last: lines.length }, visit, signal)
  return found
}

const describe = (name: string, source: string, { shown, total, tooLong }: SearchResult): string => {
  const head =
    total === 0
      ? `No matches found in '${name}' for pattern '${source}'.`
      : `Matches in '${name}': ${shown.join(', ')}`
  const more = total > shown.length ? ` (and ${total - shown.length} more matching lines)` : ''
  const cut = tooLong > 0 ? ` (only the first ${maxSearchedLength} characters of a line were searched)` : ''
  return head + more + cut
}

export default defineTool({
  server: 'search_tool_server',
  name: 'search_file_content',
  description:
    "Searches one of the run's own files (text, PDF, DOCX, PPTX, HTML) line by line with a regular expression (RE2 " +
    'syntax; (?i) ignores case) and gives the matching lines with their numbers and pages, 200 at most.',
  kinds: ['call'],
  pure: true,
  provenance: 'file',
  input: z.strictObject({ file_path: z.string().min(1).max(4096), pattern: z.string().min(1).max(1000) }),
  reads: ['origin_files', 'preprocessed_files'],
  writes: [],
  needs: ['files', 'blobs'],
  async run(state, context, signal) {
    const { file_path, pattern: source } = readCallInput(context)
    const compiled = compilePattern(source)
    if (!compiled.ok) return context.checkpoint(errorDraft(`Could not search ${file_path}`, compiled.error))
    const opened = await readFileLines(state, context, file_path, signal)
    if (!opened.ok) return context.checkpoint(errorDraft(`Could not search ${file_path}`, opened.error))
    const found = await search(opened, compiled.pattern, signal)
    const text = describe(file_path, source, found)
    const summary = `Found ${found.total} ${found.total === 1 ? 'line' : 'lines'} in ${opened.name}`
    return context.checkpoint(resultDraft(summary, text, { file: opened.name, found: found.total }))
  },
})
