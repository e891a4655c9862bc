import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { openFileProcess } from '../../src/files/file-process.ts'
import { documentReaders } from '../support/document-readers.ts'
import { openFolder } from '../support/file-samples.ts'
import { expectations, listWrittenFiles, writtenFolder } from '../support/written-files.ts'

const fileProcess = openFileProcess({ maxBytes: 450 * 1024 * 1024, maxMs: 30_000, readers: documentReaders })
afterAll(() => fileProcess[Symbol.asyncDispose]())

test('each file that another program wrote has an expectation', () => {
  expect(Object.keys(expectations).toSorted()).toEqual(listWrittenFiles())
})

test.each(Object.entries(expectations))(
  'the file process reads %s, or says why not',
  async (name, expected) => {
    await using folder = await openFolder()
    const work = join(folder.path, 'work')
    await mkdir(work)
    const path = join(writtenFolder, name)
    const { signal } = new AbortController()
    const reply = await fileProcess.run({ kind: 'prepare', path, name, type: '', folder: work }, signal)
    if (!('contents' in reply)) {
      expect(reply).toMatchObject({ kind: 'unreadable', format: expected.format })
      expect('message' in reply && reply.message).toMatch(expected.note ?? /^$/)
      return
    }
    const { format, document, tables = [], unpacked = [], notes } = reply.contents
    expect(format).toBe(expected.format)
    expect(unpacked.map((part) => part.name)).toEqual(expected.parts ?? [])
    expect(tables.map(({ rows }) => rows)).toEqual(expected.rows === undefined ? [] : [expected.rows])
    const text = document && (document.text ? await readFile(document.text.path, 'utf8') : document.head)
    expect(text ?? JSON.stringify(tables)).toContain(expected.fact ?? '')
    const said = [...notes, ...tables.flatMap((table) => table.notes)].join('; ')
    expect(said).toMatch(expected.note ?? /^$/)
  },
)
