import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { type PrepareServices, prepareFiles } from '../../src/files/prepare-files.ts'
import type { PreparedContents } from '../../src/files/prepared-cache.ts'
import { toTableName } from '../../src/state/files/table-names.ts'
import { openFolder } from '../support/file-samples.ts'

const blobOf = (letter: string): string => letter.repeat(64)
const { signal } = new AbortController()
const unasked = (): never => {
  throw new Error('nothing is asked')
}
const somewhere = { path: '/nowhere', bytes: 1, sha256: blobOf('a'), [Symbol.asyncDispose]: async () => {} }

test('nested archives open a bounded number of files in all, and a note says so', async () => {
  const blob = blobOf('a')
  const packed = (ending: string): PreparedContents => ({
    ...{ format: 'zip', readable: true, facts: {}, notes: [] },
    unpacked: Array.from({ length: 100 }, (_, n) => ({ name: `${n}${ending}`, blob })),
  })
  let opened = 0
  // all of them were opened before, so that no process is needed
  const found = (openedAs: string): PreparedContents => {
    opened++
    if (openedAs.startsWith('.zip')) return packed(opened === 1 ? '.zip' : '.bin')
    return { format: 'binary', readable: false, facts: {}, notes: ['unknown'] }
  }
  const prepared = await prepareFiles(
    {
      cache: { find: async (_hash, openedAs) => found(openedAs), save: unasked },
      process: { run: unasked, [Symbol.asyncDispose]: async () => {} },
      newPath: () => '/nowhere',
      openFile: async () => somewhere,
      storeFile: unasked,
      reportFailure: unasked,
    },
    [{ name: 'outer.zip', type: '', local_path: `blob:${blob}`, mapping: null }],
    { tables: [], triedFiles: new Set() },
    signal,
  )
  expect(prepared.origin_files).toHaveLength(200)
  const notesOf = (name: string) => prepared.other_files[name]?.notes
  expect(notesOf('outer.zip')).toEqual([])
  expect(notesOf('outer.zip/0.zip')).toEqual([])
  expect(notesOf('outer.zip/1.zip')?.[0]).toMatch(/only 0 of its files are opened/)
})

const text: PreparedContents = { format: 'text', readable: true, facts: {}, notes: [] }
const file = (name: string, local_path: string) => ({ name, type: '', local_path, mapping: null })

test('files and archive entries with the names of what every object has are prepared like any other', async () => {
  const odd = ['constructor', 'toString', 'hasOwnProperty', 'valueOf']
  const packed = {
    ...text,
    ...{ format: 'zip', unpacked: ['__proto__', ...odd].map((name) => ({ name, blob: blobOf('c') })) },
  }
  const { other_files } = await prepareFiles(
    {
      cache: {
        find: async (_hash, openedAs) => (openedAs.startsWith('.zip') ? packed : text),
        save: unasked,
      },
      process: { run: unasked, [Symbol.asyncDispose]: async () => {} },
      newPath: () => '/nowhere',
      openFile: async () => somewhere,
      storeFile: unasked,
      reportFailure: unasked,
    },
    [...odd, 'a.zip'].map((name) => file(name, `blob:${blobOf('b')}`)),
    { tables: [], triedFiles: new Set() },
    signal,
  )
  expect(Object.keys(other_files).sort()).toEqual(
    [...odd, 'a.zip', 'a.zip/__proto__', ...odd.map((name) => `a.zip/${name}`)].sort(),
  )
})

afterEach(() => void vi.useRealTimers())

test('files that time did not suffice for have a note and can be retried; the others are prepared', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const asked: string[] = []
  const preparing: PrepareServices = {
    cache: { find: async () => text, save: unasked },
    process: { run: unasked, [Symbol.asyncDispose]: async () => {} },
    newPath: () => '/nowhere',
    // a server that never answers
    openFile({ name, local_path }, until) {
      asked.push(name)
      if (!local_path.startsWith('url:')) return Promise.resolve(somewhere)
      void vi.advanceTimersByTimeAsync(name === 'new' ? 5 : 1)
      return new Promise((_resolve, reject) => {
        until.addEventListener('abort', () => reject(until.reason))
      })
    },
    storeFile: unasked,
    reportFailure: unasked,
    budget: { fetch: 5, open: 60_000, retry: 1 },
  }
  const files = [
    file('new', 'url:http://a.example/1'),
    file('next', 'url:http://a.example/2'),
    file('upload', `blob:${blobOf('b')}`),
    file('slow again', 'url:http://a.example/3'),
    file('image again', `blob:${blobOf('c')}`),
  ]
  const before = { tables: [], triedFiles: new Set(['slow again', 'image again']) }
  const { other_files } = await prepareFiles(preparing, files, before, signal)
  // what has its bytes here is never kept out by what has not
  expect(asked).toEqual(['image again', 'slow again', 'new', 'upload'])
  const none = { readable: false, tries: 1, notes: ['there was no time for it in this turn'] }
  expect(other_files).toMatchObject({
    ...{ new: none, next: none, 'slow again': none },
    ...{ upload: { readable: true }, 'image again': { readable: true } },
  })
  const control = new AbortController()
  const cancelled = prepareFiles(preparing, files.slice(0, 1), before, control.signal)
  control.abort(new Error('cancelled'))
  await expect(cancelled).rejects.toThrow('cancelled')
})

test('an error of a reader is a note that Mason could not read the format, is logged and is not remembered', async () => {
  await using folder = await openFolder()
  const failures: string[] = []
  const replies = [
    { ok: false, kind: 'failed', format: 'pdf', message: 'TypeError: of the reader' },
    { ok: false, kind: 'crashed' },
  ] as const
  let count = 0
  const { other_files } = await prepareFiles(
    {
      cache: { find: async () => null, save: unasked },
      process: { run: async () => replies[count++] ?? unasked(), [Symbol.asyncDispose]: async () => {} },
      newPath: () => join(folder.path, String(count)),
      openFile: async () => somewhere,
      storeFile: unasked,
      reportFailure: (format, error) => failures.push(`${format}: ${error}`),
    },
    [file('a.pdf', `blob:${blobOf('a')}`), file('b.pdf', `blob:${blobOf('b')}`)],
    { tables: [], triedFiles: new Set() },
    signal,
  )
  for (const name of ['a.pdf', 'b.pdf'])
    expect(other_files[name]).toMatchObject({
      readable: false,
      notes: [expect.stringMatching(/^Mason could not read this format; save it in another one/)],
    })
  expect(failures).toEqual(['pdf: TypeError: of the reader', 'unknown: crashed'])
})

test('the images of a scanned PDF inside an archive are opened, as they are no archives', async () => {
  const blob = blobOf('a')
  const contents: Record<string, PreparedContents> = {
    '.zip': { ...text, format: 'zip', unpacked: [{ name: 'scan.pdf', blob }] },
    '.pdf': { ...text, format: 'pdf', unpacked: [{ name: 'page 1.png', blob }] },
    '.png': { ...text, format: 'image' },
  }
  const { other_files } = await prepareFiles(
    {
      cache: {
        find: async (_hash, openedAs) => contents[openedAs.split(' ')[0] ?? ''] ?? null,
        save: unasked,
      },
      process: { run: unasked, [Symbol.asyncDispose]: async () => {} },
      newPath: () => '/nowhere',
      openFile: async () => somewhere,
      storeFile: unasked,
      reportFailure: unasked,
    },
    [file('a.zip', `blob:${blob}`)],
    { tables: [], triedFiles: new Set() },
    signal,
  )
  expect(other_files['a.zip/scan.pdf/page 1.png']).toMatchObject({
    format: 'image',
    readable: true,
    notes: [],
  })
})

test('what one step adds to the state is limited, also in thousands of tables of one name', async () => {
  const column = {
    name: 'x'.repeat(20_000),
    type: 'text',
    nulls: 0,
    distinct: 0,
    min: null,
    max: null,
    mean: null,
  }
  const tables = Array.from({ length: 20 }, (_, at) => ({
    ...{ part: `${'x'.repeat(70)}${at}`, rows: 1, columns: [{ ...column, samples: [] }], notes: [] },
  })) as NonNullable<PreparedContents['tables']>
  const preparing: PrepareServices = {
    cache: { find: async () => ({ ...text, format: 'json', tables }), save: unasked },
    process: { run: unasked, [Symbol.asyncDispose]: async () => {} },
    newPath: () => '/nowhere',
    openFile: async () => somewhere,
    storeFile: unasked,
    reportFailure: unasked,
  }
  const files = Array.from({ length: 100 }, (_, at) => file(`${at}`, `blob:${blobOf('a')}`))
  const prepared = await prepareFiles(preparing, files, { tables: [], triedFiles: new Set() }, signal)
  expect(JSON.stringify(prepared).length).toBeLessThan(9_000_000)
  expect(Object.keys(prepared.tables).length).toBeGreaterThan(300)
  expect(prepared.other_files['99']).toMatchObject({
    readable: false,
    notes: [expect.stringContaining('take more than 8 MB to describe; send fewer files')],
  })
})

test('a name of a table is found in linear time, and is unique', () => {
  const taken = new Set<string>()
  for (let count = 0; count < 50_000; count += 1) taken.add(toTableName('a.csv', taken))
  expect(taken.size).toBe(50_000)
  expect([...taken].slice(0, 3)).toEqual(['a', 'a_2', 'a_3'])
})
