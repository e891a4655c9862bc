import type { createClient } from '../../src/client/index.ts'
import type { RunEvent } from '../../src/state/run-view.ts'
import type { Mason } from '../purchase/stage.ts'
import { answerQuestion, prompt } from './shopper.ts'

type Buyer = Pick<Mason, 'call'> & {
  client: ReturnType<typeof createClient>
  /** The user's signature of the bytes of a consent. */
  sign(content: string): Promise<string>
  /** By which the run shops, where its row is there. */
  scenario?: string
  onEvent?: (event: RunEvent) => void
}

/** A purchase of the demo, with a user who approves and answers at once. */
export const buyUnattended = async (
  { client, call, sign, scenario, onEvent }: Buyer,
  user_id: string,
  signal?: AbortSignal,
): Promise<{ run_id: string; status: string; answer: string | null }> => {
  const { id: run_id } = await client.submit({ prompt, user_id, ...(scenario && { scenario }) })
  for await (const next of client.events({ run_id }, signal && { signal })) {
    onEvent?.(next)
    const { event, data } = next
    if (event === 'consent_required') {
      const path = `/v1/payments/${data.payment_id}/consent`
      const { content } = await call<{ content: string }>('GET', path)
      await call('POST', path, { signature: await sign(content) })
    }
    if (event === 'input_required')
      await client.answer(run_id, data.id, answerQuestion(data.schema, data.options))
    if (event === 'done') return { run_id, status: data.status, answer: data.answer }
  }
  throw new Error(`the events of run ${run_id} ended without its end`)
}
