import { execFile } from 'node:child_process'
import { watch } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Database } from '../../src/infra/database/database.ts'
import { openDatabase } from '../../src/infra/database/open-database.ts'
import { silentLog } from '../../src/infra/lib/silent-log.ts'
import { openSealedText, type SealedText, sealText } from '../../src/infra/secrets/envelope.ts'
import { openMasterKeys } from '../../src/infra/secrets/master-key-files.ts'
import { createMasterKeys, type MasterKeys } from '../../src/infra/secrets/master-keys.ts'
import { baseConfig } from '../support/backend.ts'
import { runCli, startCli } from '../support/cli.ts'
import { openOwnServers, serversMissing } from '../support/processes.ts'
import { testInAll } from '../support/tier.ts'

const placeOf = (row_id: string) => ({ purpose: 'secret', vendor_id: 'ven_1', row_id }) as const
const secretOf = (id: string): string => `sk-nightjar-${id}`

const addKeys = async (database: Database, keys: MasterKeys, count: number): Promise<void> => {
  await database.query(`INSERT INTO vendors (vendor_id, name, status) VALUES ('ven_1', 'one', 'active')`)
  for (let n = 0; n < count; n++) {
    const id = `key_${n}`
    const { master_key, wrapped_key, sealed } = sealText(secretOf(id), placeOf(id), keys)
    await database.query(
      `INSERT INTO vendor_keys (key_id, vendor_id, label, master_key, wrapped_key, sealed_secret, last_four, status)
       VALUES ($1, 'ven_1', $1, $2, $3, $4, 'xxxx', 'active')`,
      [id, master_key, wrapped_key, sealed],
    )
  }
}
/** Opens every row, and tells under which master keys they are. */
const readKeys = async (
  database: Database,
  keys: MasterKeys,
): Promise<{ count: number; under: string[] }> => {
  const { rows } = await database.query<SealedText & { key_id: string }>(
    'SELECT key_id, master_key, wrapped_key, sealed_secret AS sealed FROM vendor_keys',
  )
  for (const row of rows)
    expect(openSealedText(row, placeOf(row.key_id), keys).reveal()).toBe(secretOf(row.key_id))
  return { count: rows.length, under: [...new Set(rows.map(({ master_key }) => master_key))] }
}

describe('mason keys rotate, embedded', () => {
  let root: string
  let cwd: string
  let round = 0
  const configOf = (dataDir: string) => ({
    ...baseConfig,
    database: { kind: 'embedded', dataDir } as const,
    redisUrl: null,
    masterKey: null,
  })
  const lookInto = async <T>(
    folder: string,
    work: (database: Database, keys: MasterKeys) => Promise<T>,
  ): Promise<T> => {
    const database = await openDatabase(configOf(folder), silentLog)
    try {
      return await work(database, await openMasterKeys(configOf(folder)))
    } finally {
      await database.close()
    }
  }

  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'mason-keys-'))
    await lookInto(join(root, 'template'), (database, keys) => addKeys(database, keys, 40))
  })
  afterAll(() => rm(root, { recursive: true, force: true }))
  beforeEach(async () => {
    cwd = join(root, String(++round))
    await mkdir(cwd)
    // the program copies these 900 files in a quarter of the time
    await promisify(execFile)('cp', ['-r', join(root, 'template'), join(cwd, '.mason')])
  })

  test('puts all secrets under a new master key, says so, and leaves one file that only its owner can read', async () => {
    const folder = join(cwd, '.mason')
    const before = (await openMasterKeys(configOf(folder))).current().name
    const { code, stdout, stderr } = await runCli(['keys', 'rotate'], { cwd })
    expect([code, stderr]).toEqual([0, ''])
    const now = (await openMasterKeys(configOf(folder))).current().name
    expect(stdout).toContain(`created a new master key, ${now}`)
    expect(stdout).toContain('40 rows rewrapped')
    expect(stdout).not.toContain('nightjar')
    expect(now).not.toBe(before)
    expect((await readdir(folder)).filter((name) => name.startsWith('master-key'))).toEqual(['master-key'])
    expect((await stat(join(folder, 'master-key'))).mode & 0o777).toBe(0o600)
    expect(await lookInto(folder, readKeys)).toEqual({ count: 40, under: [now] })
  })

  test('killed in the middle leaves every row readable, and goes on where it was', async () => {
    const folder = join(cwd, '.mason')
    const isKilled = async (): Promise<boolean> => {
      const running = startCli(['keys', 'rotate'], { cwd })
      const news = watch(folder)
      const begun = new Promise<void>((resolve) => {
        news.on('change', (_event, name) => name === 'master-key.previous' && resolve())
      })
      await Promise.race([begun, running.ended])
      news.close()
      running.kill('SIGKILL')
      return (await running.ended).signal === 'SIGKILL'
    }
    // it may be done before this process hears that it has begun
    for (let tries = 0; !(await isKilled()); tries++) expect(tries).toBeLessThan(20)
    expect((await lookInto(folder, readKeys)).count).toBe(40)
    // once more from where it was, however far that is
    const again = await runCli(['keys', 'rotate'], { cwd })
    expect([again.code, again.stderr]).toEqual([0, ''])
    const now = (await openMasterKeys(configOf(folder))).current().name
    expect(await lookInto(folder, readKeys)).toEqual({ count: 40, under: [now] })
    expect((await readdir(folder)).filter((name) => name.startsWith('master-key'))).toEqual(['master-key'])
  })

  test('keeps the key before while a row cannot be read, and names the row', async () => {
    const folder = join(cwd, '.mason')
    await lookInto(folder, (database) =>
      database.query(`UPDATE vendor_keys SET master_key = '0123456789abcdef' WHERE key_id = 'key_7'`),
    )
    const { code, stdout } = await runCli(['keys', 'rotate'], { cwd })
    expect(code).toBe(1)
    expect(stdout).toMatch(
      /39 rows rewrapped\nERROR {2}.*key_7 .*0123456789abcdef[\s\S]*-> .*keys\/key_7\/rotate/,
    )
    expect(await readdir(folder)).toContain('master-key.previous')
    await lookInto(folder, (database) => database.query(`DELETE FROM vendor_keys WHERE key_id = 'key_7'`))
    const again = await runCli(['keys', 'rotate'], { cwd })
    expect(again).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('continued an interrupted rotation'),
    })
    expect(await readdir(folder)).not.toContain('master-key.previous')
  })

  testInAll('with a master key in the settings brings all under that', async () => {
    const MASON_MASTER_KEY = Buffer.alloc(32, 9).toString('base64')
    const { code, stdout } = await runCli(['keys', 'rotate'], { cwd, env: { MASON_MASTER_KEY } })
    expect(code).toBe(0)
    const { name } = createMasterKeys(MASON_MASTER_KEY).current()
    expect(stdout).toContain(`the master key of the settings is ${name}`)
    expect(stdout).not.toContain(MASON_MASTER_KEY)
    expect(
      await lookInto(join(cwd, '.mason'), (database) =>
        readKeys(database, createMasterKeys(MASON_MASTER_KEY)),
      ),
    ).toEqual({ count: 40, under: [name] })
  })

  testInAll('without a subcommand is a usage error', async () => {
    const { code, stderr } = await runCli(['keys'], { cwd })
    expect([code, stderr]).toEqual([2, expect.stringContaining('rotate')])
  })
})

describe.skipIf(serversMissing)('mason keys rotate, served', () => {
  const [before, after] = [1, 2].map((byte) => Buffer.alloc(32, byte).toString('base64')) as [string, string]

  test('says the steps, then rewraps while others read, then says what may go', async () => {
    const servers = await openOwnServers()
    const database = await servers.openDatabase()
    try {
      if (servers.config.database.kind !== 'postgres') throw new Error('no server')
      const env = { DATABASE_URL: servers.config.database.url, MASON_MASTER_KEY: before }
      const rotate = (more: Record<string, string>) =>
        runCli(['keys', 'rotate'], { cwd: tmpdir(), env: { ...env, ...more } })
      await addKeys(database, createMasterKeys(before), 20)
      const steps = await rotate({})
      expect(steps).toMatchObject({ code: 0, stderr: '' })
      expect(steps.stdout).toMatch(
        /no row needed rewrapping[\s\S]*1\.[\s\S]*MASON_PREVIOUS_MASTER_KEYS[\s\S]*2\.[\s\S]*3\./,
      )

      const lost = await rotate({ MASON_MASTER_KEY: after })
      expect(lost.code).toBe(1)
      expect(lost.stdout.match(/ERROR/g)).toHaveLength(20)

      const keys = createMasterKeys(after, [before])
      let going = true
      const reading = (async () => {
        while (going) await readKeys(database, keys)
      })()
      const done = await rotate({ MASON_MASTER_KEY: after, MASON_PREVIOUS_MASTER_KEYS: before })
      going = false
      await reading
      expect(done).toMatchObject({ code: 0, stderr: '' })
      expect(done.stdout).toMatch(/20 rows rewrapped[\s\S]*remove MASON_PREVIOUS_MASTER_KEYS/)
      expect(await readKeys(database, createMasterKeys(after))).toMatchObject({ count: 20 })
      for (const { stdout } of [steps, lost, done]) expect(stdout).not.toMatch(/nightjar|AQEBAQ|AgICAg/)
    } finally {
      await database.close()
      await servers.drop()
    }
  })

  testInAll('without a master key is an error of the settings', async () => {
    const env = { DATABASE_URL: 'postgres://h/x' }
    const { code, stderr } = await runCli(['keys', 'rotate'], { cwd: tmpdir(), env })
    expect([code, stderr]).toEqual([2, expect.stringContaining('MASON_MASTER_KEY is missing')])
  })
})
