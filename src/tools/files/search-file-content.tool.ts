import { z } from 'zod'
import { errorDraft, readCallInput, resultDraft } from '../../graph/call-drafts.ts'
import { defineTool } from '../../graph/definitions.ts'
import { turnPrompt } from '../../state/turn.ts'
import { readFileLines, wholeSearch } from './file-lines.ts'

const maxMatches = 200
const maxLineLength = 500
/** More matches than `minRanked` are ordered by a model of the category rerank, where there is one; of these at most. */
const minRanked = 20
const maxRanked = 1000

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
  needs: ['files'],
  async run(state, context, signal) {
    const { file_path, pattern } = readCallInput(context)
    const fail = (problem: string) => context.checkpoint(errorDraft(`Could not search ${file_path}`, problem))
    const opened = await readFileLines(
      state,
      context.files,
      file_path,
      { ...wholeSearch, pattern, maxLines: maxRanked, maxLineChars: maxLineLength },
      signal,
    )
    if (!opened.ok) return fail(opened.error)
    const { name, page, locate } = opened
    const { found: total } = page
    const lines = page.shown.map(({ number, text }) => `[Line ${number}${locate(number)}: ${text}]`)
    const ranked = total > minRanked ? await context.models.rerank?.(turnPrompt(state), lines, signal) : null
    const ordered = ranked ? ranked.order.map((at) => lines[at] ?? '') : lines
    const shown = ordered.slice(0, maxMatches)
    const text = [
      total === 0
        ? `No matches found in '${file_path}' for pattern '${pattern}'.`
        : `Matches in '${file_path}'${ranked ? ', the most relevant first' : ''}: ${shown.join(', ')}`,
      ...(total > shown.length ? [`(and ${total - shown.length} more matching lines)`] : []),
      ...(page.hasLongLines ? ['(only the first 500000 characters of a line were searched)'] : []),
    ].join(' ')
    const summary = `Found ${total} ${total === 1 ? 'line' : 'lines'} in ${name}`
    return context.checkpoint({
      ...resultDraft(summary, text, { file: name, found: total }),
      ...(ranked && { usage: ranked.usage }),
    })
  },
})
