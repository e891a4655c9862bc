import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import documents from '../../../src/features/documents/documents.reader.ts'
import tables from '../../../src/features/tables/tables.reader.ts'
import { prepareFile } from '../../../src/files/child/prepare-file.ts'
import { openFileProcess } from '../../../src/files/file-process.ts'
import type { FileContents, PrepareJob } from '../../../src/files/protocol/child-protocol.ts'
import { documentReaders } from '../../support/document-readers.ts'
import { docxParts, openFolder, paragraph, pptxParts, xlsxParts, zipOf } from '../../support/file-samples.ts'
import { isGate } from '../../support/tier.ts'

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

const withJob = async <Result>(
  name: string,
  bytes: string | Buffer,
  work: (job: PrepareJob) => Promise<Result>,
): Promise<Result> => {
  await using folder = await openFolder()
  const path = join(folder.path, name)
  await writeFile(path, bytes)
  await mkdir(join(folder.path, 'job'))
  return await work({ kind: 'prepare', path, name, type: '', folder: join(folder.path, 'job') })
}

const prepare = (name: string, bytes: string | Buffer): Promise<FileContents | string> =>
  withJob(name, bytes, (job) => prepareFile(job, [documents, tables]).catch((error: Error) => error.message))

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

/** The archive with 100,000 levels of elements at the end of one part. */
const withDepth = (parts: Record<string, string>, part: string): Promise<Buffer> => {
  const inside = times('<a>', 100_000) + times('</a>', 100_000)
  const text = parts[part] ?? '<x></x>'
  return zipOf({ ...parts, [part]: text.replace(/<\/[^<]*>\s*$/, (end) => inside + end) })
}

const odfParts = (type: string): Record<string, string> => ({
  mimetype: `application/vnd.oasis.opendocument.${type}`,
  'content.xml': '<office:document-content xmlns:office="o"></office:document-content>',
})
const slides = pptxParts([{ title: 'a', lines: ['b'] }])
const docx = docxParts(paragraph('x'))

const deepParts: [name: string, part: string, parts: Record<string, string>][] = [
  ['a.docx', 'word/document.xml', docx],
  ['a.docx', 'word/styles.xml', docx],
  ['a.docx', '_rels/.rels', docx],
  ['a.pptx', 'ppt/presentation.xml', slides],
  ['a.pptx', 'ppt/slides/slide1.xml', slides],
  ['a.xlsx', 'xl/workbook.xml', xlsxParts({ S: cells })],
  ['a.xlsx', 'xl/sharedStrings.xml', xlsxParts({ S: cells })],
  ['a.xlsx', 'xl/worksheets/sheet1.xml', xlsxParts({ S: cells })],
  ['a.odt', 'META-INF/manifest.xml', odfParts('text')],
  ['a.odt', 'content.xml', odfParts('text')],
  ['a.odp', 'content.xml', odfParts('presentation')],
]

/** A PDF of these objects, the first of which has the number 1. A number instead of one: it is in that object stream. */
const pdfWith = (objects: readonly (string | number)[]): Buffer => {
  const parts = ['%PDF-1.7\n']
  const places = [...objects, ''].map((object, at) => {
    const place = Buffer.alloc(6)
    place[0] = typeof object === 'string' ? 1 : 2
    place.writeUInt32BE(typeof object === 'string' ? parts.join('').length : object, 1)
    if (typeof object === 'string' && object !== '') parts.push(`${at + 1} 0 obj\n${object}\nendobj\n`)
    return place.toString('latin1')
  })
  const body = parts.join('')
  const table = `\0\0\0\0\0\0${places.join('')}`
  const size = objects.length + 2
  const facts = `/Type/XRef/Size ${size}/W[1 4 1]/Root 1 0 R/Length ${table.length}`
  const last = `${size - 1} 0 obj\n<<${facts}>>stream\n${table}\nendstream\nendobj\n`
  return Buffer.from(`${body}${last}startxref\n${body.length}\n%%EOF\n`, 'latin1')
}

const catalog = '<</Type/Catalog/Pages 2 0 R>>'
const page = '<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>'
const loops: [what: string, objects: (string | number)[], reason: string][] = [
  ...[1, 2, 2_147_483_647].map((count): (typeof loops)[number] => [
    `page tree with the count ${count} that is its own only child`,
    [catalog, `<</Type/Pages/Count ${count}/Kids[2 0 R]>>`],
    'Pages tree contains circular reference',
  ]),
  [
    'page tree that has itself behind its first page',
    [catalog, '<</Type/Pages/Count 9/Kids[3 0 R 2 0 R]>>', page],
    'Pages tree contains circular reference',
  ],
  ['circle of two object streams, with the pages in it', [catalog, 3, 4, 3], 'Invalid Root reference'],
  ...['[]', ['<</A ', '>>']].map(([open = '', close = '']): (typeof loops)[number] => [
    `page in which 100,000 ${open === '[' ? 'lists' : 'dictionaries'} are in each other`,
    [
      catalog,
      '<</Type/Pages/Count 1/Kids[3 0 R]>>',
      `<</Type/Page/Parent 2 0 R/X ${times(open, 100_000)} 1 ${times(close, 100_000)}>>`,
    ],
    'it is nested too deep',
  ]),
]

const tooDeep = (format: string) => ({
  ...{ ok: false, kind: 'unreadable', format },
  message: 'its XML elements are nested more than 1000 deep; save it again in an office program, or as PDF',
})

describe('the process of a reader with 300 MB', () => {
  const child = openFileProcess({ maxBytes: 300 * 1024 * 1024, maxMs: 30_000, readers: documentReaders })
  afterAll(() => child[Symbol.asyncDispose]())
  const reply = (name: string, bytes: Buffer) =>
    withJob(name, bytes, (job) => child.run(job, new AbortController().signal))

  // one part of each format; the others are read by the same parser
  const chosen = deepParts.filter(([, part]) => !isGate || /document|slide1|sheet1|content/.test(part))
  test.each(chosen)('refuses %s with 100,000 levels in its part %s', async (name, part, parts) => {
    expect(await reply(name, await withDepth(parts, part))).toEqual(tooDeep(name.slice(2)))
  })

  test('refuses a DOCX whose 100,000 levels declare a namespace each', async () => {
    const names = Array.from({ length: 100_000 }, (_, at) => `<a xmlns:n${at}="n">`)
    const body = names.join('') + times('</a>', 100_000)
    expect(await reply('a.docx', await zipOf(docxParts(body)))).toEqual(tooDeep('docx'))
  })

  test('refuses a DOCX of 100,000 levels behind a character that only its own parser takes', async () => {
    const bytes = await withDepth(docxParts(paragraph('&#1;')), 'word/document.xml')
    expect(await reply('a.docx', bytes)).toEqual(tooDeep('docx'))
  })

  test('reads a DOCX whose tables are as deep as the limit allows', async () => {
    const around = (inside: string) => `<w:tbl><w:tr><w:tc>${inside}</w:tc></w:tr></w:tbl>`
    const body = Array.from({ length: 331 }).reduce<string>(around, paragraph('deepest'))
    expect(await reply('a.docx', await zipOf(docxParts(body)))).toMatchObject({ ok: true })
  })

  test.each(loops)('refuses a PDF with a %s', async (_what, objects, reason) => {
    expect(await reply('a.pdf', pdfWith(objects))).toEqual({
      ok: false,
      kind: 'unreadable',
      format: 'pdf',
      message: expect.stringContaining(`it is damaged or incomplete (${reason}`),
    })
  })

  test('reads a PDF whose page tree has an end', async () => {
    const tree = '<</Type/Pages/Count 1/Kids[3 0 R]>>'
    expect(await reply('a.pdf', pdfWith([catalog, tree, page]))).toMatchObject({
      message: expect.stringContaining('it has no text'),
    })
  })
})
