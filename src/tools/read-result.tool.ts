import { z } from 'zod'
import { defineTool } from '../graph/tool.ts'
import { answeredCall } from '../state/calls.ts'
import { labelOfAction } from '../state/context/fence.ts'
import { isSpilled, resultText } from '../state/context/results.ts'
import { readResult } from '../state/inline-blobs.ts'
import type { Blobs } from '../state/ports.ts'
import type { ReadonlyAction } from '../state/turn.ts'
import { callInput, faultDraft, resultDraft } from './call-draft.ts'
import { compilePattern, eachLine } from './files/pattern.ts'
import { splitLines } from './files/text.ts'

/** Characters of one part: small enough to be shown whole. */
const partChars = 12_000
const maxMatches = 100
const maxLine = 500

export default defineTool({
  name: 'read_result',
  description:
    'Reads an earlier result that was shown only in part, by the id of its action: 12,000 characters from the character ' +
    'number `from` on, or with pattern (RE2) the lines that match, 100 at most.',
  kinds: ['call'],
  pure: true,
  input: z.strictObject({
    action_id: z.int().min(1),
    from: z.int().min(0).optional(),
    pattern: z.string().min(1).max(1000).optional(),
  }),
  reads: ['action_history'],
  writes: [],
  async run(state, context, signal) {
    const { action_id: id, from = 0, pattern } = callInput(context)
    const fail = (fault: string) =>
      context.checkpoint(faultDraft(`Could not read the result of action ${id}`, `Error: ${fault}`))
    const action = state.action_history.flat().find((one) => one.id === id)
    // what a model thought, and what it planned, is no result
    if (!action || !answeredCall(action)) return fail(`action ${id} is not the result of a call.`)
    const text = await wholeText(action, context.blobs)
    if (text === null) return fail(`the result of action ${id} is gone; make its call again.`)
    const label = { action: id, provenance: labelOfAction(action).origin }
    if (pattern !== undefined) {
      const found = await search(text, pattern, signal)
      if (typeof found === 'string') return fail(found)
      return context.checkpoint(
        resultDraft(`Found ${found.total} lines in the result of action ${id}`, matchText(id, found), label),
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

const wholeText = async (action: ReadonlyAction, blobs: Blobs): Promise<string | null> => {
  if (!isSpilled(action)) return resultText(action)
  const bytes = await blobs.read(String(action.result.blob))
  const result = bytes && readResult(Buffer.from(bytes).toString('utf8'))
  return result ? resultText({ ...action, result }) : null
}

type Found = { shown: string[]; total: number }

/** The lines that match, or what is wrong with the pattern. */
const search = async (text: string, source: string, signal: AbortSignal): Promise<Found | string> => {
  const compiled = compilePattern(source)
  if (!compiled.ok) return compiled.fault
  const lines = splitLines(text)
  const found: Found = { shown: [], total: 0 }
  await eachLine(
    lines,
    { first: 1, last: lines.length },
    (line, number) => {
      if (!compiled.pattern.find(line)) return true
      found.total += 1
      if (found.total <= maxMatches) found.shown.push(`${number}: ${line.slice(0, maxLine).toWellFormed()}`)
      return true
    },
    signal,
  )
  return found
}

const matchText = (id: number, { shown, total }: Found): string =>
  total === 0
    ? `No line of the result of action ${id} matches.`
    : [
        `${total} lines of the result of action ${id} match:`,
        ...shown,
        ...(total > shown.length ? [`[${total - shown.length} more]`] : []),
      ].join('\n')
