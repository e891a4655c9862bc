import { setTimeout as pause } from 'node:timers/promises'
import { AgentCard, Task } from '@a2a-js/sdk'
import { toAgentReply } from '../../src/features/a2a/client/agent-reply.ts'
import { currentAp2Uris } from '../../src/features/a2a/client/ap2.ts'
import { hashText } from '../../src/features/payments/mandates/tokens/encoding.ts'
import type { AgentReply } from '../../src/state/ports/agents.ts'
import type { Part } from './messages.ts'

/** What is sent to another agent. `key` names what it is about: the same key is the same message, sent again. */
type Outgoing = { key: string; contextId: string; taskId?: string | undefined; parts: Part[] }

const timeoutMs = 15_000
const maxDelayMs = 1000

/** Calls other agents by A2A 1.0. A message is sent until it is answered, always under one id, so that it is carried out once. */
export const createPeers = (name: string) => {
  const headers = { 'user-agent': name, 'a2a-version': '1.0', 'a2a-extensions': currentAp2Uris.join(', ') }
  const fetchJson = async (url: string, init: RequestInit = {}) => {
    const response = await fetch(url, { ...init, headers, signal: AbortSignal.timeout(timeoutMs) })
    // one that starts again has refused nothing: refusals are errors of JSON-RPC
    if (!response.ok) throw new Error(`${url} answered ${response.status}`)
    return (await response.json()) as { error?: { message: string }; result: { task: object } }
  }
  return async (url: string, { key, contextId, taskId = '', parts }: Outgoing): Promise<AgentReply> => {
    const message = { messageId: hashText(`${name} ${key}`), role: 'ROLE_USER', contextId, taskId, parts }
    const body = JSON.stringify({ jsonrpc: '2.0', id: key, method: 'SendMessage', params: { message } })
    for (let attempt = 0; ; attempt++) {
      if (attempt > 0) await pause(Math.min(50 * 2 ** attempt, maxDelayMs))
      try {
        const card = AgentCard.fromJSON(await fetchJson(new URL('.well-known/agent-card.json', url).href))
        const address = card.supportedInterfaces.find(({ protocolVersion }) => protocolVersion === '1.0')
        const { error, result } = await fetchJson(address?.url ?? url, { method: 'POST', body })
        const reply = toAgentReply(name, Task.fromJSON(result?.task ?? {}))
        if (error) return { ...reply, state: 'rejected', texts: [error.message] }
        if (reply.state !== 'working') return reply
      } catch {
        // it was not reached, or broke off: once more
      }
    }
  }
}
/** Calls another agent until it answers. */
export type CallPeer = ReturnType<typeof createPeers>
