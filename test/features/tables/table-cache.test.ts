import { readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createTableCache } from '../../../src/features/tables/query-tables.ts'
import { openFolder } from '../../support/file-samples.ts'

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
