import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { toPackagePath } from '../../src/infra/lib/package-path.ts'

/** A process of its own that has said what was awaited. `stop` resolves once it has ended. */
export type RunningProcess = {
  pid: number
  said: RegExpMatchArray
  signal(name: NodeJS.Signals): void
  stop(name?: NodeJS.Signals): Promise<unknown>
}

type Options = {
  env: NodeJS.ProcessEnv
  ready: RegExp
  /** Gets each line after the one that was awaited. */
  onLine?: (line: string) => void
}

/** Runs node with arguments; resolves with the match once a line of the output has it. Throws with what it wrote to stderr. */
export const startProcess = async (
  args: readonly string[],
  { env, ready, onLine }: Options,
): Promise<RunningProcess> => {
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const errors: string[] = []
  let isReady = false
  child.stderr.on('data', (chunk: Buffer) => {
    errors.push(chunk.toString())
    if (isReady && onLine) process.stderr.write(chunk)
  })
  const lines = createInterface({ input: child.stdout })
  const ended = once(child, 'exit')
  ended.catch(() => {})
  const said = await new Promise<RegExpMatchArray>((resolve, reject) => {
    const fail = (why: string) => reject(new Error(`${args.join(' ')}: ${why}\n${errors.join('')}`))
    child
      .once('error', ({ message }) => fail(message))
      .once('exit', (code) => fail(`ended with code ${code}`))
    lines.on('line', (line) => {
      if (isReady) return onLine?.(line)
      const match = ready.exec(line)
      if (!match) return
      isReady = true
      resolve(match)
    })
  })
  const signal = (name: NodeJS.Signals): void => void child.kill(name)
  return {
    ...{ pid: child.pid ?? 0, said, signal },
    stop(name = 'SIGTERM') {
      signal(name)
      return ended
    },
  }
}

/** A Mason process, as an operator would start it. */
export const startMason = (
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  ready: RegExp,
): Promise<RunningProcess> => startProcess([toPackagePath('dist', 'src', 'cli.js'), ...args], { env, ready })
