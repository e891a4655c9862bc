import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { root } from './build.ts'

const execute = promisify(execFile)

/**
 * Sets TEST_DATABASE_URL and TEST_REDIS_URL where they are not: to servers of our own in a temporary folder, gone
 * afterwards. They hold up to 2 GB while the peers are measured.
 */
export const openServers = async (): Promise<AsyncDisposable> => {
  if (process.env.TEST_DATABASE_URL && process.env.TEST_REDIS_URL)
    return { [Symbol.asyncDispose]: async () => {} }
  const script = join(root, '.ci/services.sh')
  const folder = await mkdtemp(join(tmpdir(), 'mason-bench-servers-'))
  const stop = async (): Promise<void> => {
    await execute('bash', [script, 'stop', folder])
    await rm(folder, { recursive: true, force: true })
  }
  try {
    await execute('bash', [script, 'start', folder])
    const settings = await readFile(join(folder, 'env'), 'utf8')
    for (const [, name, value] of settings.matchAll(/export (\w+)=(.*)/g)) if (name) process.env[name] = value
  } catch (error) {
    await stop()
    throw error
  }
  return { [Symbol.asyncDispose]: stop }
}
