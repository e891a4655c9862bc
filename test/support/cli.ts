import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { commandLine, scriptFlags } from './script-flags.ts'

const root = join(import.meta.dirname, '..', '..')

export type Ended = { code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string }
export type CliOptions = {
  cwd: string
  env?: Record<string, string>
  script?: string
  bin?: string
  input?: string
  /** A process group of its own: a signal reaches all of it, as Ctrl-C in a terminal does. */
  group?: boolean
}
export type Running = {
  pid: number
  ended: Promise<Ended>
  /** The first match in what was written so far or will be. Rejects when the process ends without it. */
  says(pattern: RegExp): Promise<RegExpExecArray>
  kill(signal: NodeJS.Signals): void
}

/** The real command line in a process of its own, with no settings but those given. */
export const startCli = (args: readonly string[], options: CliOptions): Running => {
  const { PATH = '', HOME = '' } = process.env
  const script =
    options.script === undefined ? commandLine(options.bin) : [...scriptFlags(), join(root, options.script)]
  const child = spawn(process.execPath, [...script, ...args], {
    cwd: options.cwd,
    env: { PATH, HOME, ...options.env },
    detached: options.group === true,
    stdio: [options.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  })
  // one that ends without reading its input
  child.stdin?.on('error', () => {}).end(options.input)
  const written = { stdout: '', stderr: '' }
  const listeners = new Set<() => void>()
  for (const name of ['stdout', 'stderr'] as const)
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      written[name] += text
      for (const look of listeners) look()
    })
  const ended = endOf(child, written)
  return {
    pid: child.pid ?? 0,
    ended,
    kill: (signal) => void (options.group ? process.kill(-(child.pid ?? 0), signal) : child.kill(signal)),
    says: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const match = pattern.exec(written.stdout) ?? pattern.exec(written.stderr)
          if (!match) return
          listeners.delete(look)
          resolve(match)
        }
        listeners.add(look)
        look()
        ended.then((end) => reject(new Error(`ended without ${pattern}: ${JSON.stringify(end)}`)), reject)
      }),
  }
}

const endOf = (child: ChildProcess, written: { stdout: string; stderr: string }): Promise<Ended> =>
  new Promise((resolve, reject) => {
    child.once('error', reject).once('close', (code, signal) => resolve({ code, signal, ...written }))
  })

export const runCli = (args: readonly string[], options: CliOptions): Promise<Ended> =>
  startCli(args, options).ended

/** The objects of `--json`; throws when anything else was written. */
export const jsonLines = (text: string): { event: string; data: Record<string, unknown> }[] =>
  text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { event: string; data: Record<string, unknown> })
