import { z } from 'zod'
import { defineTool } from '../../../src/graph/definitions.ts'

/** Not pure, and it fails: its task is to be tried again later. */
export default defineTool({
  name: 'ledger_stumble',
  description: 'Finds the ledger shut',
  kinds: ['call'],
  input: z.strictObject({ url: z.string(), item: z.string() }),
  reads: [],
  writes: [],
  async run() {
    throw new Error('the ledger is shut')
  },
})
