import { randomUUID } from 'node:crypto'
import type { Case, Variant } from '../case.ts'
import { addCard, agentPath } from '../support/agent-card.ts'
import { type Load, oneAndSixteen, startServed } from '../support/served.ts'

const wait: Load = {
  path: '/v1/runs/wait',
  body: () => '{"prompt":"hello","user_id":"u1"}',
  fits: ({ status, body }) => status === 200 && body.includes('"finish_reason":"answered"'),
}

/** Protocol 0.3, as without a version in the headers. */
const message: Load = {
  path: agentPath,
  body: (n) =>
    JSON.stringify({
      ...{ jsonrpc: '2.0', id: n, method: 'message/send' },
      params: {
        message: {
          ...{ kind: 'message', messageId: randomUUID(), role: 'user' },
          parts: [{ kind: 'text', text: 'hello' }],
        },
      },
    }),
  fits: ({ status, body }) => status === 200 && body.includes('"state":"completed"'),
}

const measure =
  (load: Load): Variant =>
  async (place) => {
    const served = await startServed(place)
    await addCard(served.port)
    return oneAndSixteen(served, load, place.count)
  }

const a2a: Case = {
  about: 'a no-op run by A2A message/send, beside POST /v1/runs/wait of the same server',
  ours: { 'A2A message/send': measure(message) },
  beside: { 'POST /v1/runs/wait': measure(wait) },
}

export default a2a
