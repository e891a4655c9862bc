import { z } from 'zod'
import { readWholeText } from '../context/result-text.ts'
import { errorDraft, readCallInput, resultDraft } from '../graph/call-drafts.ts'
import { defineTool } from '../graph/definitions.ts'
import { readAnsweredCall } from '../state/calls.ts'
import { readActionLabel } from '../state/provenance.ts'
import { compilePattern, findLines } from './files/pattern.ts'
import { splitLines } from './files/text-lines.ts'

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
  needs: ['blobs'],
  async run(state, context, signal) {
    const { action_id: id, from = 0, pattern } = readCallInput(context)
    const fail = (fault: string) =>
      context.checkpoint(errorDraft(`Could not read the result of action ${id}`, `Error: ${fault}`))
    const action = state.action_history.flat().find((one) => one.id === id)
    // what a model thought, and what it planned, is no result
    if (!action || !readAnsweredCall(action)) return fail(`action ${id} is not the result of a call.`)
    const text = await readWholeText(action, context.blobs)
    if (text === null) return fail(`the result of action ${id} is gone; make its call again.`)
    const label = { action: id, provenance: readActionLabel(action).origin }
    if (pattern !== undefined) {
      const compiled = compilePattern(pattern)
      if (!compiled.ok) return fail(compiled.error)
      const found = await findLines(splitLines(text), compiled.pattern, maxMatches, showLine, signal)
      return context.checkpoint(
        resultDraft(`Found ${found.total} lines in the result of action ${id}`, matchText(id, found), {
          ...label,
          found: found.total,
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

const showLine = (line: string, number: number): string =>
  `${number}: ${line.slice(0, maxLine).toWellFormed()}`

const matchText = (id: number, { shown, total }: { shown: string[]; total: number }): string =>
  total === 0
    ? `No line of the result of action ${id} matches.`
    : [
        `${total} lines of the result of action ${id} match:`,
        ...shown,
        ...(total > shown.length ? [`[${total - shown.length} more]`] : []),
      ].join('\n')
