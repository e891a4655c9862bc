// asserts: invariants

import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ensureDatabaseId } from '../../src/infra/database/database-id.ts'
import { submitRun } from '../../src/producer/submit-run.ts'
import type { Backend } from '../support/backend.ts'
import { type Running, runCli, startCli } from '../support/cli.ts'
import { waitedFor } from '../support/clock.ts'
import { askDoctor } from '../support/doctor.ts'
import { dropKeys } from '../support/drop-keys.ts'
import { openOwnServers, serversMissing } from '../support/processes.ts'
import { until } from '../support/runs.ts'
import { urlOf } from '../support/setup-served.ts'
import { inGate, testInAll } from '../support/tier.ts'

/** Two Masons with a database each on one Redis, as processes. */

describe.skipIf(serversMissing !== null)(`two Masons on one Redis (${serversMissing ?? 'served'})`, () => {
  const REDIS_URL = process.env.TEST_REDIS_URL ?? ''
  const prefix = `mason_owner_${randomBytes(4).toString('hex')}`
  const backends: Backend[] = []
  /** The names of their databases. */
  let [own, other] = ['', '']
  let cwd: string
  let redis: Redis
  const running: Running[] = []
  const ids: Record<string, string> = {}

  const settings = (database: string, queuePrefix = prefix) => ({
    DATABASE_URL: urlOf(database),
    REDIS_URL,
    MASON_QUEUE_PREFIX: queuePrefix,
    MASON_MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
    MASON_AUTH: 'off',
    LOG_LEVEL: 'error',
    PORT: '0',
  })
  const start = async (database: string, queuePrefix?: string) => {
    const mason = startCli(['serve'], { cwd, env: settings(database, queuePrefix) })
    running.push(mason)
    const [, url = ''] = await mason.says(/listens on (http:\S+)/)
    return { mason, url }
  }
  const run = (database: string, args: string[], queuePrefix?: string) =>
    runCli(args, { cwd, env: settings(database, queuePrefix) })
  const stop = async (...masons: Running[]) => {
    for (const mason of masons) mason.kill('SIGTERM')
    await Promise.all(masons.map(({ ended }) => ended))
  }
  const owner = () => redis.get(`${prefix}:mason-database`)
  const countRuns = async (url: string, user: string): Promise<number> =>
    ((await (await fetch(`${url}/v1/runs?user_id=${user}`)).json()) as { data: unknown[] }).data.length
  const submit = (user_id: string, queuePrefix = prefix) =>
    submitRun({ prompt: 'What is 10% of 300?', user_id }, { redisUrl: REDIS_URL, queuePrefix })

  beforeAll(async () => {
    cwd = await mkdtemp(join(tmpdir(), 'mason-owner-'))
    redis = new Redis(REDIS_URL)
    for (let nth = 0; nth < 2; nth++) {
      const backend = await openOwnServers()
      backends.push(backend)
      const database = await backend.openDatabase()
      const id = await ensureDatabaseId(database)
      expect(await ensureDatabaseId(database)).toBe(id)
      ids[backend.config.queuePrefix] = id
      await database.close()
    }
    ;[own = '', other = ''] = Object.keys(ids)
    expect(ids[own]).not.toBe(ids[other])
  })
  afterAll(async () => {
    await stop(...running)
    for (const backend of backends) await backend.drop()
    await dropKeys(REDIS_URL, prefix)
    await redis.quit()
    await rm(cwd, { recursive: true, force: true })
  })

  let first: Awaited<ReturnType<typeof start>>

  test('a process whose database is not that of the prefix refuses to start and names both and the remedy', async () => {
    first = await start(own)
    expect(await owner()).toBe(ids[own])
    for (const args of inGate(2, [['serve'], ['worker'], ['serve', '--role', 'api']])) {
      const { code, stderr } = await run(other, args)
      expect([args, code, stderr]).toEqual([args, 2, expect.stringContaining(ids[own] ?? '')])
      expect(stderr).toContain(ids[other])
      expect(stderr).toContain('mason queue claim')
      expect(stderr).not.toMatch(/^\s+at /m)
    }
    expect(await owner()).toBe(ids[own])
  })

  testInAll('a memory worker whose database is not that of the prefix refuses to start', async () => {
    const script = 'workers/memory.worker.ts'
    const { code, stderr } = await runCli([], { cwd, env: settings(other), script })
    expect([code, stderr]).toEqual([2, expect.stringContaining('mason queue claim')])
    expect(await owner()).toBe(ids[own])
  })

  test('the doctor says whose prefix it is, and changes nothing', async () => {
    const free = await askDoctor(settings(own, own))
    expect(free.stdout).toMatch(new RegExp(`ok +queue +prefix ${own}, which the first start claims`))
    expect(free.stdout).toMatch(
      /warn +registry +the built-in offline model plans all runs.*\n +-> set OPENAI_API_KEY/,
    )
    expect(await redis.get(`${own}:mason-database`)).toBeNull()
    const mine = await askDoctor(settings(own))
    expect(mine.stdout).toContain(`prefix ${prefix} belongs to this database, ${ids[own]}`)
    const theirs = await askDoctor(settings(other))
    expect(theirs.stdout).toMatch(/ERROR +queue +the queue prefix/)
    expect(theirs.stdout).toContain('mason queue claim')
    expect(theirs.code).toBe(1)
  })

  test('Masons with a prefix each take only their own jobs', async () => {
    const second = await start(other, other)
    await Promise.all([submit('first'), submit('second', other)])
    await until(
      'both are admitted',
      async () =>
        (await countRuns(first.url, 'first')) === 1 && (await countRuns(second.url, 'second')) === 1,
    )
    expect([await countRuns(first.url, 'second'), await countRuns(second.url, 'first')]).toEqual([0, 0])
    await stop(second.mason)
  })

  test('the queue that is claimed serves the new database, and the old process takes no more jobs', async () => {
    const { code, stdout } = await run(other, ['queue', 'claim'])
    const waited = waitedFor()
    expect([code, stdout]).toEqual([0, expect.stringContaining(`this replaces ${ids[own]}`)])
    expect(await owner()).toBe(ids[other])
    // the old process may rely for a second on what it has read
    await until('a second has passed since the claim', () => waited(1_000))
    await submit('claimed')
    const after = await start(other)
    await until('the new database has the run', async () => (await countRuns(after.url, 'claimed')) === 1)
    expect(await countRuns(first.url, 'claimed')).toBe(0)
    await stop(first.mason, after.mason)
    const refused = await run(own, ['worker'])
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining(ids[other] ?? '')])
  })

  testInAll('the queue that is claimed again is as it was', async () => {
    const { code, stdout } = await run(other, ['queue', 'claim'])
    expect([code, stdout]).toEqual([0, expect.stringContaining('nothing has changed')])
    expect(await owner()).toBe(ids[other])
  })

  test('a claim without a queue to claim is refused with the remedy', async () => {
    const embedded = await runCli(['queue', 'claim'], { cwd, env: {} })
    expect([embedded.code, embedded.stderr]).toEqual([2, expect.stringContaining('set DATABASE_URL')])
  })

  testInAll('a claim while Redis is down is refused with the remedy', async () => {
    const env = { ...settings(own), REDIS_URL: 'redis://127.0.0.1:1' }
    const { code, stderr } = await runCli(['queue', 'claim'], { cwd, env })
    expect([code, stderr]).toEqual([1, expect.stringContaining('start Redis there')])
  })
})
