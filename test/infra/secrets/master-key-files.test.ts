import { link, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { beginKeyRotation, endKeyRotation } from '../../../src/app/cli/rotated-key-files.ts'
import { openMasterKeys } from '../../../src/infra/secrets/master-key-files.ts'

let dataDir: string
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'mason-keys-'))
})
afterEach(() => rm(dataDir, { recursive: true, force: true }))

const configOf = (masterKey: string | null = null, previousMasterKeys: readonly string[] = []) => ({
  database: { kind: 'embedded', dataDir } as const,
  masterKey,
  previousMasterKeys,
})
const nameNow = async (): Promise<string> => (await openMasterKeys(configOf())).current().name
const canRead = async (name: string): Promise<boolean> =>
  (await openMasterKeys(configOf())).find(name) !== null
const [one, two] = [1, 2].map((byte) => Buffer.alloc(32, byte).toString('base64')) as [string, string]

describe('the master key in a data folder', () => {
  test('is followed by a new one, the one before readable until the end', async () => {
    const first = await nameNow()
    expect(await beginKeyRotation(dataDir)).toEqual({ resumed: false })
    const second = await nameNow()
    expect(second).not.toBe(first)
    expect(await canRead(first)).toBe(true)
    expect((await readdir(dataDir)).sort()).toEqual(['master-key', 'master-key.previous'])
    for (const name of await readdir(dataDir))
      expect((await stat(join(dataDir, name))).mode & 0o777).toBe(0o600)
    await endKeyRotation(dataDir)
    expect([await nameNow(), await canRead(first)]).toEqual([second, false])
    expect(await readdir(dataDir)).toEqual(['master-key'])
    await endKeyRotation(dataDir)
  })

  test('is never lost by an interrupted rotation, which is resumed', async () => {
    const first = await nameNow()
    // after the first step
    await link(join(dataDir, 'master-key'), join(dataDir, 'master-key.previous'))
    expect(await nameNow()).toBe(first)
    // before the draft of the second took its place
    await writeFile(join(dataDir, 'master-key.77.0badcafe'), 'half')
    expect(await nameNow()).toBe(first)
    expect(await beginKeyRotation(dataDir)).toEqual({ resumed: false })
    const second = await nameNow()
    expect([second === first, await canRead(first)]).toEqual([false, true])
    // after the second, any number of times
    for (let again = 0; again < 3; again++) {
      expect(await beginKeyRotation(dataDir)).toEqual({ resumed: true })
      expect([await nameNow(), await canRead(first)]).toEqual([second, true])
    }
    // its end leaves no draft, which has a key in it
    await endKeyRotation(dataDir)
    expect(await readdir(dataDir)).toEqual(['master-key'])
  })

  test('reads rows also where the settings bring another, which is not written down', async () => {
    const first = await nameNow()
    const text = await readFile(join(dataDir, 'master-key'), 'utf8')
    const keys = await openMasterKeys(configOf(one, [two]))
    expect(keys.current().key.export()).toEqual(Buffer.alloc(32, 1))
    for (const name of [first, (await openMasterKeys(configOf(two))).current().name])
      expect(keys.find(name)?.name).toBe(name)
    expect(await readFile(join(dataDir, 'master-key'), 'utf8')).toBe(text)
  })

  test('that is damaged is reported, the previous one too', async () => {
    await writeFile(join(dataDir, 'master-key.previous'), 'half')
    await expect(openMasterKeys(configOf())).rejects.toMatchObject({
      code: 'invalid_settings',
      message: expect.stringContaining('master-key.previous is damaged'),
    })
  })
})

describe('without a data folder', () => {
  test('master keys are those of the settings, and none is made up for a database that others share', async () => {
    const served = { database: { kind: 'postgres', url: 'postgres://h/x' } as const, previousMasterKeys: [] }
    const keys = await openMasterKeys({ ...served, masterKey: one })
    expect(keys.current().key.export()).toEqual(Buffer.alloc(32, 1))
    const none = await openMasterKeys({ ...served, masterKey: null })
    expect(() => none.current()).toThrow(/no master key/)
  })

  test('a database in memory gets one of its own', async () => {
    const memory = { database: { kind: 'memory' } as const, masterKey: null, previousMasterKeys: [] }
    const [a, b] = [await openMasterKeys(memory), await openMasterKeys(memory)]
    expect(a.current().name).not.toBe(b.current().name)
  })
})
