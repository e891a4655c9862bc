import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

/** A script that runs as a process of its own. `line`: the first that it printed. */
export type RunningScript = {
  line: string
  signal(name: NodeJS.Signals): void
  /** Resolves once it has ended. */
  end(name: NodeJS.Signals): Promise<unknown>
}

/** Starts a script; `args` begin with flags of node and its file. Resolves with its first line, and tells of the ones after it. */
export const startScript = async (
  args: string[],
  env: NodeJS.ProcessEnv = {},
  onLine: (line: string) => void = () => {},
): Promise<RunningScript> => {
  const { PATH = '', HOME = '' } = process.env
  const child = spawn(process.execPath, args, {
    env: { PATH, HOME, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: child.stdout })
  const ended = once(child, 'exit')
  const failed = ended.then(() => Promise.reject(new Error(`ended at its start: ${args.join(' ')}`)))
  const [line] = (await Promise.race([once(lines, 'line'), failed])) as [string]
  failed.catch(() => {})
  lines.on('line', onLine)
  const signal = (name: NodeJS.Signals): void => void child.kill(name)
  return {
    ...{ line, signal },
    end(name) {
      signal(name)
      return ended
    },
  }
}
