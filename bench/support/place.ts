import { randomBytes } from 'node:crypto'
import { readConfig } from '../../src/app/read-config.ts'
import type { Config, Environment } from '../../src/infra/config/config.ts'
import { dropKeys } from '../../test/support/drop-keys.ts'
import { runAsAdmin, urlOf } from '../../test/support/setup-served.ts'
import { createProcesses, type Processes } from './processes.ts'

/** Where one measurement takes place. */
export type Place = {
  /** The settings of a served Mason, as the environment gives them and as they are read. */
  env: Environment
  config: Config
  databaseUrl: string
  redisUrl: string
  /** The repository, where the peers are installed. */
  root: string
  processes: Processes
  /** A number of things to do, made smaller by `--scale`; at least one. */
  count(full: number): number
}

export type PlaceOptions = { template: string; root: string; scale: number }

/** Makes a database from the template; the servers are those of TEST_DATABASE_URL and TEST_REDIS_URL. */
export const openPlace = async ({
  template,
  root,
  scale,
}: PlaceOptions): Promise<Place & AsyncDisposable> => {
  const name = `${template}_${randomBytes(4).toString('hex')}`
  await runAsAdmin(`CREATE DATABASE ${name} TEMPLATE ${template}`)
  const databaseUrl = urlOf(name)
  const redisUrl = process.env.TEST_REDIS_URL ?? ''
  const env = {
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    // keeps this measurement's queue apart from all others on the same Redis
    MASON_QUEUE_PREFIX: name,
    MASON_AUTH: 'off',
    MASON_MASTER_KEY: randomBytes(32).toString('base64'),
    PORT: '0',
  }
  const processes = createProcesses()
  return {
    env,
    config: readConfig(env, { role: 'serve' }),
    databaseUrl,
    redisUrl,
    root,
    processes,
    count: (full) => Math.max(1, Math.round(full * scale)),
    async [Symbol.asyncDispose]() {
      await processes.end()
      await runAsAdmin(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
      await dropKeys(redisUrl, name)
    },
  }
}
