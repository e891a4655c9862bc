import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { resolveLocalPath } from '../../../src/files/origins/file-origin.ts'
import { isSharedRoot, toFixedRoot } from '../../../src/infra/config/storage.ts'
import { openFolder } from '../../support/file-samples.ts'

const { signal } = new AbortController()

test('{business} in the root keeps businesses apart, whatever a path, a link or an id says', async () => {
  await using folder = await openFolder()
  const at = (...names: string[]): string => join(folder.path, ...names)
  for (const business of ['b1', 'b2', 'b2-more']) {
    await mkdir(at(business, 'in', 'deep'), { recursive: true })
    await writeFile(at(business, 'in', 'a.csv'), business)
  }
  await writeFile(at('a.csv'), 'no user')
  await symlink(at('b2'), at('b1', 'in', 'folder'))
  await symlink(at('b2', 'in', 'a.csv'), at('b1', 'in', 'link.csv'))
  await symlink('../../b2/in/a.csv', at('b1', 'in', 'relative.csv'))
  await symlink(at('b1', 'in', 'a.csv'), at('b1', 'in', 'deep', 'own.csv'))
  const root = at('{business}', 'in')
  const own = await resolveLocalPath(root, 'b1', 'a.csv', signal)
  expect(own.endsWith('/b1/in/a.csv')).toBe(true)
  // what stays inside is found whatever way it is written
  for (const path of ['/a.csv', './a.csv', 'deep/../a.csv', 'deep/own.csv'])
    expect(await resolveLocalPath(root, 'b1', path, signal)).toBe(own)
  const others = [
    ...['../../b2/in/a.csv', '..', '../../a.csv', at('b2', 'in', 'a.csv'), 'folder/in/a.csv', 'link.csv'],
    ...[
      'relative.csv',
      '../in/../../b2/in/a.csv',
      '{business}/../../b2/in/a.csv',
      'deep',
      '%2e%2e/%2e%2e/a.csv',
    ],
  ]
  for (const path of others)
    await expect(resolveLocalPath(root, 'b1', path, signal), path).rejects.toThrow('it is not there')
  for (const id of ['..', '.', '', 'b2/../b1', '../b1', '{business}', 'none', 'b\u0000'])
    await expect(resolveLocalPath(root, id, 'a.csv', signal), id).rejects.toThrow('it is not there')
})

test('a root folder is checked up to its {business} part', () => {
  expect(toFixedRoot('/srv/files')).toBe('/srv/files')
  expect(toFixedRoot('/srv/files/{business}')).toBe('/srv/files')
  expect(toFixedRoot('/srv/{business}/files')).toBe('/srv')
  expect(toFixedRoot('/srv/b-{business}')).toBe('/srv')
  expect([null, '/srv', '/srv/{business}'].map(isSharedRoot)).toEqual([false, true, false])
})
