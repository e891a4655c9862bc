import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { toPackagePath } from '../../src/infra/lib/package-path.ts'

export type Mason = Pick<RunningProcess, 'pid' | 'kill' | 'stop' | 'said'>

/** A process of its own that has said what was awaited. `stop` resolves once it has ended. */
export type RunningProcess = {
  pid: number
  said: RegExpMatchArray
  signal(name: NodeJS.Signals): void
  kill(): void
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
  let said: RegExpMatchArray | null = null
  child.stderr.on('data', (chunk: Buffer) => {
    errors.push(chunk.toString())
    if (said && onLine) process.stderr.write(chunk)
  })
  const lines = createInterface({ input: child.stdout })
  const ended = once(child, 'exit')
  ended.catch(() => {})
  await new Promise<void>((resolve, reject) => {
    const fail = (why: string) => reject(new Error(`${args.join(' ')}: ${why}\n${errors.join('')}`))
    child
      .once('error', ({ message }) => fail(message))
      .once('exit', (code) => fail(`ended with code ${code}`))
    lines.on('line', (line) => {
      if (said) return onLine?.(line)
      said = ready.exec(line)
      if (said) resolve()
    })
  })
  const signal = (name: NodeJS.Signals): void => void child.kill(name)
  return {
    ...{ pid: child.pid ?? 0, said: said as unknown as RegExpMatchArray, signal },
    kill: () => signal('SIGKILL'),
    stop(name = 'SIGTERM') {
      signal(name)
      return ended
    },
  }
}

/** A Mason process, as an operator would start it. */
export const startMason = (args: readonly string[], env: NodeJS.ProcessEnv, ready: RegExp): Promise<Mason> =>
  startProcess([toPackagePath('dist', 'src', 'cli.js'), ...args], { env, ready })
