import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Environment } from '../../src/infra/config/config.ts'
import { cpuMs, rssMb } from './processes.ts'

export type Command = { script: string; args?: string[]; env: Environment; cwd: string }

/** Starts a compiled script of the product as a user does, until it prints what tells that it is ready; then stops it. */
export const timeStart = async (
  { script, args = [], env, cwd }: Command,
  sign: RegExp,
): Promise<{ seconds: number; cpu: number; mb: number }> => {
  const path = fileURLToPath(new URL(`../../${script}`, import.meta.url))
  const since = performance.now()
  const child = spawn(process.execPath, [path, ...args], {
    cwd,
    // nothing of this process's own settings
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const gone = once(child, 'exit')
  let said = ''
  const ready = new Promise<void>((resolve, reject) => {
    const hear = (part: Buffer): void => {
      said += part.toString()
      if (sign.test(said)) resolve()
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    child.once('exit', (code) =>
      reject(new Error(`${script} ended with ${code} before it was ready:\n${said}`)),
    )
  })
  await ready
  const seconds = (performance.now() - since) / 1000
  const cpu = cpuMs(child.pid ?? 0) / 1000
  const mb = rssMb(child.pid ?? 0)
  child.kill('SIGTERM')
  await gone
  return { seconds, cpu, mb }
}
