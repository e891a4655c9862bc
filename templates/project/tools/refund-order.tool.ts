import { appendFile, readFile } from 'node:fs/promises'
import { defineTool } from 'mason-runtime'
import { z } from 'zod'

/** Stands for the API of your payment provider: a file with one line for each refund. */
const ledger = process.env.REFUNDS_FILE ?? 'refunds.jsonl'

const findRefund = async (key: string): Promise<string | null> => {
  const text = await readFile(ledger, 'utf8').catch(() => '')
  return text.split('\n').find((line) => line.includes(`"key":"${key}"`)) ?? null
}

export default defineTool({
  name: 'refund_order',
  description: 'Refunds an order after a person has agreed.',
  kinds: ['call'],
  input: z.strictObject({ order_id: z.string(), amount: z.number().positive() }),
  reads: [],
  writes: [],
  async run(_state, { call, ask, effect, checkpoint }) {
    if (!call) throw new Error('refund_order runs as a call only')
    const { order_id, amount } = call.input
    // the run waits without a process, for a day if need be
    const reply = await ask({
      question: `Refund ${amount} for order ${order_id}?`,
      schema: { type: 'boolean' },
      options: [],
      expires_in_ms: 24 * 60 * 60 * 1000,
    })
    if (reply.kind === 'expired' || reply.answer !== true)
      return checkpoint({ summary: 'No refund', result: { text: 'The refund was not approved.' } })
    // sent once, whatever happens to this process; after a crash the provider is asked before anything is sent again
    const response = await effect({
      class: 'queryable',
      request: JSON.stringify({ order_id, amount }),
      async send(request, key, checkLease) {
        const line = `{"key":"${key}","refund":${request}}`
        checkLease()
        await appendFile(ledger, `${line}\n`)
        return line
      },
      lookup: findRefund,
    })
    return checkpoint({ summary: `Refunded ${amount} for order ${order_id}`, result: { text: response } })
  },
})
