import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { scriptFlags } from '../../test/support/script-flags.ts'
import { databaseSettings } from '../../test/support/served-logins.ts'
import type { Probe, ProbeReply, ProbeRequest } from './probe.ts'
import { otherBuild, type Servers } from './servers.ts'

export type ProcessExit = { code: number | null; signal: NodeJS.Signals | null; tookMs: number }

/** One process of a fleet. */
export type Member = {
  name: string
  pid: number
  /** Where it listens; empty for a worker. */
  url: string
  /** What it holds now; `collect`: after a whole garbage collection. */
  probe(options?: { collect: boolean }): Promise<Probe>
  /** The most memory it ever had, from the kernel. */
  peakRssMb(): number
  /** Sends SIGTERM; resolves once it is gone. */
  stop(): Promise<ProcessExit>
  /** Resolves once it is gone, for whatever reason. */
  gone: Promise<ProcessExit>
  /** Its latest lines. */
  said: readonly string[]
}

export type Fleet = AsyncDisposable & {
  /** `heapMb`: what its old generation may have at most. */
  startApi(options?: { port?: number; heapMb?: number }): Promise<Member>
  startWorker(options?: { concurrency?: number; leakBytes?: number }): Promise<Member>
}

const local = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/**
 * Starts real processes on the servers, `mason serve --role api` and workers; kills those that are left in the end. With
 * the address of a vendor the workers are `mason worker` and call it; otherwise their models are scripted. `build`: a checkout
 * whose build runs, with one login for all.
 */
export const openFleet = (
  servers: Servers,
  providerUrl: string,
  vendorUrl?: string,
  settings: Record<string, string> = {},
  build: string | undefined = otherBuild,
): Fleet => {
  const cli = build ? `${build}/dist/src/cli.js` : local('../../src/cli.ts')
  const vendor = vendorUrl && { OPENAI_BASE_URL: vendorUrl, OPENAI_API_KEY: 'test', OPENAI_MODEL: 'fake' }
  const children = new Set<ChildProcess>()
  let started = 0

  const start = async (
    kind: string,
    script: string,
    args: string[],
    ready: RegExp,
    env: object,
  ): Promise<Member> => {
    const flags = ['--expose-gc', ...scriptFlags(), '--import', local('./probe.ts')]
    const child = spawn(process.execPath, [...flags, script, ...args], {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      env: {
        ...process.env,
        ...(build ? { DATABASE_URL: servers.databaseUrl } : databaseSettings(servers.databaseUrl)),
        REDIS_URL: servers.redisUrl,
        MASON_AUTH: 'off',
        // no random key: all members need the same
        MASON_MASTER_KEY: createHash('sha256').update('fleet').digest('base64'),
        // its actions depend on which turns are learned by then
        MASON_RECALL: 'off',
        LOG_LEVEL: 'warn',
        NO_COLOR: '1',
        ...vendor,
        ...settings,
        ...env,
      },
    })
    children.add(child)
    const name = `${kind} ${++started}`
    const said: string[] = []
    let stoppedAt = performance.now()
    const gone = once(child, 'exit').then(([code, signal]): ProcessExit => {
      children.delete(child)
      return { code, signal, tookMs: Math.round(performance.now() - stoppedAt) }
    })
    const found = new Promise<string>((resolve) => {
      for (const input of [child.stdout, child.stderr].filter((stream) => stream !== null))
        createInterface({ input }).on('line', (line) => {
          said.push(line)
          if (said.length > 2000) said.shift()
          const match = ready.exec(line)
          if (match) resolve(match[1] ?? '')
        })
    })
    const url = await Promise.race([found, gone])
    if (typeof url !== 'string') throw new Error(`${name} did not start:\n${said.join('\n')}`)
    return {
      name,
      pid: child.pid ?? 0,
      url,
      probe: ({ collect } = { collect: false }) => probe(child, collect),
      peakRssMb: () => {
        const kilobytes = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]
        return Math.round(Number(kilobytes) / 102.4) / 10
      },
      async stop() {
        stoppedAt = performance.now()
        child.kill('SIGTERM')
        return gone
      },
      gone,
      said,
    }
  }

  return {
    startApi: ({ port = 0, heapMb } = {}) =>
      start('api', cli, ['serve', '--role', 'api', '--port', String(port)], /listens on (http:\S+)/, {
        ...(heapMb !== undefined && { NODE_OPTIONS: `--max-old-space-size=${heapMb}` }),
      }),
    startWorker: ({ concurrency = 8, leakBytes = 0 } = {}) =>
      vendor
        ? start('worker', cli, ['worker'], /takes (\d+) runs at once/, {
            WORKER_CONCURRENCY: String(concurrency),
          })
        : start('worker', local('./worker-process.ts'), [], /the worker is ready/, {
            WORKER_CONCURRENCY: String(concurrency),
            FLEET_PROVIDER_URL: providerUrl,
            FLEET_LEAK_BYTES: String(leakBytes),
          }),
    async [Symbol.asyncDispose]() {
      await Promise.all(
        [...children].map((child) => {
          const gone = once(child, 'exit')
          child.kill('SIGKILL')
          return gone
        }),
      )
    },
  }
}

/** What a process complained about in its latest lines, each thing once: warnings and errors, or errors alone. */
export const complaintsOf = (
  { name, said }: Pick<Member, 'name' | 'said'>,
  level: 'warn' | 'error',
): string[] => {
  const pattern = level === 'warn' ? /"level":[456]0/ : /"level":[56]0/
  const texts = said
    .filter((line) => pattern.test(line))
    .map((line) => {
      const { msg, error, err } = JSON.parse(line) as {
        msg?: string
        error?: unknown
        err?: { message?: string }
      }
      return `${name} said: ${msg} ${err?.message ?? JSON.stringify(error) ?? ''}`.trim().slice(0, 300)
    })
  return [...new Set(texts)]
}

/** Asks a process over IPC; other messages are tsx's own. */
const probe = (child: ChildProcess, collect: boolean): Promise<Probe> => {
  const id = Math.random()
  return new Promise((resolve, reject) => {
    const finish = (): void => {
      clearTimeout(late)
      child.off('message', onMessage)
      child.off('exit', onExit)
    }
    const onMessage = (reply: Partial<ProbeReply>): void => {
      if (reply.probe !== id || !reply.found) return
      finish()
      resolve(reply.found)
    }
    const onExit = (): void => {
      finish()
      reject(new Error('the process is gone and cannot be probed'))
    }
    const late = setTimeout(() => {
      finish()
      reject(new Error('the process did not answer a probe within 30 s'))
    }, 30_000)
    child.on('message', onMessage).once('exit', onExit)
    child.send({ probe: id, collect } satisfies ProbeRequest, (error) => {
      if (error) onExit()
    })
  })
}
