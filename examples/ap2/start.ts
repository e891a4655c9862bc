import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { toPackagePath } from '../../src/infra/lib/package-path.ts'
import { createProcessor } from './card-processor.ts'
import { type AgentConfig, openSelf } from './config.ts'
import { createCredentialsProvider } from './credentials-provider.ts'
import { createMerchant } from './merchant.ts'
import { type RunningScript, startScript } from './scripts.ts'
import { type AgentLine, startAgent } from './server.ts'

const roles = {
  merchant: { name: 'Generic Merchant', role: 'merchant', create: createMerchant },
  wallet: { name: 'Credentials Provider', role: 'credentials-provider', create: createCredentialsProvider },
  processor: { name: 'Card Processor', role: 'payment-processor', create: createProcessor },
} as const
/** The names of the three agents. */
export type AgentName = keyof typeof roles
export const agentNames = Object.keys(roles) as AgentName[]

type Trusted = AgentConfig['trust'][number]
export type StartOptions = {
  /** For configurations and books. */
  folder: string
  /** Whom mandates and carts are for. */
  audience: string
  /** Keys that agents trust beside each other's. */
  trust: Trusted[]
  /** Flags for node in front of a script; null: the agents run in this process, and cannot be killed. */
  flags?: string[] | null
  /** Changes of a configuration. */
  change?: Partial<Record<AgentName, Partial<AgentConfig>>>
  onLine?: (agent: AgentName, line: AgentLine) => void
}

/** An agent, as a process of its own. */
export type RunningAgent = {
  url: string
  books: string
  /** What others trust of it. */
  trusted: Trusted
  signal(name: NodeJS.Signals): void
  /** Kills it and starts it again with the same books, and a changed configuration. */
  restart(change?: Partial<AgentConfig>): Promise<void>
  close(): Promise<unknown>
}

/** A free port on loopback. */
const findPort = async (): Promise<number> => {
  const server = createServer()
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

type Running = Pick<RunningScript, 'signal' | 'end'>

/** Starts merchant, credentials provider and card processor, which trust each other's keys. */
export const startAgents = async (options: StartOptions) => {
  const { folder, audience, trust, change = {}, flags = process.execArgv, onLine } = options
  const made = await Promise.all(
    agentNames.map(async (agent) => {
      const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const [port, kid] = [await findPort(), `${agent}-1`]
      const url = `http://127.0.0.1:${port}`
      const { kty, crv, x, y } = publicKey.export({ format: 'jwk' }) as Trusted['jwk']
      const trusted: Trusted = { issuer: url, kid, roles: [roles[agent].role], jwk: { kty, crv, x, y } }
      const key = { ...privateKey.export({ format: 'jwk' }), kid } as AgentConfig['key']
      return { agent, url, port, key, trusted, books: join(folder, `${agent}.jsonl`) }
    }),
  )
  const urlOf = (agent: AgentName): string => made.find((one) => one.agent === agent)?.url ?? ''
  const peers: Record<AgentName, Record<string, string>> = {
    merchant: { CARD: `${urlOf('processor')}/` },
    wallet: {},
    processor: { credentials: `${urlOf('wallet')}/` },
  }
  const start = async ({ agent, url, port, key, trusted, books }: (typeof made)[number]) => {
    const { name, role, create } = roles[agent]
    const config: AgentConfig = {
      ...{ name, issuer: url, port, books, key, audiences: [audience], agents: peers[agent] },
      trust: [...trust, ...made.map((one) => one.trusted)],
      ...change[agent],
    }
    const file = join(folder, `${agent}.json`)
    const tell = (line: AgentLine) => onLine?.(agent, line)
    const open = async (more: Partial<AgentConfig> = {}): Promise<Running> => {
      const changed = { ...config, ...more }
      writeFileSync(file, JSON.stringify(changed), { mode: 0o600 })
      const args = [...(flags ?? []), toPackagePath('examples', 'ap2', 'main.ts'), role, '--config', file]
      if (flags) return startScript(args, {}, (line) => tell(JSON.parse(line) as AgentLine))
      const running = await startAgent(openSelf(changed), create, tell)
      return { signal() {}, end: () => running.close() }
    }
    let running = await open()
    const own: RunningAgent = {
      ...{ url, books, trusted },
      signal: (name) => running.signal(name),
      async restart(more) {
        await running.end('SIGKILL')
        running = await open(more)
      },
      close: () => running.end('SIGTERM'),
    }
    return [agent, own] as const
  }
  const agents = Object.fromEntries(await Promise.all(made.map(start))) as Record<AgentName, RunningAgent>
  return { ...agents, close: () => Promise.all(agentNames.map((agent) => agents[agent].close())) }
}

export type Agents = Awaited<ReturnType<typeof startAgents>>
