import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../examples/free-port.ts'
import type { Config } from '../../src/infra/config/config.ts'
import { commandLine, scriptFlags } from '../../test/support/script-flags.ts'
import { databaseSettings, loginsOf } from '../../test/support/served-logins.ts'
import { openServers, type Servers } from '../failures/servers.ts'
import { TcpProxy } from '../failures/tcp-proxy.ts'
import { openHttpClient } from '../fleet/http-client.ts'
import { type Member, openProcesses, type Processes } from './processes.ts'
import type { Order, WorkerLine, WorkerTask } from './worker-process.ts'

export const leaseMs = 2000

/** What a worker held of a run when it let go of it. */
export type Held = Extract<WorkerLine, { event: 'left' }>

/** Private servers behind proxies, the ledger, and the processes on them. */
export type World = AsyncDisposable & {
  folder: string
  servers: Servers
  /** Between the processes and the servers. */
  proxies: { postgres: TcpProxy; redis: TcpProxy }
  processes: Processes
  /** Everything workers reported of runs they released. */
  held: Held[]
  ledger: { url: string; file: string }
  startWorker(options?: WorkerOptions): Member
  startApi(): Member
  /** Where the API listens, whichever process that is. */
  apiUrl: string
  /** Whether an effect is in the ledger. */
  hasDone(key: string): Promise<boolean>
  /** Leaves the logs and the ledger behind when the world closes, for a person to read. */
  keep(): void
}

export type WorkerOptions = {
  concurrency?: number
  /** Seconds its wall clock is ahead; needs faketime. */
  skewSeconds?: number
  crashAt?: string
  order?: Order
}

/** For LD_PRELOAD, where Debian's package `faketime` puts it. */
export const faketimeLibrary = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1'

/** Node's arguments for a script of this folder. */
const scriptOf = (name: string): string[] => [...scriptFlags(), fileURLToPath(new URL(name, import.meta.url))]

export const openWorld = async (seed: number, open: () => Promise<Servers> = openServers): Promise<World> => {
  const folder = await mkdtemp(join(tmpdir(), 'mason-campaign-'))
  const closers: (() => PromiseLike<unknown>)[] = []
  let isKept = false
  const close = async (): Promise<void> => {
    for (const closer of closers.reverse()) await closer()
    if (!isKept) await rm(folder, { recursive: true, force: true })
  }
  try {
    const servers = await open()
    closers.push(() => servers[Symbol.asyncDispose]())
    const proxies = { postgres: new TcpProxy(servers.postgres.url), redis: new TcpProxy(servers.redis.url) }
    for (const proxy of Object.values(proxies)) {
      await proxy.open()
      closers.push(() => proxy.down())
    }
    const processes = openProcesses(join(folder, 'logs'))
    closers.push(() => processes[Symbol.asyncDispose]())
    const file = join(folder, 'ledger.jsonl')
    const ledgerProcess = processes.start('ledger', [...scriptOf('./ledger-process.ts'), file, String(seed)])
    const url = await ledgerProcess.waitForLine(() => true)
    if (url === null) throw new Error('the ledger did not start')
    const http = openHttpClient(url)
    closers.push(async () => http[Symbol.dispose]())
    const held: Held[] = []
    const config: Config = {
      bodyMemory: { processBytes: 128 * 1024 * 1024, tokenBytes: 64 * 1024 * 1024 },
      maxWaitMs: 2000,
      http: { port: 0, host: '127.0.0.1' },
      database: { kind: 'postgres', url: proxies.postgres.url, ...loginsOf(proxies.postgres.url) },
      redisUrl: proxies.redis.url,
      queuePrefix: servers.queuePrefix,
      quotas: { storageBytes: 20_480 * 1024 * 1024, queuedRuns: 10_000, requestsPerMinute: null },
      auth: 'off',
      access: { metrics: 'open', docs: 'open', console: 'open', corsOrigins: [], trustedProxies: [] },
      queueSecrets: [],
      adminToken: null,
      masterKey: null,
      previousMasterKeys: [],
      paymentKey: null,
      previousPaymentKeys: [],
      openai: null,
      offlineDialect: 'tools',
      learning: true,
      // or runs of a user would have an action more than the books say
      recall: false,
      recallBacklogTokens: 200_000,
      leaseMs,
      filesRoot: null,
      storage: {},
      retention: { blobsDays: 7, rejectedJobsDays: 30 },
      concurrency: 4,
      maxRuns: 256,
      logLevel: 'warn',
      otlpEndpoint: null,
      toolFolders: [],
      featureFolders: [],
      client: { url: null, token: null },
    }
    const port = await freePort()
    return {
      folder,
      servers,
      proxies,
      processes,
      held,
      ledger: { url, file },
      apiUrl: `http://127.0.0.1:${port}`,
      startWorker({ concurrency = 4, skewSeconds = 0, crashAt, order } = {}) {
        const task: WorkerTask = {
          config: { ...config, concurrency },
          ledgerUrl: url,
          crashAt: crashAt ?? null,
          order: order ?? null,
        }
        return processes.start('worker', [...scriptOf('./worker-process.ts'), JSON.stringify(task)], {
          env: skewSeconds === 0 ? {} : skewed(skewSeconds),
          onLine(line) {
            const report = JSON.parse(line) as WorkerLine
            if (report.event === 'left') held.push(report)
          },
        })
      },
      startApi: () =>
        processes.start('api', [...commandLine(), 'serve', '--role', 'api'], {
          env: {
            ...databaseSettings(proxies.postgres.url),
            REDIS_URL: proxies.redis.url,
            MASON_QUEUE_PREFIX: servers.queuePrefix,
            PORT: String(port),
            MASON_AUTH: 'off',
            MASON_MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
            LOG_LEVEL: 'error',
            NO_COLOR: '1',
          },
        }),
      hasDone: async (key) => (await http.get(`/deeds?key=${key}`)).body !== '',
      keep() {
        isKept = true
      },
      [Symbol.asyncDispose]: close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

const skewed = (seconds: number): Record<string, string> => ({
  LD_PRELOAD: faketimeLibrary,
  FAKETIME: `${seconds > 0 ? '+' : '-'}${Math.abs(seconds)}s`,
  // deadlines are kept by the monotonic clock, which no administrator sets
  FAKETIME_DONT_FAKE_MONOTONIC: '1',
})
