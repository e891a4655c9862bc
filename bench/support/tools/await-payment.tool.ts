import { z } from 'zod'
import { readCallInput } from '../../../src/graph/call-drafts.ts'
import { defineTool } from '../../../src/graph/definitions.ts'

/** Waits for a payment that the bench orders. */
export default defineTool({
  name: 'await_payment',
  description: 'Waits for a payment of the bench',
  kinds: ['call'],
  pure: true,
  input: z.strictObject({ payment_id: z.string() }),
  reads: [],
  writes: [],
  async run(_state, context) {
    const { status } = await context.wait({ kind: 'payment', refId: readCallInput(context).payment_id })
    return context.checkpoint({ summary: 'Waited for a payment', result: { text: status } })
  },
})
