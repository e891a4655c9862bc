import { z } from 'zod'
import { errorDraft, readCallInput, resultDraft } from '../../graph/call-drafts.ts'
import { defineTool } from '../../graph/definitions.ts'
import { cutText } from '../../state/text/cut-text.ts'
import { evaluateExpression } from './expression.ts'

const toOneLine = (expression: string): string => expression.trim().replace(/\s+/g, ' ')

export default defineTool({
  name: 'calculate',
  description:
    'Works out one arithmetic expression exactly in decimals: + - * / % ^ ( ), 12.5% for percent, and sum, avg, min, ' +
    'max, median, count (of numbers with commas between), round(x, places), abs, sqrt, floor, ceil. Example: ' +
    'round(sum(19.99, 5.01) * 19%, 2). a % b is the remainder with the sign of b. No thousands separators, units or names.',
  kinds: ['call'],
  pure: true,
  provenance: 'agent',
  input: z.strictObject({
    expression: z.string().min(1).max(100_000).describe('The expression'),
  }),
  reads: [],
  writes: [],
  async run(_state, context) {
    const { expression } = readCallInput(context)
    const shown = toOneLine(expression)
    const worked = evaluateExpression(expression)
    if (!worked.ok)
      return context.checkpoint(
        errorDraft(`Could not compute ${cutText(shown, 80)}`, `Error: ${worked.error}`),
      )
    const { value } = worked
    const summary = `Computed ${cutText(shown, 100)} = ${cutText(value, 60)}`
    return context.checkpoint(resultDraft(summary, `${cutText(shown, 200)} = ${value}`, { value }))
  },
})
