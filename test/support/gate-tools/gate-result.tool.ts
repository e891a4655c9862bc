import { z } from 'zod'
import { readCallInput } from '../../../src/graph/call-drafts.ts'
import { defineTool } from '../../../src/graph/definitions.ts'

/** Answers with the fields of a test: what a tool writes that talks to an agent. */
export default defineTool({
  name: 'gate_result',
  description: 'Gets the result of a test',
  kinds: ['call'],
  pure: true,
  input: z.strictObject({ fields: z.string() }),
  reads: [],
  writes: [],
  run: (_state, context) => {
    const { fields } = readCallInput(context)
    return context.checkpoint({ summary: 'Got a result', result: { text: 'Done.', ...JSON.parse(fields) } })
  },
})
