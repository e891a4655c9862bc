import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { AgentCard } from '@a2a-js/sdk'
import { duplicateInterfacesForLegacy } from '@a2a-js/sdk/compat/v0_3'
import { LegacyJsonRpcTransportHandler } from '@a2a-js/sdk/compat/v0_3/server'
import { JsonRpcTransportHandler, ServerCallContext, validateVersion } from '@a2a-js/sdk/server'
import { toCardJson } from '../../src/a2a/card.ts'
import { checkRequired, listActivated, readExtensions } from '../../src/a2a/extensions.ts'
import { checkMessage } from '../../src/a2a/messages.ts'
import { readVersion } from '../../src/a2a/rpc.ts'
import { currentAp2Uris } from '../../src/accounts/ap2.ts'
import { type Books, openBooks } from './books.ts'
import type { Self } from './config.ts'
import type { Answer, Incoming } from './messages.ts'
import { type CallPeer, createPeers } from './peers.ts'
import { createTasks } from './tasks.ts'

/** What a program needs to be an agent. */
export type Agent = {
  role: 'merchant' | 'credentials-provider' | 'payment-processor'
  description: string
  skills: { id: string; name: string; description: string }[]
  /** Carries out a message, also again after a kill. Throws a `RefusalError` for what it does not do. */
  handle(message: Incoming): Promise<Answer>
}
/** What an agent is made of. */
export type Tools = { self: Self; books: Books; call: CallPeer }

const maxBytes = 1024 * 1024

const toCard = ({ role, description, skills }: Agent, { name }: Self, url: string): AgentCard => {
  const bindings = ['JSONRPC']
  const interfaces = [{ url: `${url}/a2a`, protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: '' }]
  return AgentCard.fromJSON({
    ...{ name, description, version: '1.0.0' },
    supportedInterfaces: duplicateInterfacesForLegacy(interfaces, bindings),
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

/** What an agent tells of a message that it got, or of its answer: texts, and the names of data. */
export type AgentLine =
  | { from: string; text: string; keys: string[] }
  | { to: string; state: string; text: string; keys: string[] }

/** Starts an agent on loopback; it tells of each message and each answer. */
export const startAgent = async (
  self: Self,
  create: (tools: Tools) => Agent,
  tell: (line: AgentLine) => void,
): Promise<{ url: string; close(): Promise<void> }> => {
  const books = openBooks(self.books)
  const agent = create({ self, books, call: createPeers(self.name) })
  const tasks = createTasks(books, agent.handle, ({ got, gave, peer }) => {
    if (got) tell({ from: peer, text: got.text, keys: got.keys })
    if (!gave) return
    const parts = [...(gave.says ?? []), ...(gave.artifacts ?? []).flat()]
    const texts = parts.flatMap((part) => ('text' in part ? part.text : []))
    const keys = parts.flatMap((part) => ('data' in part ? Object.keys(part.data) : []))
    tell({ to: peer, state: gave.state, text: texts.join(' '), keys })
  })
  let card: AgentCard

  const handleRpc = async ({ headers }: IncomingMessage, response: ServerResponse, text: string) => {
    const version = readVersion(headers)
    const isLegacy = version === '0.3'
    const Transport = isLegacy ? LegacyJsonRpcTransportHandler : JsonRpcTransportHandler
    let id: unknown = null
    try {
      const body = JSON.parse(text)
      id = body?.id ?? null
      validateVersion(version, card, 'JSONRPC')
      const extensions = readExtensions(headers)
      if (/send/i.test(body?.method)) {
        checkRequired(card, extensions)
        checkMessage(body.params, isLegacy ? '0.3' : '1.0')
      }
      const handler = tasks.createHandler(String(headers['user-agent'] ?? '').slice(0, 50))
      const result = await new Transport(handler).handle(
        body,
        new ServerCallContext({ requestedVersion: version }),
      )
      const activated = listActivated(card, extensions).join(', ')
      if (activated) response.setHeader(isLegacy ? 'x-a2a-extensions' : 'a2a-extensions', activated)
      return result
    } catch (error) {
      return {
        ...{ jsonrpc: '2.0', id },
        error: isLegacy
          ? LegacyJsonRpcTransportHandler.mapToLegacyJSONRPCError(error)
          : JsonRpcTransportHandler.mapToJSONRPCError(error),
      }
    }
  }

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const sendJson = (body: unknown) =>
      void response.setHeader('content-type', 'application/json').end(JSON.stringify(body))
    switch (`${request.method} ${request.url?.split('?')[0]}`) {
      case 'GET /.well-known/agent-card.json':
        return sendJson(await toCardJson(card, readVersion(request.headers), {}))
      case 'GET /.well-known/ap2-jwks.json':
        return sendJson({ keys: [self.publicKey] })
      case 'POST /a2a': {
        const text = await readBody(request)
        if (text === null) return void response.writeHead(413).end()
        return sendJson(await handleRpc(request, response, text))
      }
      default:
        return void response.writeHead(404).end()
    }
  }

  const server = createServer((request, response) => {
    answer(request, response).catch((error: Error) => {
      process.stderr.write(`${error.stack}\n`)
      response.destroy()
    })
  })
  await new Promise<void>((resolve) => void server.listen(self.port, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  card = toCard(agent, self, url)
  tasks.resume()
  return {
    url,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const readBody = async (request: IncomingMessage): Promise<string | null> => {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > maxBytes) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}
