import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { createTableCache } from '../../src/files/query-tables.ts'
import { openTemporaryRoot } from '../../src/files/temporary-folders.ts'
import { openFolder } from '../support/file-samples.ts'

afterEach(() => void vi.unstubAllEnvs())

/** Another process that has a folder here, as a worker has, until it is killed. */
const startOwner = async (folder: string): Promise<ChildProcess> => {
  await mkdir(folder, { mode: 0o700 })
  await writeFile(join(folder, 'f0'), 'left')
  const program = `require('node:net').createServer().listen(${JSON.stringify(join(folder, 'alive'))}, () => console.log('up'))`
  const owner = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(owner.stdout as NonNullable<ChildProcess['stdout']>, 'data')
  return owner
}

test('the sweep removes folders of dead processes, and keeps those of living ones, frozen or not, and foreign folders', async () => {
  await using temporary = await openFolder()
  vi.stubEnv('TMPDIR', temporary.path)
  const at = (name: string): string => join(temporary.path, name)
  const [dead, frozen] = await Promise.all(
    ['mason-files-dead', 'mason-files-frozen'].map((name) => startOwner(at(name))),
  )
  await using mine = openTemporaryRoot()
  const here = await mine.folder()
  expect((await stat(here)).mode & 0o077).toBe(0)
  await mkdir(at('mason-files-new'))
  await mkdir(at('other'))
  try {
    frozen?.kill('SIGSTOP')
    dead?.kill('SIGKILL')
    await once(dead as ChildProcess, 'close')
    await using second = openTemporaryRoot()
    await second.sweep()
    expect(await readdir(temporary.path)).not.toContain('mason-files-dead')
    expect(await readdir(temporary.path)).toHaveLength(4)
    expect(await readdir(here)).toEqual(['alive'])
  } finally {
    frozen?.kill('SIGKILL')
    await once(frozen as ChildProcess, 'close')
  }
})

test('the scratch folder is made again when it was removed, and is gone at the end', async () => {
  await using temporary = await openFolder()
  vi.stubEnv('TMPDIR', temporary.path)
  const scratch = openTemporaryRoot()
  const [first, same] = await Promise.all([scratch.folder(), scratch.folder()])
  expect(same).toBe(first)
  await rm(first, { recursive: true })
  const [second, also] = await Promise.all([scratch.folder(), scratch.folder()])
  expect(second).not.toBe(first)
  expect(also).toBe(second)
  await scratch[Symbol.asyncDispose]()
  expect(await readdir(temporary.path)).toEqual([])
})

test('loaded tables that are no longer queried are unloaded', async () => {
  await using temporary = await openFolder()
  const cache = createTableCache(async () => temporary.path, 250, 1)
  const place = await cache.reserve('a')
  await writeFile(place.path, 'x')
  await cache.release(place)
  await expect.poll(() => readdir(join(temporary.path, 'tables'))).toEqual([])
})

test('loaded tables are bounded by their bytes; the least recently queried go first', async () => {
  await using temporary = await openFolder()
  const cache = createTableCache(async () => temporary.path, 250)
  const ask = async (key: string, bytes: number | null = null): Promise<boolean> => {
    const place = await cache.reserve(key)
    const hit = await stat(place.path).then(
      () => true,
      () => false,
    )
    if (bytes !== null) await writeFile(place.path, 'x'.repeat(bytes))
    await writeFile(place.draft, 'half written by a process that was ended')
    await cache.release(place)
    return hit
  }
  const there = async (): Promise<string[]> => (await readdir(join(temporary.path, 'tables'))).sort()
  await ask('a', 100)
  await ask('b', 100)
  expect(await ask('a')).toBe(true)
  await ask('c', 100)
  expect(await there()).toEqual(['a.sqlite', 'c.sqlite'])
  expect(await ask('b')).toBe(false)
  await ask('huge', 300)
  expect(await there()).toEqual([])
  await ask('d', 100)
  expect(await there()).toEqual(['d.sqlite'])
})
