import { z } from 'zod'
import { defineTool } from '../../../src/graph/definitions.ts'

/** Stands for the research of the requirement, which finds one thing. */
export default defineTool({
  name: 'research',
  description: 'Finds out',
  server: 'deepsearch_server',
  raw: { field: 'question' },
  kinds: ['call'],
  pure: true,
  input: z.strictObject({ question: z.string() }),
  reads: [],
  writes: [],
  run: (_state, context) =>
    context.checkpoint({
      summary: 'Found it',
      result: { text: 'As of July 2025, Joe Biden is 82 years old.' },
    }),
})
