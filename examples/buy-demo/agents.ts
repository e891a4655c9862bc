import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { toPackagePath } from '../../src/infra/lib/package-path.ts'
import type { Row as BookRow } from '../ap2/books.ts'
import { type AgentConfig, openSelf } from '../ap2/config.ts'
import { startAgent } from '../ap2/server.ts'
import type { AgentLine } from '../ap2/tasks.ts'
import { freePort } from '../free-port.ts'
import { readJournal } from '../journal.ts'
import { type RunningProcess, startProcess } from '../served-demo/processes.ts'

const agents = {
  merchant: { name: 'Generic Merchant', role: 'merchant' },
  wallet: { name: 'Credentials Provider', role: 'credentials-provider' },
  processor: { name: 'Card Processor', role: 'payment-processor' },
} as const
/** The names of the three agents. */
export type AgentName = keyof typeof agents
export const agentNames = Object.keys(agents) as AgentName[]

type Trusted = AgentConfig['trust'][number]
type StartOptions = {
  /** For configurations and books. */
  folder: string
  /** Whom mandates and carts are for. */
  audience: string
  /** Keys that agents trust beside each other's. */
  trust: Trusted[]
  /** Flags for node in front of a script; null: the agents run in this process, and cannot be killed. */
  flags: string[] | null
  /** Changes of a configuration. */
  change?: Partial<Record<AgentName, Partial<AgentConfig>>>
  onLine?: (agent: AgentName, line: AgentLine) => void
}

/** The rows of a table of books, which their agent may be writing: opening them would cut off its line. */
const readRows = <Row extends object>(file: string, table: string): Row[] => {
  const written = readJournal<BookRow[]>(file).entries.flat()
  const rows = written.filter(([name]) => name === table)
  return [...new Map(rows.map(([, key, value]) => [key, value as Row])).values()]
}

/** An agent with a key and a port of its own; `trusted` is what others trust of it. */
const make = async (agent: AgentName, folder: string) => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const [port, kid] = [await freePort(), `${agent}-1`]
  const key = { ...privateKey.export({ format: 'jwk' }), kid } as AgentConfig['key']
  const { kty, crv, x, y } = key
  const url = `http://127.0.0.1:${port}`
  const trusted: Trusted = { issuer: url, kid, roles: [agents[agent].role], jwk: { kty, crv, x, y } }
  return { agent, url, port, key, trusted, books: join(folder, `${agent}.jsonl`) }
}

/** Starts merchant, credentials provider and card processor, which trust each other's keys. */
export const startAgents = async (options: StartOptions) => {
  const { folder, audience, trust, change = {}, flags, onLine } = options
  const made = await Promise.all(agentNames.map((agent) => make(agent, folder)))
  const urlOf = (agent: AgentName): string => `${made.find((one) => one.agent === agent)?.url}/`
  const peers: Record<AgentName, Record<string, string>> = {
    ...{ merchant: { CARD: urlOf('processor') }, wallet: {}, processor: { credentials: urlOf('wallet') } },
  }
  const start = async ({ agent, url, port, key, trusted, books }: (typeof made)[number]) => {
    const { name, role } = agents[agent]
    const config: AgentConfig = {
      ...{ name, issuer: url, port, books, key, audiences: [audience], agents: peers[agent] },
      trust: [...trust, ...made.map((one) => one.trusted)],
      ...change[agent],
    }
    const file = join(folder, `${agent}.json`)
    const tell = (line: AgentLine) => onLine?.(agent, line)
    const open = async (
      more: Partial<AgentConfig> = {},
    ): Promise<Pick<RunningProcess, 'signal' | 'stop'>> => {
      const changed = { ...config, ...more }
      writeFileSync(file, JSON.stringify(changed), { mode: 0o600 })
      const { PATH, HOME } = process.env
      const args = [...(flags ?? []), toPackagePath('examples', 'ap2', 'main.ts'), role, '--config', file]
      const read = (line: string) => tell(JSON.parse(line) as AgentLine)
      if (flags) return startProcess(args, { env: { PATH, HOME }, ready: /"url"/, onLine: read })
      const running = await startAgent(openSelf(changed), role, tell)
      return { signal() {}, stop: () => running.close() }
    }
    let running = await open()
    const own = {
      ...{ url, trusted },
      list: <Row extends object>(table: string) => readRows<Row>(books, table),
      signal: (name: NodeJS.Signals) => running.signal(name),
      /** Kills it and starts it again with the same books, and a changed configuration. */
      async restart(more?: Partial<AgentConfig>) {
        await running.stop('SIGKILL')
        running = await open(more)
      },
      close: () => running.stop(),
    }
    return [agent, own] as const
  }
  const started = Object.fromEntries(await Promise.all(made.map(start)))
  type Running = (typeof started)[string]
  const close = () => Promise.all(Object.values(started).map((one) => one.close()))
  return { ...(started as Record<AgentName, Running>), close }
}
/** The three agents, each by its name. */
export type Agents = Awaited<ReturnType<typeof startAgents>>
