import { AgentCard } from '@a2a-js/sdk'
import { duplicateInterfacesForLegacy } from '@a2a-js/sdk/compat/v0_3'
import { fastify } from 'fastify'
import { currentAp2Uris } from '../../src/features/a2a/client/ap2.ts'
import { toCardJson } from '../../src/features/a2a/server/card.ts'
import { readExtensions } from '../../src/features/a2a/server/extensions.ts'
import { answerRpc, readVersion } from '../../src/features/a2a/server/rpc.ts'
import { findMandateProblem } from '../../src/features/payments/mandates/v1/message-mandates.ts'
import { openBooks } from './books.ts'
import { createProcessor } from './card-processor.ts'
import cards from './cards.json' with { type: 'json' }
import type { Self } from './config.ts'
import { createCredentialsProvider } from './credentials-provider.ts'
import { createMerchant } from './merchant.ts'
import { createPeers } from './peers.ts'
import { type AgentLine, createTasks } from './tasks.ts'

const agents = {
  merchant: createMerchant,
  'credentials-provider': createCredentialsProvider,
  'payment-processor': createProcessor,
}
/** A role of AP2 that an agent here has. */
export type AgentRole = keyof typeof agents
export const roles = Object.keys(agents) as AgentRole[]

const toCard = (role: AgentRole, name: string, url: string): AgentCard => {
  const { skills, description } = cards[role]
  const interfaces = [{ url: `${url}/a2a`, protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: '' }]
  return AgentCard.fromJSON({
    ...{ name, description, version: '1.0.0' },
    supportedInterfaces: duplicateInterfacesForLegacy(interfaces, ['JSONRPC']),
    capabilities: {
      extensions: currentAp2Uris.map((uri, at) => ({
        ...{ uri, description: 'Payments by the Agent Payments Protocol (AP2)', params: { roles: [role] } },
        required: at === 0 && role === 'merchant',
      })),
    },
    ...{ defaultInputModes: ['text/plain', 'application/json'], defaultOutputModes: ['application/json'] },
    skills: skills.map((skill) => ({ ...skill, tags: [role] })),
  })
}

/** Starts an agent on loopback; it tells of each message and each answer. */
export const startAgent = async (self: Self, role: AgentRole, tell: (line: AgentLine) => void) => {
  const books = openBooks(self.books)
  const tasks = createTasks(books, agents[role]({ self, books, call: createPeers(self.name) }), tell)
  const { signal } = new AbortController()
  let card: AgentCard
  const app = fastify({ bodyLimit: 1024 * 1024, forceCloseConnections: true })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'string' }, async (_: unknown, text: string) => text)
  app.get('/.well-known/agent-card.json', ({ headers }) => toCardJson(card, readVersion(headers), {}))
  app.get('/.well-known/ap2-jwks.json', () => ({ keys: [self.publicKey] }))
  app.post('/a2a', async ({ headers, body }, reply) => {
    const handler = tasks.createHandler(String(headers['user-agent'] ?? '').slice(0, 50))
    const call = { card, extensions: readExtensions(headers), findMandateProblem, signal }
    const parsed = await new Response(String(body)).json().catch(() => undefined)
    const response = await answerRpc(call, headers, parsed, () => handler)
    reply.headers(response.headers)
    return 'body' in response ? response.body : null
  })
  const url = await app.listen({ port: self.port, host: '127.0.0.1' })
  card = toCard(role, self.name, url)
  tasks.resume()
  return { url, close: () => app.close() }
}
