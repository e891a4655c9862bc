import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { prepareFile } from '../../../src/files/child/prepare-file.ts'
import type { FileContents } from '../../../src/files/protocol/child-protocol.ts'
import { docxParts, openFolder, paragraph, pptxParts, xlsxParts, zipOf } from '../../support/file-samples.ts'

/** A file of this size, which one reader took quadratic time or memory for, or might. */
type Generated = [name: string, toBytes: (count: number) => string | Promise<Buffer>, count: number]

const times = (text: string, count: number): string => text.repeat(count)
const numbered = (count: number, toText: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => toText(at)).join(',')

const generated: Generated[] = [
  ['rows.html', (n) => `<table>${times('<tr><td>a</td></tr>', n)}</table>`, 60_000],
  ['spaces.html', (n) => `<pre>${times(' ', n)}x</pre>`, 1_000_000],
  ['open-tag.html', (n) => `<p>x</p><${times('a', n)}`, 1_000_000],
  ['heading.md', (n) => `# a${times(' ', n)}x`, 1_000_000],
  ['equal-names.csv', (n) => `${times('a,', n)}a\n${times('1,', n)}1\n`, 100_000],
  ['open-quote.csv', (n) => `a,b\n1,2\n"${times('x\n', n)}`, 1_000_000],
  ['fields.json', (n) => `[${numbered(n, (at) => `{"k${at}":1}`)}]`, 50_000],
  ['deep.json', (n) => times('[', n) + times(']', n), 1_000_000],
  ['rows.docx', (n) => zipOf(docxParts(`<w:tbl>${times(row, n)}</w:tbl>`)), 3_000],
  ['sheets.xlsx', (n) => repeated(xlsxParts({ S: cells }), 'xl/workbook.xml', /<sheet [^>]*\/>/, n), 10_000],
]
const row = `<w:tr><w:tc>${paragraph('x')}</w:tc></w:tr>`
const cells = '<row><c r="A1"><v>1</v></c><c r="IV1"><v>2</v></c></row>'

/** The archive with one element of one part this many times. */
const repeated = (
  parts: Record<string, string>,
  part: string,
  element: RegExp,
  count: number,
): Promise<Buffer> => {
  const text = (parts[part] ?? '').replace(element, (whole) => times(whole, count))
  return zipOf({ ...parts, [part]: text })
}

const prepare = async (name: string, bytes: string | Buffer): Promise<FileContents | string> => {
  await using folder = await openFolder()
  const job = { kind: 'prepare' as const, path: join(folder.path, name), name, type: '' }
  await writeFile(job.path, bytes)
  await mkdir(join(folder.path, 'job'))
  return await prepareFile({ ...job, folder: join(folder.path, 'job') }).catch(
    (error: Error) => error.message,
  )
}

describe('a reader', () => {
  // each of those that were quadratic took minutes: no test has so long
  test.each(generated)('opens %s', async (name, toBytes, count) => {
    const contents = await prepare(name, await toBytes(count))
    expect(contents).toEqual(
      name === 'deep.json' ? expect.anything() : expect.objectContaining({ notes: expect.anything() }),
    )
  })

  test('numbers 100,000 equal names of columns, and reads the first 256', async () => {
    const found = await prepare('a.csv', `${times('a,', 99_999)}a\n${times('1,', 99_999)}1\n`)
    const [table] = typeof found === 'string' ? [] : (found.tables ?? [])
    expect(table?.columns.map(({ name }) => name).slice(-2)).toEqual(['a_255', 'a_256'])
    expect(table?.notes).toEqual(['only the first 256 of its 100000 columns are read'])
  })

  test('describes 50 tables of a file, and says how many there are', async () => {
    const found = await prepare(
      'a.json',
      `{${numbered(1000, (at) => `"t${at}":[{"a":1}]`)},"${times('x', 300)}":[{"a":1}]}`,
    )
    expect(found).toMatchObject({
      notes: [
        'tables with names of more than 200 characters are not read',
        'only the first 50 of its 1000 tables are read',
      ],
    })
    expect(typeof found === 'string' ? [] : found.tables).toHaveLength(50)
  })

  test('reads 2,000 slides of a presentation that names one 3,000 times', async () => {
    const parts = pptxParts([{ title: 'a', lines: ['b'] }])
    const bytes = await repeated(parts, 'ppt/presentation.xml', /<p:sldId [^>]*\/>/, 3000)
    expect(await prepare('a.pptx', bytes)).toMatchObject({
      notes: ['only the first 2000 of its 3000 slides are read'],
    })
  })

  test('refuses a file that takes more to describe than the state holds', async () => {
    const column = (at: number) => `"${times('\\u0001', 115)}${at}":1`
    const table = `[{${numbered(256, column)}}]`
    const wide = numbered(50, (at) => `"t${at}":${table}`)
    expect(await prepare('a.json', `{${wide}}`)).toMatch(/take more than 4 MB to describe; split it/)
  })
})
