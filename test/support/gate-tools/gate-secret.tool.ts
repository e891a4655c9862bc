import { z } from 'zod'
import { orderAnswer } from '../../../src/features/payments/ledger/orders.ts'
import { readCallInput } from '../../../src/graph/call-drafts.ts'
import { defineTool } from '../../../src/graph/definitions.ts'

/** Asks for a one-time password and orders that the executor sends it, as the payment nodes do. */
export default defineTool({
  name: 'gate_secret',
  description: 'Asks for a secret of a test',
  kinds: ['call'],
  pure: true,
  input: z.strictObject({ payment_id: z.string() }),
  reads: [],
  writes: [],
  async run(_state, context) {
    const { payment_id } = readCallInput(context)
    const { business_id: tenant, run_id } = context.run
    const asked = await context.ask({
      question: 'Which code did your bank send?',
      schema: { type: 'string', pattern: '^[a-z0-9-]+$' },
      ...{ options: [], expires_in_ms: 600_000, secret: true, payment_id },
    })
    if (asked.kind === 'expired')
      return context.checkpoint({ summary: 'No code', result: { text: 'no code' } })
    const { status } = await context.wait({
      kind: 'payment',
      refId: payment_id,
      start: (sql, call) => orderAnswer(sql, { tenant, run_id }, call, payment_id, String(asked.answer)),
    })
    return context.checkpoint({ summary: 'Sent the code', result: { text: status } })
  },
})
