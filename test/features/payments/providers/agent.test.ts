import { expect, test } from 'vitest'
import { openAgentProvider } from '../../../../src/features/payments/providers/agent.ts'
import type { AgentReply } from '../../../../src/state/ports/agents.ts'

const rejected: AgentReply = {
  ...{ agent: 'wallet', task_id: null, context_id: null, state: 'rejected', data: [], push_id: null },
  texts: ['wallet could not be reached: extension'],
}

/** What a person reads where a credentials provider replies so. */
const present = async (reply: AgentReply) => {
  const agents = {
    find: async () => ({ roles: ['credentials-provider'], issuer: '', origin: '' }),
    send: async () => reply,
  }
  const parts = { agents, sql: null, trust: null } as never
  const provider = openAgentProvider({ window_ms: 1 }, { businessId: 'b', paymentId: 'p' }, parts)
  const route = { agent: 'shop', context_id: null, credentials_agent: 'wallet', credentials_context_id: null }
  const order = { version: '0.2', payment: 'token', route } as never
  return provider.present?.(order, 'hash', 'key', new AbortController().signal)
}

test('Mason says that it sent nothing where it knows it, and never for the words of an agent', async () => {
  expect(await present({ ...rejected, is_unreached: true })).toEqual({
    reason:
      'the credentials provider did not answer: Mason could not reach it and sent nothing. Try again later',
  })
  expect(await present({ ...rejected, texts: ['wallet could not be reached: it is away'] })).toEqual({
    reason: 'the credentials provider refused: it gave a reason that Mason does not know',
  })
})
