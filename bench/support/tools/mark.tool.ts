import { z } from 'zod'
import { readCallInput } from '../../../src/graph/call-drafts.ts'
import { defineTool } from '../../../src/graph/definitions.ts'

/** Says how many milliseconds ago its call was sent, by the clock that all processes of a machine share. */
export default defineTool({
  name: 'mark',
  description: 'Says when it started',
  kinds: ['call'],
  pure: true,
  input: z.strictObject({ sent: z.string() }),
  reads: [],
  writes: [],
  run(_state, context) {
    const text = String(Number(process.hrtime.bigint() - BigInt(readCallInput(context).sent)) / 1e6)
    return context.checkpoint({ summary: 'Started', result: { text } })
  },
})
