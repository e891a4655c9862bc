import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { defineTool } from '../../../src/graph/definitions.ts'

/** A read that takes half a second. */
export default defineTool({
  name: 'half_second',
  description: 'Reads for half a second',
  kinds: ['call'],
  effects: 'read',
  input: z.strictObject({ n: z.number() }),
  reads: [],
  writes: [],
  async run(_state, context) {
    await sleep(500)
    return context.checkpoint({ summary: 'Read for half a second', result: { text: 'done' } })
  },
})
