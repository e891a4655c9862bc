import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { type Backend, servedOn } from './backend.ts'
import { scriptFlags } from './script-flags.ts'
import { migrateServed } from './served-logins.ts'
import { dropDatabase, runAsAdmin, templateSetting, urlOf } from './setup-served.ts'
import type { WorkerLine, WorkerTask } from './worker-process.ts'

/** Why tests that need servers are skipped, or null. */
export const serversMissing =
  process.env.TEST_DATABASE_URL && process.env.TEST_REDIS_URL
    ? null
    : 'set TEST_DATABASE_URL and TEST_REDIS_URL to run several processes'

/** A migrated database and a queue prefix of its own on the test servers. */
export const openOwnServers = async (): Promise<Backend> => {
  const name = `mason_process_${randomBytes(6).toString('hex')}`
  const template = process.env[templateSetting]
  await runAsAdmin(`CREATE DATABASE ${name}${template ? ` TEMPLATE ${template}` : ''}`)
  if (!template) await migrateServed(urlOf(name))
  return servedOn(name)
}

/** Before a run of tests: migrates one database for all of them. Gives what drops it. */
export const makeTemplate = async (): Promise<() => Promise<void>> => {
  if (serversMissing || process.env[templateSetting]) return async () => {}
  const name = `mason_template_${randomBytes(6).toString('hex')}`
  await runAsAdmin(`CREATE DATABASE ${name}`)
  await migrateServed(urlOf(name))
  process.env[templateSetting] = name
  return () => dropDatabase(name)
}

type LineOf<Event extends WorkerLine['event']> = Extract<WorkerLine, { event: Event }>

export type WorkerProcess = {
  pid: number
  lines: WorkerLine[]
  /** Resolves with the first line of this event that fits, waiting for it if need be. */
  reported<Event extends WorkerLine['event']>(
    event: Event,
    fits?: (line: LineOf<Event>) => boolean,
  ): Promise<LineOf<Event>>
  signal(name: NodeJS.Signals): void
  /** Resolves once the process is gone. */
  exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
}

const script = fileURLToPath(new URL('./worker-process.ts', import.meta.url))

/** Starts worker processes and ends those that are left, each by its own id. */
export const createProcesses = () => {
  const children = new Set<ChildProcess>()

  const start = async (task: WorkerTask): Promise<WorkerProcess> => {
    const child = spawn(process.execPath, [...scriptFlags(), script, JSON.stringify(task)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    children.add(child)
    const news = new EventEmitter().setMaxListeners(0)
    const lines: WorkerLine[] = []
    const exited = once(child, 'exit').then(([code, signal]) => {
      children.delete(child)
      return { code, signal }
    })
    // what it wrote may be read after it has exited
    let isRead = false
    child.once('close', () => {
      isRead = true
      news.emit('line')
    })
    createInterface({ input: child.stdout }).on('line', (line) => {
      lines.push(JSON.parse(line) as WorkerLine)
      news.emit('line')
    })
    const worker: WorkerProcess = {
      pid: child.pid ?? 0,
      lines,
      exited,
      signal: (name) => void child.kill(name),
      async reported(event, fits = () => true) {
        for (;;) {
          const line = lines.find((one): one is never => one.event === event && fits(one as never))
          if (line) return line
          if (isRead) throw new Error(`the worker is gone and never reported "${event}"`)
          await once(news, 'line', { signal: AbortSignal.timeout(90_000) })
        }
      },
    }
    await worker.reported('ready')
    return worker
  }

  return {
    start,
    /** Kills what is left, frozen ones too, but this one. */
    async end(kept?: WorkerProcess): Promise<void> {
      const left = [...children].filter(({ pid }) => pid !== kept?.pid)
      await Promise.all(
        left.map((child) => {
          const gone = once(child, 'exit')
          child.kill('SIGKILL')
          return gone
        }),
      )
    },
  }
}
