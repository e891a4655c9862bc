import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { defineTool } from '../../../src/graph/definitions.ts'

/** Takes one second. */
export default defineTool({
  name: 'second',
  description: 'Takes a second',
  kinds: ['call'],
  pure: true,
  input: z.strictObject({ n: z.number() }),
  reads: [],
  writes: [],
  async run(_state, context) {
    await sleep(1000)
    return context.checkpoint({ summary: 'Took a second', result: { text: 'done' } })
  },
})
