import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Database } from '../../src/infra/database/database.ts'
import { openPostgresDatabase } from '../../src/infra/database/postgres.ts'
import { createClosers } from '../../src/infra/lib/closers.ts'
import { type Ended, startCli } from '../../test/support/cli.ts'
import { dropKeys } from '../../test/support/drop-keys.ts'
import { serversMissing } from '../../test/support/processes.ts'
import { databaseSettings } from '../../test/support/served-logins.ts'
import { dropDatabase, runAsAdmin, urlOf } from '../../test/support/setup-served.ts'

/** `mason serve` as users start it, API and worker in one process, on a database and queues of its own. */
export type ServedMason = {
  port: number
  token: string
  redisUrl: string
  queuePrefix: string
  /** A look of our own at its database. */
  database: Database
  /** Resolves when the process is gone, whatever ended it. */
  ended: Promise<Ended>
  /** Tells it to stop, drops what it had, and says how it ended and what it logged. */
  stop(): Promise<Ended>
}

export const startMason = async (env: Record<string, string> = {}): Promise<ServedMason> => {
  if (serversMissing !== null) throw new Error(serversMissing)
  const opened = createClosers()
  try {
    return await start(opened, env)
  } catch (error) {
    await opened.close().catch(() => {})
    throw error
  }
}

const start = async (
  opened: ReturnType<typeof createClosers>,
  env: Record<string, string>,
): Promise<ServedMason> => {
  const name = `mason_fuzz_${randomBytes(6).toString('hex')}`
  const redisUrl = process.env.TEST_REDIS_URL ?? ''
  const token = randomBytes(16).toString('hex')
  const cwd = await mkdtemp(join(tmpdir(), 'mason-fuzz-'))
  opened.add(() => rm(cwd, { recursive: true, force: true }))
  opened.add(() => dropKeys(redisUrl, name))
  await runAsAdmin(`CREATE DATABASE ${name}`)
  opened.add(() => dropDatabase(name))
  const mason = startCli(['serve', '--port', '0', '--migrate'], {
    cwd,
    env: {
      ...databaseSettings(urlOf(name)),
      REDIS_URL: redisUrl,
      MASON_QUEUE_PREFIX: name,
      MASON_MASTER_KEY: randomBytes(32).toString('base64'),
      MASON_ADMIN_TOKEN: token,
      LOG_LEVEL: 'error',
      ...env,
    },
  })
  opened.add(async () => {
    mason.kill('SIGTERM')
    await mason.ended
  })
  const [, port] = await mason.says(/listens on http:\S+:(\d+)/)
  const database = openPostgresDatabase({ url: urlOf(name), max: 2 })
  opened.add(() => database.close())
  return {
    port: Number(port),
    token,
    redisUrl,
    queuePrefix: name,
    database,
    ended: mason.ended,
    async stop() {
      await opened.close()
      return mason.ended
    },
  }
}
