import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { toPackagePath } from '../../src/infra/lib/package-path.ts'

export type Mason = { pid: number; kill(): void; stop(): Promise<void> }

/** A Mason process of its own, as an operator would start it; resolves with the match once it has said so. */
export const startMason = async (
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  ready: RegExp,
): Promise<Mason & { said: RegExpMatchArray }> => {
  const child = spawn(process.execPath, [toPackagePath('dist', 'src', 'cli.js'), ...args], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const errors: string[] = []
  child.stderr.on('data', (chunk: Buffer) => errors.push(chunk.toString()))
  const said = await firstMatch(child, ready).catch((error: Error) => {
    throw new Error(`mason ${args.join(' ')}: ${error.message}\n${errors.join('')}`)
  })
  return {
    pid: child.pid ?? 0,
    said,
    kill: () => void child.kill('SIGKILL'),
    stop: () => stopped(child),
  }
}

const firstMatch = (child: ChildProcess, ready: RegExp): Promise<RegExpMatchArray> =>
  new Promise((resolve, reject) => {
    child.once('error', reject).once('exit', (code) => reject(new Error(`ended with code ${code}`)))
    if (!child.stdout) return
    createInterface({ input: child.stdout }).on('line', (line) => {
      const match = ready.exec(line)
      if (match) resolve(match)
    })
  })

const stopped = (child: ChildProcess): Promise<void> =>
  new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve()
    child.once('exit', () => resolve())
    child.kill('SIGTERM')
  })
