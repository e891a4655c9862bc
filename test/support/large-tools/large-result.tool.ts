import { z } from 'zod'
import { defineTool } from '../../../src/graph/definitions.ts'

/** Answers with 50 MB of text. */
export default defineTool({
  name: 'large_result',
  description: 'Gets a large result',
  kinds: ['call'],
  pure: true,
  input: z.strictObject({}),
  reads: [],
  writes: [],
  run: (_state, context) =>
    context.checkpoint({ summary: 'Got 50 MB', result: { text: 'largest '.repeat(50_000_000 / 8) } }),
})
