import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { migrateServed } from '../../test/support/served-logins.ts'

const execute = promisify(execFile)
const script = fileURLToPath(new URL('../../.ci/services.sh', import.meta.url))

/** Another checkout, whose build then runs in place of this one's: to repeat what once did not hold. */
export const otherBuild = process.env.CHAOS_BUILD

export type Servers = AsyncDisposable & { databaseUrl: string; redisUrl: string }

/** Private servers with a migrated database, in a temporary folder: campaigns fill them, and count what is in them. */
export const openServers = async (): Promise<Servers> => {
  const folder = await mkdtemp(join(tmpdir(), 'mason-fleet-'))
  const close = async (): Promise<void> => {
    await execute('bash', [script, 'stop', folder])
    await rm(folder, { recursive: true, force: true })
  }
  try {
    await execute('bash', [script, 'start', folder])
    const settings = await readFile(join(folder, 'env'), 'utf8')
    const setting = (name: string): string => new RegExp(`export ${name}=(.*)`).exec(settings)?.[1] ?? ''
    const databaseUrl = setting('TEST_DATABASE_URL')
    // an older build migrates by itself
    if (!otherBuild) await migrateServed(databaseUrl)
    return { databaseUrl, redisUrl: setting('TEST_REDIS_URL'), [Symbol.asyncDispose]: close }
  } catch (error) {
    await close()
    throw error
  }
}
