import { mkdir, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import type { TableRows } from '../../../src/features/tables/child/query-job.ts'
import { openFileProcess } from '../../../src/files/file-process.ts'
import type { FileJob } from '../../../src/files/protocol/child-protocol.ts'
import { documentReaders } from '../../support/document-readers.ts'
import { openFolder } from '../../support/file-samples.ts'

/** What a table must be: its columns with their types, its rows, the first of them, and the sums of its numbers. */
type Expected = {
  columns: string
  rows: number
  first: unknown[]
  sums: Record<string, number>
  notes: string[]
}

const folder = join(import.meta.dirname, 'tables')
const expectations = JSON.parse(await readFile(join(folder, 'expected.json'), 'utf8')) as Record<
  string,
  Expected
>

// workbooks are opened by src/features/documents/, without which these tests are not run
const fileProcess = openFileProcess({ maxBytes: 450 * 1024 * 1024, maxMs: 30_000, readers: documentReaders })
afterAll(() => fileProcess[Symbol.asyncDispose]())
const run = async (job: FileJob) => {
  const reply = await fileProcess.run(job, new AbortController().signal)
  if (reply.ok) return reply
  throw new Error('message' in reply ? reply.message : reply.kind)
}

test('each table of the folder has an expectation', async () => {
  const files = (await readdir(folder)).filter((name) => !['make.sh', 'expected.json'].includes(name))
  expect(Object.keys(expectations).toSorted()).toEqual(files.toSorted())
})

test.each(Object.entries(expectations))(
  'the table %s has these types, values and sums',
  async (name, expected) => {
    await using work = await openFolder()
    await mkdir(join(work.path, 'work'))
    const path = join(folder, name)
    const prepared = await run({ kind: 'prepare', path, name, type: '', folder: join(work.path, 'work') })
    const contents = 'contents' in prepared ? prepared.contents : undefined
    const [table] = contents?.tables ?? []
    if (!table) throw new Error('no table')
    const { part, rows, columns, notes } = table
    const tables = [{ table: 't', path, name, type: '', part, rows, columns }]
    const ask = async (sql: string) => {
      const reply = await run({ kind: 'reader', name: 'query', input: { sql, tables, cached: null } })
      return 'output' in reply ? (reply.output as TableRows).rows : []
    }
    const numbers = columns
      .filter(({ type }) => type === 'integer' || type === 'number')
      .map((column) => column.name)
    // each statement opens the table anew
    const figures = ['count(*)', ...numbers.map((one) => `sum(t."${one}")`)]
    const [found = []] = await ask(
      `SELECT ${figures.join()}, first.* FROM t, (SELECT * FROM t LIMIT 1) first`,
    )
    const [count, ...sums] = found.slice(0, figures.length)
    expect({
      columns: columns.map((column) => `${column.name} ${column.type}`).join(', '),
      rows: count,
      first: found.slice(figures.length),
      notes: [...(contents?.notes ?? []), ...notes],
    }).toEqual({
      columns: expected.columns,
      rows: expected.rows,
      first: expected.first,
      notes: expected.notes,
    })
    expect(rows).toBe(expected.rows)
    expect(numbers.toSorted()).toEqual(Object.keys(expected.sums).toSorted())
    for (const [column, sum] of Object.entries(expected.sums))
      expect(sums[numbers.indexOf(column)], column).toBeCloseTo(sum, 9)
  },
)
