import { z } from 'zod'
import { readCallInput } from '../../../src/graph/call-drafts.ts'
import { defineTool } from '../../../src/graph/definitions.ts'

/** Answers with a text of a test: what a merchant, a page or a file says. */
export default defineTool({
  name: 'gate_offer',
  description: 'Gets an offer of a test',
  kinds: ['call'],
  pure: true,
  input: z.strictObject({ text: z.string() }),
  reads: [],
  writes: [],
  run: (_state, context) => {
    const { text } = readCallInput(context)
    return context.checkpoint({ summary: 'Got an offer', result: { text } })
  },
})
