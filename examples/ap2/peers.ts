import { setTimeout as pause } from 'node:timers/promises'
import { Role } from '@a2a-js/sdk'
import {
  type Client,
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  ServiceParameters,
  withA2AExtensions,
} from '@a2a-js/sdk/client'
import { A2AError } from '@a2a-js/sdk/errors'
import { toAgentReply } from '../../src/a2a/client/agent-reply.ts'
import { currentAp2Uris } from '../../src/accounts/ap2.ts'
import { hashText } from '../../src/payments/mandates/tokens/encoding.ts'
import type { AgentReply } from '../../src/state/ports/agents.ts'
import type { Part } from './messages.ts'

/** What is sent to another agent. `key` names what it is about: the same key is the same message, sent again. */
export type Outgoing = { key: string; contextId: string; taskId?: string | undefined; parts: Part[] }

/** What another agent answered. */
export type PeerReply = Pick<AgentReply, 'task_id' | 'state' | 'texts' | 'data'>

const timeoutMs = 15_000
const maxDelayMs = 1000

/** Calls other agents. A message is sent until it is answered, always under one id, so that it is carried out once. */
export const createPeers = (name: string) => {
  const clients = new Map<string, Promise<Client>>()
  const fetchImpl: typeof fetch = (input, init = {}) => {
    const headers = new Headers(init.headers)
    headers.set('user-agent', name)
    return fetch(input, { ...init, headers, signal: init.signal ?? AbortSignal.timeout(timeoutMs) })
  }
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory({ fetchImpl })],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
  })
  const serviceParameters = ServiceParameters.create(withA2AExtensions(...currentAp2Uris))

  return async (url: string, { key, contextId, taskId = '', parts }: Outgoing): Promise<PeerReply> => {
    const more = { metadata: undefined, filename: '', mediaType: '' }
    const request = {
      ...{ tenant: '', metadata: undefined, configuration: undefined },
      message: {
        ...{ messageId: hashText(`${name} ${key}`), role: Role.ROLE_USER, contextId, taskId },
        parts: parts.map((part) =>
          'text' in part
            ? { content: { $case: 'text' as const, value: part.text }, ...more }
            : { content: { $case: 'data' as const, value: part.data }, ...more },
        ),
        ...{ metadata: undefined, extensions: [], referenceTaskIds: [] },
      },
    }
    for (let attempt = 0; ; attempt++) {
      if (attempt > 0) await pause(Math.min(50 * 2 ** attempt, maxDelayMs))
      const opened = clients.get(url) ?? factory.createFromUrl(url)
      clients.set(url, opened)
      try {
        const client = await opened
        const answer = await client.sendMessage(request, {
          serviceParameters,
          signal: AbortSignal.timeout(timeoutMs),
        })
        const reply = toAgentReply(name, answer)
        if (reply.state !== 'working') return reply
      } catch (error) {
        if (error instanceof A2AError || (error instanceof Error && 'envelopeCode' in error))
          return { task_id: null, state: 'rejected', texts: [error.message], data: [] }
        clients.delete(url)
      }
    }
  }
}

/** Calls another agent until it answers. */
export type CallPeer = ReturnType<typeof createPeers>
