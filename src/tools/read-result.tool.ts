import { z } from 'zod'
import { readWholeText } from '../context/result-text.ts'
import { errorDraft, readCallInput, resultDraft } from '../graph/call-drafts.ts'
import { defineTool } from '../graph/definitions.ts'
import { readAnsweredCall } from '../state/calls.ts'
import type { LinePage } from '../state/ports/files.ts'
import { readActionLabel } from '../state/provenance.ts'
import { wholeSearch } from './files/file-lines.ts'

/** Characters of one part: small enough to be whole in a prompt. */
const partChars = 12_000
const maxMatches = 100
const maxLine = 500

export default defineTool({
  name: 'read_result',
  description:
    'Reads an earlier result that was shown only in part, 12,000 characters at a time, or by pattern ' +
    'the lines that match, 100 at most.',
  kinds: ['call'],
  pure: true,
  input: z.strictObject({
    action_id: z.int().min(1).describe('The id of its action'),
    from: z.int().min(0).optional().describe('The first character, from 0'),
    pattern: z.string().min(1).max(1000).optional().describe('RE2; lines that match'),
  }),
  reads: ['action_history'],
  writes: [],
  needs: ['blobs', 'files'],
  async run(state, context, signal) {
    const { action_id: id, from = 0, pattern } = readCallInput(context)
    const fail = (problem: string) =>
      context.checkpoint(errorDraft(`Could not read the result of action ${id}`, `Error: ${problem}`))
    const action = state.action_history.flat().find((one) => one.id === id)
    // what a model thought, and what it planned, is no result
    if (!action || !readAnsweredCall(action)) return fail(`action ${id} is not the result of a call.`)
    const text = await readWholeText(action, context.blobs)
    if (text === null) return fail(`the result of action ${id} is gone; make its call again.`)
    const label = { action: id, provenance: readActionLabel(action).origin }
    if (pattern !== undefined) {
      const read = await context.files.readLines(
        text,
        { ...wholeSearch, pattern, maxLines: maxMatches, maxLineChars: maxLine },
        signal,
      )
      if (!read.ok) return fail(`${read.reason}.`)
      if (read.page === null) return fail(`the result of action ${id} is binary.`)
      const { page } = read
      return context.checkpoint(
        resultDraft(`Found ${page.found} lines in the result of action ${id}`, matchText(id, page), {
          ...label,
          found: page.found,
        }),
      )
    }
    if (from > 0 && from >= text.length)
      return fail(`from ${from} is behind the end; the result has ${text.length} characters.`)
    const part = text.slice(from, from + partChars)
    const end = from + part.length
    const more = end < text.length ? `\n[more: call read_result again with from=${end}]` : ''
    const head = `Result of action ${id}, characters ${from}-${end} of ${text.length}:`
    return context.checkpoint(
      resultDraft(`Read the result of action ${id}`, `${head}\n${part.toWellFormed()}${more}`, label),
    )
  },
})

const matchText = (id: number, { shown, found }: LinePage): string =>
  found === 0
    ? `No line of the result of action ${id} matches.`
    : [
        `${found} lines of the result of action ${id} match:`,
        ...shown.map(({ number, text }) => `${number}: ${text}`),
        ...(found > shown.length ? [`[${found - shown.length} more]`] : []),
      ].join('\n')
