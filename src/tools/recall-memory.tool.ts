import { z } from 'zod'
import { defineTool } from '../graph/tool.ts'

/** Appends to `memory` what earlier turns and sessions of the user have to do with this request; skips while no memory is kept. */
export default defineTool({
  name: 'recall-memory',
  description: 'Recalls what earlier talks have to do with the request',
  kinds: ['prepare'],
  pure: true,
  input: z.strictObject({}),
  reads: [],
  writes: ['memory'],
  skip: () => true,
  run: (_state, { checkpoint }) => checkpoint({ summary: 'Nothing is remembered yet', relevance: 0 }),
})
