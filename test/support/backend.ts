import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { expect, inject } from 'vitest'
import type { Config } from '../../src/infra/config/config.ts'
import type { Database } from '../../src/infra/database/database.ts'
import { openEmbeddedDatabase } from '../../src/infra/database/embedded.ts'
import { openPostgresDatabase } from '../../src/infra/database/postgres.ts'
import { dropKeys } from './drop-keys.ts'
import { marksOf } from './marks.ts'
import { loginsOf } from './served-logins.ts'
import { dropDatabase, runAsAdmin, urlOf } from './setup-served.ts'

declare module 'vitest' {
  interface ProvidedContext {
    template: string
  }
}

/** A database (and queue) of its own for one test file, embedded or on real servers as the project says. */
export type Backend = {
  kind: 'embedded' | 'served'
  config: Config
  loadDataDir: Uint8Array | undefined
  /** Opens the database alone. Embedded: each is a copy of its own. */
  openDatabase(): Promise<Database>
  drop(): Promise<void>
}

export const baseConfig = {
  queuePrefix: 'bull',
  http: { port: 0, host: '127.0.0.1' },
  bodyMemory: { processBytes: 128 * 1024 * 1024, tokenBytes: 64 * 1024 * 1024 },
  maxWaitMs: 2000,
  quotas: { storageBytes: 20_480 * 1024 * 1024, queuedRuns: 10_000, requestsPerMinute: null },
  auth: 'off',
  access: { metrics: 'open', docs: 'open', console: 'open', corsOrigins: [], trustedProxies: [] },
  queueSecrets: [],
  adminToken: null,
  masterKey: Buffer.alloc(32, 7).toString('base64'),
  previousMasterKeys: [],
  paymentKey: Buffer.alloc(32, 9).toString('base64'),
  previousPaymentKeys: [],
  openai: null,
  offlineDialect: 'tools',
  learning: true,
  recall: true,
  recallBacklogTokens: 200_000,
  leaseMs: 30_000,
  filesRoot: null,
  storage: {},
  retention: { blobsDays: 7, rejectedJobsDays: 30 },
  concurrency: 4,
  maxRuns: 256,
  logLevel: 'error',
  otlpEndpoint: null,
  toolFolders: [],
  featureFolders: [],
  client: { url: null, token: null },
} satisfies Partial<Config>

export const openBackend = async (): Promise<Backend> => {
  const { testPath = '' } = expect.getState()
  const marks = marksOf(testPath)
  if (!marks.has('backends: either') && !marks.has('backends: both'))
    throw new Error(
      `${testPath} opens a database: its first line must be \`// backends: either\` (docs/testing.md)`,
    )
  return process.env.MASON_TEST_BACKEND === 'served' ? served() : embedded()
}

const embedded = async (): Promise<Backend> => {
  const loadDataDir = await readFile(inject('template'))
  return {
    kind: 'embedded',
    config: { ...baseConfig, database: { kind: 'memory' }, redisUrl: null },
    loadDataDir,
    openDatabase: () => openEmbeddedDatabase({ loadDataDir }),
    drop: async () => {},
  }
}

const served = async (): Promise<Backend> => {
  const name = `mason_test_${randomBytes(6).toString('hex')}`
  await runAsAdmin(`CREATE DATABASE ${name} TEMPLATE ${inject('template')}`)
  return servedOn(name)
}

/** The backend of a database that is there; dropping it drops the database and the queue's keys. */
export const servedOn = (name: string): Backend => {
  const url = urlOf(name)
  const redisUrl = process.env.TEST_REDIS_URL ?? ''
  return {
    kind: 'served',
    config: {
      ...baseConfig,
      database: { kind: 'postgres', url, ...loginsOf(url) },
      redisUrl,
      queuePrefix: name,
    },
    loadDataDir: undefined,
    openDatabase: async () => openPostgresDatabase({ url }),
    async drop() {
      await dropDatabase(name)
      await dropKeys(redisUrl, name)
    },
  }
}

export const unique = (prefix: string): string => `${prefix}-${randomBytes(5).toString('hex')}`
