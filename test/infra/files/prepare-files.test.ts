import { expect, test } from 'vitest'
import { prepareFiles } from '../../../src/infra/files/prepare-files.ts'
import type { Kept } from '../../../src/infra/files/prepared-cache.ts'

test('archives in archives open a bounded number of files in all, and say so', async () => {
  const blob = 'a'.repeat(64)
  const packed = (ending: string): Kept => ({
    ...{ format: 'zip', readable: true, facts: {}, notes: [] },
    unpacked: Array.from({ length: 100 }, (_, n) => ({ name: `${n}${ending}`, blob })),
  })
  let opened = 0
  // all of them were opened before, so that no process is needed
  const found = (openedAs: string): Kept => {
    opened++
    if (openedAs.startsWith('.zip')) return packed(opened === 1 ? '.zip' : '.bin')
    return { format: 'binary', readable: false, facts: {}, notes: ['unknown'] }
  }
  const unasked = (): never => {
    throw new Error('nothing is asked')
  }
  const prepared = await prepareFiles(
    {
      cache: { find: async (_hash, openedAs) => found(openedAs), keep: unasked },
      process: { ask: unasked, [Symbol.asyncDispose]: async () => {} },
      place: () => '/nowhere',
      open: async () => ({ path: '/nowhere', bytes: 1, sha256: blob }),
      keepBlob: unasked,
    },
    [{ name: 'outer.zip', type: '', local_path: `blob:${blob}`, mapping: null }],
    [],
    new AbortController().signal,
  )
  expect(prepared.origin_files).toHaveLength(200)
  const notesOf = (name: string) => prepared.other_files[name]?.notes
  expect(notesOf('outer.zip')).toEqual([])
  expect(notesOf('outer.zip/0.zip')).toEqual([])
  expect(notesOf('outer.zip/1.zip')?.[0]).toMatch(/only 0 of its files are opened/)
})
