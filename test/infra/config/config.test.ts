import type { KeyObject } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { addAdminToken } from '../../../src/app/cli/admin-token.ts'
import { inspectConfig, readConfig } from '../../../src/app/read-config.ts'
import { type Environment, readEnvironment, readSettingErrors } from '../../../src/infra/config/config.ts'
import type { ProcessRole } from '../../../src/infra/config/role-settings.ts'
import { openMasterKeys } from '../../../src/infra/secrets/master-key-files.ts'
import { MasonError } from '../../../src/state/errors.ts'

const masterKey = Buffer.alloc(32, 7).toString('base64')
const served = {
  DATABASE_URL: 'postgres://mason:pass@db:5432/mason',
  REDIS_URL: 'redis://queue:6379',
  MASON_MASTER_KEY: masterKey,
  MASON_ADMIN_TOKEN: 'admin-token',
}

const failureOf = (env: Environment, role: ProcessRole = 'serve'): MasonError => {
  try {
    readConfig(env, { role })
  } catch (error) {
    if (error instanceof MasonError) return error
    throw error
  }
  throw new Error('the settings were taken')
}
const faultySettings = (env: Environment, role: ProcessRole = 'serve'): string[] =>
  readSettingErrors(failureOf(env, role)).map(({ setting }) => setting)

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mason-config-'))
})
afterAll(() => rm(folder, { recursive: true }))

describe('the settings', () => {
  test('are embedded, local and offline when nothing is set', () => {
    expect(readConfig({}, { role: 'serve' })).toEqual({
      database: { kind: 'embedded', dataDir: join(process.cwd(), '.mason') },
      redisUrl: null,
      queuePrefix: 'bull',
      http: { port: 8080, host: '127.0.0.1' },
      bodyMemory: { processBytes: 128 * 1024 * 1024, tokenBytes: 64 * 1024 * 1024 },
      maxWaitMs: 2000,
      quotas: { storageBytes: 20_480 * 1024 * 1024, queuedRuns: 10_000, requestsPerMinute: null },
      auth: 'required',
      access: { metrics: 'open', docs: 'open', console: 'open', corsOrigins: [], trustedProxies: [] },
      queueSecrets: [],
      adminToken: null,
      masterKey: null,
      previousMasterKeys: [],
      paymentKey: null,
      previousPaymentKeys: [],
      openai: null,
      offlineDialect: 'tools',
      learning: true,
      recall: true,
      recallBacklogTokens: 200_000,
      leaseMs: 30_000,
      filesRoot: null,
      retention: { blobsDays: 7, rejectedJobsDays: 30 },
      storage: {},
      concurrency: 8,
      maxRuns: 256,
      logLevel: 'info',
      otlpEndpoint: null,
      toolFolders: [],
      featureFolders: [],
      client: { url: null, token: null },
      featureVariables: {},
    })
  })

  test('that are empty count as absent', () => {
    const empty = { DATABASE_URL: '', PORT: ' ', OPENAI_API_KEY: '', LOG_LEVEL: '' }
    expect(readConfig(empty, { role: 'serve' })).toEqual(readConfig({}, { role: 'serve' }))
  })

  test('of a served Mason are read', () => {
    const MASON_PREVIOUS_MASTER_KEYS = `${masterKey}, ${masterKey}`
    const env = {
      ...served,
      MASON_PREVIOUS_MASTER_KEYS,
      PORT: '0',
      HOST: '0.0.0.0',
      WORKER_CONCURRENCY: '3',
      MASON_LEASE_MS: '500',
      MASON_QUEUE_PREFIX: '{mason}.a-1',
    }
    const config = readConfig(env, { role: 'serve' })
    expect(config).toMatchObject({
      database: { kind: 'postgres', url: served.DATABASE_URL },
      redisUrl: served.REDIS_URL,
      queuePrefix: '{mason}.a-1',
      http: { port: 0, host: '0.0.0.0' },
      adminToken: 'admin-token',
      masterKey,
      previousMasterKeys: [masterKey, masterKey],
      concurrency: 3,
      leaseMs: 500,
    })
  })

  test('give each process its login and no other', () => {
    const [api, worker, owner] = ['api', 'worker', 'owner'].map((name) => `postgres://${name}:pw@db/mason`)
    const env = {
      ...served,
      DATABASE_URL: '',
      MASON_API_DATABASE_URL: api,
      MASON_WORKER_DATABASE_URL: worker,
      MASON_MIGRATE_URL: owner,
    }
    const databaseOf = (role: ProcessRole) => readConfig(env, { role }).database
    const kind = 'postgres'
    expect(databaseOf('api')).toEqual({ kind, url: api, apiUrl: api, migrateUrl: owner })
    expect(databaseOf('worker')).toEqual({ kind, url: worker, workerUrl: worker, migrateUrl: owner })
    expect(databaseOf('serve')).toEqual({ kind, url: api, apiUrl: api, workerUrl: worker, migrateUrl: owner })
    expect(databaseOf('migrate')).toEqual({
      kind,
      url: owner,
      apiUrl: api,
      workerUrl: worker,
      migrateUrl: owner,
    })
  })

  test.each([
    [{ OPENAI_API_KEY: 'sk-1' }, { apiKey: 'sk-1', baseUrl: null }],
    [
      { OPENAI_BASE_URL: 'http://localhost:11434/v1' },
      { apiKey: null, baseUrl: 'http://localhost:11434/v1' },
    ],
  ])('name a model server when %j is set', (env, wanted) => {
    expect(readConfig(env, { role: 'run' }).openai).toMatchObject(wanted)
  })

  test('report all their errors at once, each with a remedy', () => {
    const env = {
      DATABASE_URL: 'mysql://u:hunter2@h/x',
      PORT: '70000',
      HOST: '0.0.0.0',
      MASON_AUTH: 'off',
      MASON_MASTER_KEY: 'dG9vIHNob3J0',
      MASON_PREVIOUS_MASTER_KEYS: `${masterKey},dG9vIHNob3J0`,
      MASON_LEASE_MS: 'soon',
      MASON_QUEUE_PREFIX: 'mason:a',
      OPENAI_BASE_URL: 'https://user:hunter2@api.example/v1',
      MASON_FILES_ROOT: join(folder, 'nowhere'),
      WORKER_CONCURRENCY: '0',
      LOG_LEVEL: 'loud',
    }
    const error = failureOf(env)
    expect(error.code).toBe('invalid_settings')
    const faults = readSettingErrors(error)
    expect(faults.map(({ setting }) => setting).sort()).toEqual([
      'DATABASE_URL',
      'LOG_LEVEL',
      'MASON_AUTH',
      'MASON_FILES_ROOT',
      'MASON_LEASE_MS',
      'MASON_MASTER_KEY',
      'MASON_PREVIOUS_MASTER_KEYS',
      'MASON_QUEUE_PREFIX',
      'OPENAI_BASE_URL',
      'PORT',
      'REDIS_URL',
      'WORKER_CONCURRENCY',
    ])
    for (const { problem, remedy } of faults) expect([problem, remedy]).not.toContain('')
    expect(JSON.stringify([error.message, error.remedy, error.detail])).not.toMatch(/hunter2|dG9vIHNob3J0/)
  })
})

describe('settings that go together', () => {
  test.each([
    ['a database without a queue', { ...served, REDIS_URL: '' }, 'serve', ['REDIS_URL']],
    ['a queue without a database', { REDIS_URL: served.REDIS_URL }, 'serve', ['DATABASE_URL']],
    ['an open door to everybody', { MASON_AUTH: 'off', HOST: '0.0.0.0' }, 'serve', ['MASON_AUTH']],
    ['a database without a master key', { ...served, MASON_MASTER_KEY: '' }, 'run', ['MASON_MASTER_KEY']],
    [
      'a served API without an admin token',
      { ...served, MASON_ADMIN_TOKEN: '' },
      'api',
      ['MASON_ADMIN_TOKEN'],
    ],
    ['a worker without servers', {}, 'worker', ['DATABASE_URL', 'REDIS_URL']],
    ['a memory worker without a database', {}, 'memory', ['DATABASE_URL']],
    ['a client that knows no server', {}, 'client', ['MASON_URL']],
    [
      'a login for the API only, in a process that is both',
      { ...served, DATABASE_URL: '', MASON_API_DATABASE_URL: served.DATABASE_URL },
      'serve',
      ['MASON_WORKER_DATABASE_URL'],
    ],
    [
      'migrations by logins that may not',
      { MASON_API_DATABASE_URL: served.DATABASE_URL },
      'migrate',
      ['MASON_MIGRATE_URL'],
    ],
    [
      'every page without a token',
      { MASON_AUTH: 'off', MASON_CORS_ORIGINS: '*' },
      'serve',
      ['MASON_CORS_ORIGINS'],
    ],
    ...[
      'https://a.example/',
      'https://a.example/x/',
      'https://a.example/console',
      'https://a.example/v1/x',
      'https://a.example/..',
      'https://a.example/x?y',
      'https://1.2.3.4',
      'http://a.example/x',
    ].map(
      (url) =>
        [`no public address: ${url}`, { MASON_PUBLIC_URL: url }, 'serve', ['MASON_PUBLIC_URL']] as const,
    ),
    ['no origin', { MASON_CORS_ORIGINS: 'https://a.example/path' }, 'serve', ['MASON_CORS_ORIGINS']],
    ['a short queue secret', { MASON_QUEUE_SECRET: 'short' }, 'serve', ['MASON_QUEUE_SECRET']],
    [
      'an earlier queue secret alone',
      { ...served, MASON_PREVIOUS_QUEUE_SECRETS: 'x'.repeat(32) },
      'worker',
      ['MASON_QUEUE_SECRET'],
    ],
  ] as const)('are reported: %s', (_what, env, role, wanted) => {
    expect(faultySettings(env, role)).toEqual(wanted)
  })

  test.each([
    ['auth off on this machine only', { MASON_AUTH: 'off', HOST: '127.0.0.2' }, 'serve'],
    ['auth off with a database', { ...served, MASON_ADMIN_TOKEN: '', MASON_AUTH: 'off' }, 'serve'],
    ['a worker without an admin token', { ...served, MASON_ADMIN_TOKEN: '' }, 'worker'],
    [
      'a worker with its login alone',
      { ...served, DATABASE_URL: '', MASON_WORKER_DATABASE_URL: served.DATABASE_URL },
      'worker',
    ],
    [
      'an API with its login alone',
      { ...served, DATABASE_URL: '', MASON_API_DATABASE_URL: served.DATABASE_URL },
      'api',
    ],
    [
      'a memory worker with its login and no queue',
      { ...served, DATABASE_URL: '', REDIS_URL: '', MASON_WORKER_DATABASE_URL: served.DATABASE_URL },
      'memory',
    ],
    ['migrations with a database alone', { DATABASE_URL: served.DATABASE_URL }, 'migrate'],
    ['a rotation without a queue', { ...served, REDIS_URL: '' }, 'keys'],
    ['a client beside a broken server setting', { MASON_URL: 'http://h:1', PORT: 'x' }, 'client'],
  ] as const)('are accepted: %s', (_what, env, role) => {
    expect(() => readConfig(env, { role })).not.toThrow()
  })

  test('show the command that makes a master key', () => {
    const [fault] = readSettingErrors(failureOf({ ...served, MASON_MASTER_KEY: '' }))
    expect(fault?.remedy).toContain("crypto.randomBytes(32).toString('base64')")
  })
})

describe('.env', () => {
  test('is read, and the environment wins over it', async () => {
    await writeFile(join(folder, '.env'), '# ours\nMASON_TEST_ONLY="from the file"\nPATH=nothing\n')
    const env = readEnvironment(folder)
    expect(env.MASON_TEST_ONLY).toBe('from the file')
    expect(env.PATH).toBe(process.env.PATH)
    expect(process.env.MASON_TEST_ONLY).toBeUndefined()
  })

  test('is optional, and is an error when it cannot be read', async () => {
    expect(readEnvironment(join(folder, 'empty')).PATH).toBe(process.env.PATH)
    await mkdir(join(folder, 'odd', '.env'), { recursive: true })
    expect(() => readEnvironment(join(folder, 'odd'))).toThrow(/cannot be read/)
  })
})

describe('local secrets', () => {
  const configIn = (name: string) => readConfig({ DATA_DIR: join(folder, name) }, { role: 'serve' })

  test('are made once, for their owner only', async () => {
    const config = configIn('one')
    const first = await addAdminToken(config)
    const second = await addAdminToken(config)
    const keys = [await openMasterKeys(config), await openMasterKeys(config)]
    expect(first.adminToken).toMatchObject({ value: expect.stringMatching(/^mason_admin_/), created: true })
    expect(second.adminToken).toEqual({ ...first.adminToken, created: false })
    expect(keys[0]?.current().key.symmetricKeySize).toBe(32)
    expect(keys[0]?.current().key.equals(keys[1]?.current().key as KeyObject)).toBe(true)
    expect(second.config).toEqual(first.config)
    for (const name of await readdir(join(folder, 'one')))
      expect((await stat(join(folder, 'one', name))).mode & 0o777).toBe(0o600)
  })

  test('are the same for concurrent callers, and made by one of them', async () => {
    const all = Array.from({ length: 8 }, () => configIn('many'))
    const asked = await Promise.all(all.map(addAdminToken))
    const keys = await Promise.all(all.map((config) => openMasterKeys(config)))
    expect(new Set(asked.map(({ adminToken }) => adminToken?.value)).size).toBe(1)
    expect(new Set(keys.map((one) => one.current().name)).size).toBe(1)
    expect(asked.filter(({ adminToken }) => adminToken?.created)).toHaveLength(1)
    expect((await readdir(join(folder, 'many'))).sort()).toEqual(['admin-token', 'master-key'])
  })

  test('give way to settings', async () => {
    const config = { ...configIn('given'), adminToken: 'mine' }
    expect(await addAdminToken(config)).toEqual({ config, adminToken: null })
    const given = (await openMasterKeys({ ...config, masterKey })).current()
    expect(given.key.export()).toEqual(Buffer.alloc(32, 7))
    expect(existsSync(join(folder, 'given', 'master-key'))).toBe(false)
  })

  test('that are damaged are reported, not replaced', async () => {
    await mkdir(join(folder, 'damaged'))
    await writeFile(join(folder, 'damaged', 'master-key'), 'half')
    await expect(openMasterKeys(configIn('damaged'))).rejects.toThrow(/master-key is damaged/)
  })
})

describe('the settings of the executor of payments', () => {
  const key = Buffer.alloc(32, 3).toString('base64')
  const own = {
    MASON_PAYMENT_DATABASE_URL: 'postgres://pay:p@h/mason',
    MASON_PAYMENT_KEY: key,
    MASON_PUBLIC_URL: 'https://mason.example.com',
    REDIS_URL: 'redis://h',
  }
  const errorsOf = (env: Environment) =>
    inspectConfig(env, { role: 'payments' }).errors.map(({ setting, problem }) => `${setting} ${problem}`)

  test('are its own login and key, and nothing of the others', () => {
    const config = readConfig({ ...own, MASON_ADMIN_TOKEN: 't'.repeat(24) }, { role: 'payments' })
    expect(config).toMatchObject({ paymentKey: key, adminToken: null, masterKey: null })
    const url = own.MASON_PAYMENT_DATABASE_URL
    expect(config.database).toMatchObject({ kind: 'postgres', url, paymentUrl: url })
  })

  test('are each named when missing or shared, with a remedy', () => {
    expect(errorsOf({})).toEqual([
      expect.stringMatching(
        /^MASON_PAYMENT_DATABASE_URL is missing: without a database server .* `mason serve`/,
      ),
    ])
    expect(errorsOf({ DATABASE_URL: 'postgres://m:p@h/mason', REDIS_URL: 'redis://h' })).toEqual([
      expect.stringMatching(
        /^MASON_PAYMENT_DATABASE_URL is missing: the executor .* never uses the login of another/,
      ),
    ])
    expect(errorsOf({ ...own, MASON_PUBLIC_URL: '' })).toEqual([
      expect.stringMatching(/^MASON_PUBLIC_URL is missing: mandates are made for this address/),
    ])
    expect(errorsOf({ ...own, MASON_PAYMENT_KEY: '' })).toEqual([
      expect.stringMatching(/^MASON_PAYMENT_KEY is missing/),
    ])
    expect(errorsOf({ ...own, MASON_MASTER_KEY: key })).toEqual([
      expect.stringMatching(/^MASON_PAYMENT_KEY is the same as MASON_MASTER_KEY/),
    ])
    for (const name of ['MASON_WORKER_DATABASE_URL', 'MASON_API_DATABASE_URL', 'DATABASE_URL'])
      expect(errorsOf({ ...own, [name]: 'postgres://pay:q@h/mason' })).toEqual([
        expect.stringMatching(new RegExp(`^MASON_PAYMENT_DATABASE_URL names the user of ${name}`)),
      ])
  })

  test('reach no other process of a server, whatever its environment has', () => {
    const server = {
      ...own,
      DATABASE_URL: 'postgres://m:p@h/mason',
      MASON_MASTER_KEY: Buffer.alloc(32, 5).toString('base64'),
      MASON_ADMIN_TOKEN: 't'.repeat(24),
    }
    for (const role of ['serve', 'api', 'worker', 'run', 'models', 'keys'] as const) {
      const config = readConfig(server, { role })
      expect([role, config.paymentKey]).toEqual([role, null])
      expect([role, JSON.stringify(config)]).toEqual([role, expect.not.stringContaining('pay:p')])
    }
    expect(readConfig({ MASON_PAYMENT_KEY: key }, { role: 'serve' }).paymentKey).toBe(key)
  })
})
