import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { defineTool } from '../../src/graph/definitions.ts'

/** A tool that takes this long and does nothing else. */
export const waitingTool = (name: string, ms: number, kind: 'pure' | 'read') =>
  defineTool({
    ...{ name, description: `Takes ${ms} ms`, kinds: ['call'] },
    ...(kind === 'pure' ? { pure: true } : { effects: 'read' }),
    input: z.strictObject({ n: z.number() }),
    reads: [],
    writes: [],
    async run(_state, context) {
      await sleep(ms)
      return context.checkpoint({ summary: `Took ${ms} ms`, result: { text: 'done' } })
    },
  })
