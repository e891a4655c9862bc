import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openOwnServers, serversMissing } from '../../test/support/processes.ts'
import { migrateServed } from '../../test/support/served-logins.ts'
import { PostgresServer } from './postgres-server.ts'
import { RedisServer } from './redis-server.ts'
import { run } from './run.ts'

const script = fileURLToPath(new URL('../../.ci/services.sh', import.meta.url))

/** Private servers that a campaign may kill, freeze and flush as it likes, with a migrated database. */
export type Servers = AsyncDisposable & {
  folder: string
  postgres: PostgresServer
  redis: RedisServer
  queuePrefix: string
}

/** `parent`: where the data goes, the system's temporary folder if absent. */
export const openServers = async (parent = tmpdir()): Promise<Servers> => {
  const folder = await mkdtemp(join(parent, 'mason-chaos-'))
  await chmod(folder, 0o711)
  const close = async (): Promise<void> => {
    await run('bash', [script, 'stop', folder])
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  try {
    await run('bash', [script, 'start', folder])
    const settings = await readFile(join(folder, 'env'), 'utf8')
    const setting = (name: string): string => new RegExp(`export ${name}=(.*)`).exec(settings)?.[1] ?? ''
    const postgres = new PostgresServer(join(folder, 'pg'), setting('TEST_DATABASE_URL'))
    await migrateServed(postgres.url)
    const redis = new RedisServer(join(folder, 'redis'), setting('TEST_REDIS_URL'))
    return { folder, postgres, redis, queuePrefix: 'bull', [Symbol.asyncDispose]: close }
  } catch (error) {
    await close()
    throw error
  }
}

/** A database and a prefix on the servers of the tests, where there are some: for what leaves the servers alone. */
export const openSharedServers = async (): Promise<Servers> => {
  if (serversMissing !== null) return openServers()
  const { config, drop } = await openOwnServers()
  const { database, redisUrl, queuePrefix } = config
  return {
    folder: '',
    postgres: new PostgresServer('', database.kind === 'postgres' ? database.url : ''),
    redis: new RedisServer('', redisUrl ?? ''),
    queuePrefix,
    [Symbol.asyncDispose]: drop,
  }
}
