import { spawn } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { endLeases } from '../../../src/engine/runs/leases.ts'
import { openEmbeddedDatabase } from '../../../src/infra/database/embedded.ts'
import { lockFolder } from '../../../src/infra/database/folder-lock.ts'
import { appendAction, claim, entry, mustClaim, rowOf, submitTo } from '../../support/runs.ts'

let folder: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mason-lock-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const lockFile = () => join(folder, 'lock')

/** The id of a process that is no more. */
const deadPid = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const child = spawn('true')
    child.once('error', reject).once('exit', () => resolve(child.pid ?? 0))
  })

describe('the lock on a data folder', () => {
  test('keeps a second one out, naming the process and what to do', async () => {
    const unlock = await lockFolder(folder)
    const error = await lockFolder(folder).catch((reason: unknown) => reason)
    expect(error).toMatchObject({
      code: 'data_dir_locked',
      message: `${folder} is in use by process ${process.pid}`,
      remedy: expect.stringContaining('DATABASE_URL'),
    })
    await unlock()
    expect(await readdir(folder)).toEqual([])
    await (await lockFolder(folder))()
  })

  test('on one that cannot be created is refused at once, with what to do', async () => {
    // Node's own way to create folders never ends there
    for (const path of ['/proc/nowhere/mason', '/dev/null/mason'])
      expect(await lockFolder(path).catch((reason: unknown) => reason)).toMatchObject({
        code: 'invalid_settings',
        message: expect.stringContaining(`DATA_DIR: the folder ${path} cannot be created: E`),
        remedy: expect.stringContaining('set DATA_DIR to a folder'),
      })
    const deep = join(folder, 'a', 'b', 'c')
    await (await lockFolder(deep))()
    expect(await readdir(deep)).toEqual([])
  })

  test('of a process that is gone is taken over, also when its id is in use again', async () => {
    for (const owner of [`${await deadPid()} 12345\n`, `${process.pid} 1\n`, 'rubbish', '', '-1 0']) {
      await writeFile(lockFile(), owner)
      const unlock = await lockFolder(folder)
      expect(await readFile(lockFile(), 'utf8')).toMatch(new RegExp(`^${process.pid} \\d+\n$`))
      await unlock()
    }
  })

  test('that was left behind is taken over by exactly one of many concurrent processes', async () => {
    for (let round = 0; round < 20; round++) {
      await writeFile(lockFile(), `${await deadPid()} 1\n`)
      if (round % 2) await writeFile(`${lockFile()}.clearing`, `${await deadPid()} 1\n`)
      const taken = await Promise.allSettled(Array.from({ length: 10 }, () => lockFolder(folder)))
      const unlocks = taken.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
      expect(unlocks).toHaveLength(1)
      await unlocks[0]?.()
      expect(await readdir(folder)).toEqual([])
    }
  })
})

describe('the embedded database', () => {
  test('is refused a second time on one folder, and to be had again once it is closed', async () => {
    const first = await openEmbeddedDatabase({ dataDir: folder })
    await expect(openEmbeddedDatabase({ dataDir: folder })).rejects.toMatchObject({ code: 'data_dir_locked' })
    expect((await first.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
    await first.close()
    await (await openEmbeddedDatabase({ dataDir: folder })).close()
  })

  test('opened after an unclean end frees the runs that were at work, which go on from their last action', async () => {
    const first = await openEmbeddedDatabase({ dataDir: folder })
    const { id } = await submitTo(first, 'a')
    const before = await mustClaim(first, 'died', 3_600_000)
    await appendAction(first, before, entry(1))
    expect(await claim(first)).toBeNull()
    await first.close()
    await writeFile(lockFile(), `${await deadPid()} 1\n`)

    const second = await openEmbeddedDatabase({ dataDir: folder })
    await endLeases(second)
    const after = await mustClaim(second)
    expect(after).toMatchObject({ run_id: id, epoch: 2, next_seq: 2, stalls: 1 })
    await appendAction(second, after, entry(2))
    expect(await rowOf(second, id)).toMatchObject({ next_seq: 3, status: 'running' })
    await second.close()
  })
})
