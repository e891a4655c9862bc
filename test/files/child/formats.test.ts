import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import type { TableRows } from '../../../src/features/tables/child/query-job.ts'
import { openFileProcess } from '../../../src/files/file-process.ts'
import type { FileContents, FileJob, FileReply } from '../../../src/files/protocol/child-protocol.ts'
import { documentReaders } from '../../support/document-readers.ts'
import {
  docxParts,
  openFolder,
  paragraph,
  pdfOf,
  pngOf,
  pptxParts,
  xlsxParts,
  zipOf,
} from '../../support/file-samples.ts'

const process = openFileProcess({ maxBytes: 450 * 1024 * 1024, maxMs: 30_000, readers: documentReaders })
afterAll(() => process[Symbol.asyncDispose]())

test('a build without features for files says of a PDF and of a workbook that they are not opened, and reads a CSV as text', async () => {
  await using folder = await openFolder()
  await using alone = openFileProcess({ maxBytes: 450 * 1024 * 1024, maxMs: 30_000, readers: [] })
  const ask = async (name: string, bytes: string | Uint8Array) => {
    const path = join(folder.path, name)
    await writeFile(path, bytes)
    const job = { kind: 'prepare' as const, path, name, type: '', folder: folder.path }
    return await alone.run(job, new AbortController().signal)
  }
  const refused = (title: string) => ({
    ...{ ok: false, kind: 'unreadable', format: title.split(' ')[1]?.toLowerCase() },
    message: `${title} is not opened here; save it as text, CSV or JSON and upload that`,
  })
  expect(await ask('a.pdf', await pdfOf([['text']]))).toEqual(refused('a PDF'))
  expect(await ask('a.xlsx', await zipOf(xlsxParts({ S: '' })))).toEqual(refused('an XLSX workbook'))
  const contents = { format: 'csv', document: { lines: 2, head: 'n\n1' } }
  expect(await ask('a.csv', 'n\n1\n')).toMatchObject({ ok: true, contents })
})

const docxReader = new URL('../../../src/features/documents/docx.ts', import.meta.url).href

/** The reply of the file process; its reason as an error where it gave none. */
const run = async (job: FileJob) => {
  const reply = await process.run(job, new AbortController().signal)
  if (reply.ok) return reply as FileReply & { contents: FileContents; output: TableRows }
  throw new Error('message' in reply ? reply.message : reply.kind)
}

/** What is found in these bytes under this name, and the text made of them. */
const open = async (
  name: string,
  bytes: string | Uint8Array,
  type = '',
): Promise<FileContents & { text: string }> => {
  await using folder = await openFolder()
  const path = join(folder.path, 'file')
  const work = join(folder.path, 'work')
  await Promise.all([writeFile(path, bytes), mkdir(work)])
  const { contents } = await run({ kind: 'prepare', path, name, type, folder: work })
  const at = contents.document?.text?.path
  return { ...contents, text: at === undefined ? '' : readFileSync(at, 'utf8') }
}

/** The tables of one file, each named t, t2, …; `query` gives the rows of a statement over them. */
const openTables = async (name: string, bytes: string | Uint8Array) => {
  const folder = await openFolder()
  const path = join(folder.path, 'file')
  await writeFile(path, bytes)
  const { contents } = await run({ kind: 'prepare', path, name, type: '', folder: folder.path })
  const loaded = (contents.tables ?? []).map(({ part, columns, rows }, at) => ({
    table: at === 0 ? 't' : `t${at + 1}`,
    path,
    name,
    type: '',
    part,
    columns,
    rows,
  }))
  return {
    query: async (sql: string): Promise<TableRows> =>
      (await run({ kind: 'reader', name: 'query', input: { sql, tables: loaded, cached: null } })).output,
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  }
}

/** The rows of one statement over the tables of one file. */
const ask = async (name: string, bytes: string | Uint8Array, sql: string): Promise<TableRows> => {
  await using tables = await openTables(name, bytes)
  return await tables.query(sql)
}

/** Each of these statements is refused for this reason. */
const refuseEach = async (
  query: (sql: string) => Promise<unknown>,
  statements: readonly string[],
  why: string | RegExp,
): Promise<void> => {
  for (const sql of statements) await expect(query(sql), sql).rejects.toThrow(why)
}

const column = (found: FileContents, name: string, table = 0) =>
  found.tables?.[table]?.columns.find((one) => one.name === name)

describe('documents', () => {
  test('PDF: text with the page of each line, headings by their height', async () => {
    const pdf = await pdfOf([
      ['Revenue', 'It rose by 12 percent.'],
      ['Outlook', 'It will rise.', 'Or fall.'],
    ])
    const { document, text } = await open('report.pdf', pdf)
    expect(document).toMatchObject({ pages: 2, page_lines: [1, 3], lines: 5 })
    expect(document?.sections).toMatchObject([
      { title: 'Revenue', page: 1, line: 1 },
      { title: 'Outlook', page: 2, line: 3 },
    ])
    expect(text.split('\n')[3]).toBe('It will rise.')
  })

  test('DOCX: headings, paragraphs and tables as Markdown', async () => {
    const cell = (text: string): string => `<w:tc>${paragraph(text)}</w:tc>`
    const table = `<w:tbl><w:tr>${cell('City')}${cell('People')}</w:tr><w:tr>${cell('Ulm')}${cell('126000')}</w:tr></w:tbl>`
    const docx = await zipOf(docxParts(paragraph('Plan', 'Heading1') + paragraph('First we look.') + table))
    const { document, text } = await open('plan.docx', docx)
    expect(document?.sections).toMatchObject([{ title: 'Plan', level: 1, line: 1 }])
    expect(text).toContain('First we look.')
    expect(text).toContain('| City | People |\n| --- | --- |\n| Ulm | 126000 |')
  })

  test('a process that has read a DOCX cannot change a prototype through __proto__', async () => {
    await using folder = await openFolder()
    const path = join(folder.path, 'a.docx')
    await writeFile(path, await zipOf(docxParts(paragraph('Plan'))))
    const script = `import { prepareDocx } from ${JSON.stringify(docxReader)}
      const job = { kind: 'prepare', path: ${JSON.stringify(path)}, name: 'a.docx', type: '', folder: ${JSON.stringify(folder.path)} }
      const { document } = await prepareDocx(job)
      const own = [Object.prototype, Function.prototype, Array.prototype].filter((one) => Object.hasOwn(one, '__proto__'))
      console.log(JSON.stringify([document.head, own.length, {}['__proto__'] ?? null, Promise.resolve()['__proto__'] ?? null]))`
    const flags = ['--disable-proto=delete', '--import', 'tsx', '--input-type=module', '-e']
    const written = execFileSync(globalThis.process.execPath, [...flags, script], { encoding: 'utf8' })
    expect(JSON.parse(written)).toEqual(['Plan', 0, null, null])
  })

  test('PPTX: the slides in their order, each a page', async () => {
    const slides = [
      { title: 'Goals', lines: ['Grow', 'Learn'] },
      { title: 'Team', lines: ['Two people'] },
    ]
    const { document, text } = await open('talk.pptx', await zipOf(pptxParts(slides)))
    expect(document).toMatchObject({
      pages: 2,
      sections: [
        { title: 'Goals', page: 1 },
        { title: 'Team', page: 2 },
      ],
    })
    expect(text).toContain('# Slide 2: Team\nTwo people')
  })

  test('HTML: what is read, and nothing of scripts', async () => {
    const html =
      '<html><head><title>News</title><script>steal()</script></head><body><h1>Today</h1><p>It <b>rains</b>.</p><table><thead><tr><th>a</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table></body></html>'
    const { document, text } = await open('page.html', html)
    expect(document).toMatchObject({ title: 'News', sections: [{ title: 'Today', level: 1 }] })
    expect(text).toContain('It **rains**.')
    expect(text).toContain('| a |\n| --- |\n| 1 |')
    expect(text).not.toContain('steal')
  })

  test('Markdown and text stay where they are; a heading inside a code block is none', async () => {
    const { document } = await open('notes.md', '# One\n```\n# no\n```\n## Two\n')
    expect(document).toMatchObject({ text: null, lines: 5 })
    expect(document?.sections).toMatchObject([
      { title: 'One', line: 1 },
      { title: 'Two', level: 2, line: 5 },
    ])
    expect((await open('a.log', Buffer.from('\ufeff你好\n', 'utf16le'))).document?.head).toBe('你好')
  })
})

describe('tables', () => {
  const csv =
    'id,city,price,day,open\n007,Ulm,"1,250.50",2026-1-5,true\n008,Köln,3,2026-02-01,false\n009,,4.5,2026-03-01,true\n'

  test('CSV: types and statistics; a leading zero makes a text', async () => {
    const found = await open('shops.csv', csv)
    expect(found.tables?.[0]?.rows).toBe(3)
    expect(found.tables?.[0]?.columns.map(({ type }) => type)).toEqual([
      'text',
      'text',
      'number',
      'date',
      'boolean',
    ])
    expect(column(found, 'price')).toMatchObject({
      min: 3,
      max: 1250.5,
      mean: 419.333333333,
      distinct: 3,
      nulls: 0,
    })
    expect(column(found, 'city')).toMatchObject({ nulls: 1, distinct: 2, samples: ['Ulm', 'Köln'] })
    expect(column(found, 'day')).toMatchObject({ min: '2026-01-05', max: '2026-03-01' })
  })

  test('columns of many values are typed by all of them', async () => {
    const rows = Array.from({ length: 3000 }, (_, at) => `${at},${at < 2500 ? at : 'n/a x'},${at % 7}`)
    const found = await open('many.csv', `a,b,c\n${rows.join('\n')}`)
    expect(column(found, 'a')).toMatchObject({
      type: 'integer',
      distinct: null,
      min: 0,
      max: 2999,
      mean: 1499.5,
    })
    expect(column(found, 'b')).toMatchObject({ type: 'text', min: null })
    expect(column(found, 'c')).toMatchObject({ type: 'integer', distinct: 7, max: 6 })
  })

  test('the cells beyond a thousand distinct ones decide too', async () => {
    const days = Array.from({ length: 1500 }, (_, at) =>
      new Date(Date.UTC(2020, 0, 1 + at)).toISOString().slice(0, 10),
    )
    const rows = days.map((day, at) => {
      const [year, month, date] = day.split('-')
      const slashed = Number(date) > 12 && at < 1200 ? '01/02/2020' : `${month}/${date}/${year}`
      return `${at < 1400 ? `"${at},125"` : `${at}`};${slashed};${at < 1450 ? at : 'n/a'};${at % 2}.5`
    })
    const found = await open('many.csv', `grouped;day;count;half\n${rows.join('\n')}`)
    expect(column(found, 'day')).toMatchObject({
      type: 'date',
      reading: 'mdy',
      min: '2020-01-01',
      max: '2024-02-08',
    })
    expect(column(found, 'count')).toMatchObject({
      type: 'integer',
      nulls: 50,
      mean: 724.5,
      null_words: ['n/a'],
    })
    expect(column(found, 'half')).toMatchObject({ type: 'number', mean: 1, distinct: 2 })
    expect(column(found, 'grouped')).toMatchObject({
      type: 'number',
      reading: 'comma',
      min: 0.125,
      max: 1499,
    })
  })

  test('GB18030, semicolons, no header', async () => {
    const gbk = Buffer.from([
      0xb1, 0xb1, 0xbe, 0xa9, 0x3b, 0x31, 0x0a, 0xc9, 0xcf, 0xba, 0xa3, 0x3b, 0x32, 0x0a,
    ])
    const found = await open('cities.csv', gbk)
    expect(found.tables?.[0]).toMatchObject({
      rows: 2,
      columns: [{ name: 'column_1', samples: ['北京', '上海'] }, { type: 'integer' }],
    })
  })

  test.each([
    ['Average', 1],
    ['Avg.', 1],
    ['Mean', 1],
    ['平均值', 1],
    ['Meander Valley', 0],
    ['Meantime Ltd', 0],
    ['Avgust', 0],
  ])('a last row named %s has %i notes of an average', async (name, count) => {
    const found = await open('a.csv', `item,qty\nA,10\nB,20\n${name},15\n`)
    expect(found.tables?.[0]?.notes.filter((note) => note.includes('average'))).toHaveLength(count)
  })

  test('XLSX: each sheet a table; dates by their style, shared strings, gaps', async () => {
    const rows =
      '<row><c r="A1" t="s"><v>0</v></c><c r="B1" t="inlineStr"><is><t>Day</t></is></c><c r="C1" t="inlineStr"><is><t>Sum</t></is></c></row>' +
      '<row><c r="A2" t="s"><v>1</v></c><c r="B2" s="1"><v>45658</v></c><c r="C2"><v>2.5</v></c></row><row><c r="A3" t="s"><v>1</v></c><c r="C3"><v>4</v></c></row>'
    const book = await zipOf(xlsxParts({ Sales: rows, Empty: '' }, ['City', 'Ulm']))
    const found = await open('book.xlsx', book)
    expect(found.tables).toHaveLength(1)
    expect(found.tables?.[0]).toMatchObject({ part: 'Sales', rows: 2 })
    expect(column(found, 'Day')).toMatchObject({ type: 'date', min: '2025-01-01', nulls: 1 })
    const sql = 'SELECT City, sum(Sum) AS total FROM t GROUP BY City'
    expect(await ask('book.xlsx', book, sql)).toEqual({
      columns: ['City', 'total'],
      rows: [['Ulm', 6.5]],
      hasMore: false,
    })
  })

  test('text whose lines have the same cells between tabs is a table, and other text is not', async () => {
    const found = await open('a.txt', 'city\tprice\nUlm\t1.5\nKöln\t2\n')
    expect([column(found, 'price')?.max, found.tables?.[0]?.notes]).toEqual([2, ['delimiter: tab']])
    for (const text of ['if x:\n\ta\n\tb\n', 'Dear\tAnn\n', 'a\tb\nc\nd\te\nf\tg\n'])
      expect(await open('b.txt', text)).toMatchObject({ format: 'text' })
  })

  test('JSON: lists of objects; else its text. JSON lines', async () => {
    const found = await open('a.json', '{"orders":[{"id":1,"who":{"name":"Ada"}},{"id":2}],"version":3}')
    expect(found.tables?.[0]).toMatchObject({ part: 'orders', rows: 2 })
    expect(column(found, 'who.name')).toMatchObject({ nulls: 1, samples: ['Ada'] })
    expect((await open('b.json', '{"version":3}')).document?.lines).toBe(1)
    const twice = await open('c.json', '[{"a.b":1,"a":{"b":2}}]')
    expect([column(twice, 'a.b')?.max, column(twice, 'a.b_2')?.max]).toEqual([1, 2])
    const more = (await open('d.json', '[{"a.b.c":1,"a":{"b.c":2,"b":{"c":3}}}]')).tables?.[0]
    expect(more?.columns.map(({ max }) => max)).toEqual([1, 2, 3])
    const ids =
      '[{"id":2512292042121000001,"in":{"n":-9007199254740993,"l":[12345678901234567890]}},{"id":2512292042121000002}]'
    expect(column(await open('d.json', ids), 'id')).toMatchObject({
      type: 'text',
      samples: ['2512292042121000001', '2512292042121000002'],
    })
    expect(column(await open('d.json', ids), 'in.n')?.samples).toEqual(['-9007199254740993'])
    expect(column(await open('d.json', ids), 'in.l')?.samples).toEqual(['["12345678901234567890"]'])
    const idLines = await open('e.jsonl', '{"id":2512292042121000001}\n{"id":2512292042121000002}\n')
    expect(column(idLines, 'id')?.samples).toEqual(['2512292042121000001', '2512292042121000002'])
    const lists = await open('f.jsonl', '["city","n"]\n["Ulm",1]\n{"a":1}\n["Köln",2]\n')
    expect([column(lists, 'n')?.type, lists.tables?.[0]?.notes]).toEqual([
      'integer',
      ['1 of its lines are no JSON lists and are skipped'],
    ])
    const pandas = await open('g.json', '{"city":{"0":"Ulm","2":"Köln"},"n":{"0":1,"2":null}}')
    expect([pandas.tables?.[0]?.rows, column(pandas, 'n')]).toMatchObject([2, { type: 'integer', nulls: 1 }])
    expect((await open('h.json', '{"db":{"port":1},"web":{"port":2}}')).document?.lines).toBe(1)
    const lines = await open('c.jsonl', '{"a":1}\nbroken\n{"a":2,"b":true}\n')
    expect(lines.tables?.[0]).toMatchObject({
      rows: 2,
      notes: ['1 of its lines are no JSON objects and are skipped'],
    })
  })
})

test('an error that is not about the file is a failure of the reader, with its stack for the log', async () => {
  const job = {
    kind: 'prepare',
    path: '/nowhere/a.pdf',
    name: 'a.pdf',
    type: '',
    folder: '/nowhere',
  } as const
  expect(await process.run(job, new AbortController().signal)).toMatchObject({
    ...{ ok: false, kind: 'failed', message: expect.stringContaining('ENOENT') },
  })
})

describe('statements', () => {
  const csv = 'Order Id,group,price\n1,a,2.5\n2,b,\n3,a,4\n'

  test('one SELECT gives rows; empty cells are null', async () => {
    const sql = '-- sums\nSELECT "group", sum(price) AS s, count(*) n FROM t GROUP BY "group" ORDER BY 1;'
    expect(await ask('a.csv', csv, sql)).toEqual({
      columns: ['group', 's', 'n'],
      rows: [
        ['a', 6.5, 2],
        ['b', null, 1],
      ],
      hasMore: false,
    })
    const many = await ask(
      'a.csv',
      csv,
      'WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n',
    )
    expect(many.rows).toHaveLength(200)
    expect(many.hasMore).toBe(true)
  })

  test('times and durations are summed by their seconds', async () => {
    const text = 'task,ran,start\na,26:30:00,7:05\nb,3:30:00,12:10\n'
    const sql = 'SELECT sum(seconds(ran)) / 3600.0 AS hours, min(start) AS earliest FROM t'
    expect((await ask('a.csv', text, sql)).rows).toEqual([[30, '07:05']])
    await expect(ask('a.csv', text, 'SELECT sum(ran) FROM t')).rejects.toThrow(
      /got the text "26:30:00".*seconds\(x\)/,
    )
  })

  test('a column that may be numbers has no sum of the digits that its texts begin with', async () => {
    const text = 'Ort;Einwohner;Fläche\nUlm;126.000;118\nBasel;178.000;24\n'
    await expect(ask('a.csv', text, 'SELECT avg(Einwohner) FROM t')).rejects.toThrow(
      /avg\(\) got the text "126.000"/,
    )
    expect((await ask('a.csv', text, 'SELECT sum(Fläche), avg(Fläche), total(Fläche) FROM t')).rows).toEqual([
      [142, 71, 142],
    ])
    const sql = "SELECT sum(CAST(replace(Einwohner, '.', '') AS INTEGER)) FROM t"
    expect((await ask('a.csv', text, sql)).rows).toEqual([[304000]])
  })

  test('a text has no sum, and no arithmetic, of the digits that it begins with', async () => {
    const text = 'part;weight;since;n\na;12 kg;2024-03-05;00012\nb;1.5 kg;2023-01-02;00030\n'
    await using tables = await openTables('a.csv', text)
    const query = async (sql: string) => (await tables.query(sql)).rows
    const sums = ['sum(weight)', 'avg(t.weight)', 'total("weight")'].map((sum) => `SELECT ${sum} FROM t`)
    const within = 'SELECT sum(w) FROM (SELECT weight AS w FROM t)'
    await refuseEach(query, [...sums, within], /got the text "12 kg"/)
    const terms = ['weight * 2', '2*t."weight"', '-weight', 'max(since) - since', 'since - 1', '[weight]/n']
    await refuseEach(
      query,
      terms.map((term) => `SELECT ${term} FROM t`),
      /holds text, and SQLite would count only/,
    )
    const kilos = "CAST(replace(weight, ' kg', '') AS REAL)"
    expect(await query(`SELECT sum(${kilos}), sum(replace(weight, ' kg', '')) FROM t`)).toEqual([
      [13.5, 13.5],
    ])
    expect(await query(`WITH k AS (SELECT ${kilos} AS weight FROM t) SELECT max(weight * 2) FROM k`)).toEqual(
      [[24]],
    )
    const days = 'julianday(max(since)) - julianday(min(since))'
    expect(await query(`SELECT ${days}, sum(n), part || '-' || n FROM t -- weight * 2`)).toEqual([
      [428, 42, expect.stringMatching(/^[ab]-000/)],
    ])
    expect(await query("SELECT count(*) FROM t WHERE weight LIKE '-weight*%' OR part = 'a'")).toEqual([[1]])
  })

  test('a text that a select names as it was is refused; what a select within or before converts is counted', async () => {
    await using tables = await openTables('a.csv', 'id,weight\n1,12 kg\n2,1.5 kg\n')
    const query = async (sql: string) => (await tables.query(sql)).rows
    const kilos = "CAST(replace(weight, ' kg', '') AS REAL)"
    const named = [
      'SELECT weight * 2 AS weight FROM t',
      'SELECT max(weight * 2) weight FROM t',
      'SELECT n FROM (SELECT weight * 2 AS n, id AS weight FROM t)',
    ]
    await refuseEach(query, named, 'weight holds text, and SQLite would count only')
    for (const sql of [
      `SELECT max(k.weight * 2) FROM (SELECT ${kilos} weight FROM t) k`,
      `SELECT max(weight * 2) AS weight FROM (SELECT ${kilos} AS weight FROM t)`,
      `WITH k(id, weight) AS (SELECT id, ${kilos} FROM t) SELECT max(weight * 2) FROM k`,
      `WITH k(weight) AS MATERIALIZED (SELECT ${kilos} FROM t) SELECT max(k.weight * 2) FROM k`,
      `SELECT max(k."weight") * 2 FROM (WITH u AS (SELECT ${kilos} weight FROM t) SELECT * FROM u) k`,
    ])
      expect(await query(sql), sql).toEqual([[24]])
  })

  test('a text is not put in an order among numbers, nor rounded by the digits that it begins with', async () => {
    await using tables = await openTables(
      'a.csv',
      'town;people;since\nUlm;1.234;2024-03-05\nBasel;999;2023-01-02\n',
    )
    const query = async (sql: string) => (await tables.query(sql)).rows
    const terms = [
      'people > 500',
      't."people">=500.5',
      '500 < people',
      'people NOT BETWEEN -5 AND 500',
      'since > 2023',
    ]
    await refuseEach(
      query,
      [...terms, 'abs(people)', 'round( t.people )'].map((term) => `SELECT town FROM t WHERE ${term}`),
      /holds text, and SQLite would count only with the digits it begins with, or compare as letters sort/,
    )
    const days = "since > '2023-12-31' AND people <> 999 AND length(people) > 3 AND CAST(people AS REAL) < 2"
    expect(await query(`SELECT town FROM t WHERE ${days}`)).toEqual([['Ulm']])
  })

  test('a text that is a number or a date which was not read is not sorted, nor compared with a date', async () => {
    await using tables = await openTables(
      'a.csv',
      'item;size;sold;zip;month;n\nA;1.2K;31/Jan/24;01067;2024-01;1\nB;950;01/Feb/24;80331;2024-02;2\nC;3.4M;02/Feb/24;94107;2024-03;3\n',
    )
    const query = async (sql: string) => (await tables.query(sql)).rows
    const wrong = [
      'SELECT max(size) FROM t',
      'SELECT min(t."size") FROM t',
      'SELECT item FROM t ORDER BY item, size DESC LIMIT 1',
      'SELECT item, size FROM t ORDER BY 2 DESC',
      'SELECT replace(item, 1, (2)), t."size" AS s FROM t ORDER BY 2 DESC NULLS LAST, 1',
      'SELECT DISTINCT size FROM t ORDER BY 1',
      'SELECT t.size AS s FROM t ORDER BY s',
      'SELECT s FROM (SELECT size s FROM t) ORDER BY 1',
      'WITH k AS (SELECT item, size AS s FROM t) SELECT item FROM k ORDER BY k.s',
      'SELECT * FROM t ORDER BY 2',
      'SELECT max(k.s) FROM (SELECT size AS s FROM t) k',
      "SELECT item FROM t WHERE size > '1000'",
      "SELECT item FROM t WHERE sold >= '2024-02-01'",
      "SELECT item FROM t WHERE sold = '2024-02-01'",
      "SELECT item FROM t WHERE sold BETWEEN '2024-02-01' AND '2024-02-29'",
    ]
    await refuseEach(query, wrong, /is text that sorts by its letters, as '(?:1.2K|31\/Jan\/24)'/)
    await refuseEach(
      query,
      ["SELECT item FROM t WHERE sold LIKE '2024-%'"],
      "sold holds texts as '31/Jan/24'",
    )
    expect(
      await query("SELECT item FROM t WHERE sold LIKE '%/Feb/24' AND month LIKE '2025-%' ORDER BY 1"),
    ).toEqual([])
    const given = ["replace(size, 'K', '') + 0 size", 'zip size', 'CASE item WHEN 1 THEN 1 ELSE 2 END size']
    for (const one of given) expect(await query(`SELECT ${one} FROM t ORDER BY size`)).toHaveLength(3)
    for (const one of [
      'item, substr(sold, 8) FROM t ORDER BY 2, 1',
      'size, zip AS z FROM t ORDER BY 2',
      'size, count(*) FROM t GROUP BY 1 ORDER BY 2 DESC, 1',
      "sold AS month, n FROM t WHERE month LIKE '2024%'",
      "item s, replace(size, 'K', '') + 0 AS s FROM t ORDER BY s",
      "size AS s, s FROM (SELECT replace(size, 'K', '') + 0 AS size, 1 AS s FROM t) ORDER BY 1",
      '* FROM (SELECT item, length(size) FROM t) ORDER BY 2',
      "sold AS month, n FROM t WHERE month >= '2024-01'",
      "n AS size FROM t WHERE size <> '1.3K' AND t.size <> '1.4K'",
      "n AS item FROM t WHERE item IN ('A', 'B', 'C')",
      'k.n, t.n FROM t JOIN (SELECT item, size AS n FROM t) k ON k.item = t.item ORDER BY t.n',
      'n FROM t WHERE item NOT IN (SELECT size AS n FROM t) ORDER BY n',
      'item, (SELECT size AS n FROM t LIMIT 1) FROM t ORDER BY n',
      'size AS n FROM t ORDER BY t.n',
      'sold AS month FROM t ORDER BY t.month',
      'sold, count(*) FROM t GROUP BY sold ORDER BY 2 DESC, sold',
      'sold, sum(n) total FROM t GROUP BY sold ORDER BY total DESC NULLS LAST, sold',
      'n, size FROM t ORDER BY 1, size',
      'n, size FROM t ORDER BY n + 1, size',
      's, c FROM (SELECT size AS s, count(*) AS c FROM t GROUP BY size) ORDER BY c DESC, s',
      'sold, n FROM t ORDER BY 1 + n',
      'size AS s FROM t ORDER BY s IS NULL, n',
      'size AS s FROM t ORDER BY s + 0',
      'n, 5 size FROM t ORDER BY 2',
      '*, size FROM (SELECT item, n, size FROM t) ORDER BY 2',
      'rank() OVER (PARTITION BY size, sold, item ORDER BY 1) FROM t',
      'size, n FROM t WHERE n > 3 UNION SELECT n, size FROM t ORDER BY 1',
    ])
      expect(await query(`SELECT ${one}`), one).toHaveLength(3)
    const right = "max(zip), min(item), max(month), max(size || '')"
    const last = "WHERE month >= '2024-02' AND size <> '950' ORDER BY zip, month, item"
    expect(await query(`SELECT ${right} FROM t ${last}`)).toEqual([['94107', 'C', '2024-03', '3.4M']])
  })

  test('an integer beyond what a number holds keeps its digits', async () => {
    const text = 'card,v\n4111111111111111,1\n5500000000000004,2\n'
    const sql = 'SELECT sum(card), max(card), sum(v), 1.5, 9223372036854775807 FROM t'
    expect((await ask('a.csv', text, sql)).rows).toEqual([
      ['9611111111111115', 5500000000000004, 3, 1.5, '9223372036854775807'],
    ])
  })

  test('lower and upper know all letters', async () => {
    await using tables = await openTables('a.csv', 'town,n\nKöln,1\nKÖLN,2\nkoln (x),4\n,8\n')
    const query = async (sql: string) => (await tables.query(sql)).rows
    expect(await query('SELECT lower(town) w, upper(town), sum(n) FROM t GROUP BY w ORDER BY w')).toEqual([
      [null, null, 8],
      ['koln (x)', 'KOLN (X)', 4],
      ['köln', 'KÖLN', 3],
    ])
  })

  test('LIKE knows all letters, in patterns of the statement and of a column', async () => {
    await using tables = await openTables(
      'a.csv',
      'town,pattern\nKÖLN (West),%ö%\nMünchen,mÜ_chen\nЁлка,x\n100% Öl_1,y\n,z\n',
    )
    const query = async (where: string) =>
      (await tables.query(`SELECT town FROM t WHERE ${where}`)).rows.flat()
    expect(await query("town LIKE 'köln%' OR town LIKE '%ЁЛК_'")).toEqual(['KÖLN (West)', 'Ёлка'])
    expect(await query('town LIKE pattern')).toEqual(['KÖLN (West)', 'München'])
    expect(await query("town LIKE '%\\% ö%\\_1' ESCAPE '\\'")).toEqual(['100% Öl_1'])
    expect(await query("town NOT LIKE '%ö%'")).toEqual(['München', 'Ёлка'])
    expect(await query("town LIKE '%WEST)'")).toEqual(['KÖLN (West)'])
    // a pattern that is read as a regular expression would not end
    expect(await query(`'${'a'.repeat(5000)}' LIKE '${'%a'.repeat(30)}%ü'`)).toEqual([])
  })

  test('a literal that a column cannot hold is refused, with the one that it holds', async () => {
    await using dates = await openTables('b.csv', 'day,n\n31.01.2024,1\n05.02.2024,2\n')
    const odd = ["'%.2024'", "'%2024'", "'31.%'"].map((like) => `SELECT n FROM t WHERE day LIKE ${like}`)
    await refuseEach((sql) => dates.query(sql), odd, "day holds texts as '2024-01-31', and ")
    expect((await dates.query("SELECT n FROM t WHERE day LIKE '2025-%' OR day LIKE '%-02-%'")).rows).toEqual([
      [2],
    ])
    await using tables = await openTables(
      'a.csv',
      'Tag;Von;Dauer;Betrag;aktiv;Ort;Uhr\n31.01.2024;7:05;3:30:00;1,5;ja;Ulm;31.01.2024 10:00\n05.02.2024;12:10;26:30:00;1.200,75;nein;Köln;05.02.2024 00:00\n',
    )
    const query = async (where: string) =>
      (await tables.query(`SELECT Ort FROM t WHERE ${where}`)).rows.flat()
    for (const [where, why] of [
      ["Tag > '01.02.2024'", "Tag is of type date: '01.02.2024' is '2024-02-01' in it"],
      ["'01.02.2024' <= t.Tag", "'2024-02-01'"],
      ["Tag BETWEEN '2024-01-01' AND '2024-2-1'", "'2024-2-1' is '2024-02-01'"],
      ["Tag = '2024-01'", "'2024-01' is not"],
      ["Uhr >= '2024-01-31T09:00'", "'2024-01-31 09:00'"],
      ["Von < '8:00'", "'08:00'"],
      ["Dauer <> '3:30:00'", "'03:30:00'"],
      ['"Betrag" = \'1,5\'', "Betrag is of type number: '1,5' is 1.5 in it"],
      ["Betrag IN (1, '1.200,75')", '1200.75'],
      ["Betrag > 'viel'", "'viel' is not"],
      ["aktiv = 'ja'", "aktiv is of type boolean: 'ja' is 1 in it"],
      ["t.aktiv IS NOT 'true'", "'true' is 1"],
      ["CASE aktiv WHEN 'nein' THEN 1 END = 1", "'nein' is 0"],
      ["Ort = ''", 'IS NULL'],
      ["strftime('%Y', Tag) = 2024", "strftime() gives a text: compare it with '2024'"],
      ['substr(Tag, 1, 4) > 2023', "'2023'"],
      ["Uhr <= '2024-01-31'", 'substr(Uhr, 1, 10)'],
      ["Uhr BETWEEN '2024-01-01' AND '2024-01-31'", 'substr(Uhr, 1, 10)'],
    ] as const)
      await expect(query(where), where).rejects.toThrow(why)
    for (const where of [
      "Tag < '2024-02-01' AND Betrag = '1.5' AND aktiv = '1' AND Von = '07:05' AND Dauer < '04:00:00'",
      "Tag LIKE '2024-01%' AND Ort <> '' AND lower(aktiv) IS NOT 'ja' AND aktiv IN (1, true)",
      "Uhr < '2024-02-01' AND Uhr >= '2024-01-31' AND substr(Uhr, 1, 10) <= '2024-01-31'",
      "strftime('%Y', Tag) = '2024' AND length(Ort) = 3 AND (Ort IS NOT NULL OR Ort = '')",
      "Betrag < 2 AND 'a' = 'a' AND Ort > '' AND CAST(strftime('%m', Tag) AS INTEGER) = 1",
    ])
      expect(await query(where), where).toEqual(['Ulm'])
    const named =
      "SELECT Ort FROM (SELECT Ort, CASE aktiv WHEN 1 THEN 'ja' END AS aktiv FROM t) WHERE aktiv = 'ja'"
    expect((await tables.query(named)).rows).toEqual([['Ulm']])
  })

  test('a sum over a window is refused where it is of a text alone', async () => {
    const text =
      'id,weight,ran,status,amount\n1,12 kg,26:30:00,paid,5\n2,1.5 kg,3:30:00,paid,6\n3,2 kg,1:00:00,open,7\n'
    await using tables = await openTables('a.csv', text)
    const query = async (sql: string) => (await tables.query(sql)).rows
    const sums = [
      'sum(weight) OVER ()',
      'avg(DISTINCT t.weight) OVER (ORDER BY id)',
      'rank() OVER (), total("weight")',
      'sum(weight) OVER () AS weight',
    ]
    await refuseEach(
      query,
      sums.map((sum) => `SELECT ${sum} FROM t`),
      /"weight" holds text; convert it first, as in SUM\(CAST\("?weight"? AS REAL\)\) OVER/,
    )
    const kilos = "SUM(CAST(REPLACE(weight,' kg','') AS REAL)) OVER ()"
    expect(await query(`SELECT ${kilos}, SUM(seconds(ran)) OVER (ORDER BY id) FROM t`)).toEqual([
      [15.5, 95400],
      [15.5, 108000],
      [15.5, 111600],
    ])
    const paid = "SUM(CASE WHEN status='paid' THEN amount END)"
    const ranks = `SELECT status, ${paid}, RANK() OVER (ORDER BY sum(amount) DESC) FROM t GROUP BY status ORDER BY 3`
    expect(await query(ranks)).toEqual([
      ['paid', 11, 1],
      ['open', null, 2],
    ])
    const within =
      "SELECT sum(weight) OVER () FROM (SELECT replace(weight, ' kg', '') + 0 AS weight FROM t) LIMIT 1"
    expect(await query(within)).toEqual([[15.5]])
    const named = 'SELECT max(total.status), count(*) OVER () FROM t AS total'
    expect(await query(named)).toEqual([['paid', 1]])
  })

  test('a word of SQL, or a table, is no column that is named like it', async () => {
    const mails = 'From,End,By,n\nAda,b,c,2\nBob,d,e,3\n'
    expect((await ask('a.csv', mails, 'SELECT * FROM t')).rows).toHaveLength(2)
    const numbered = 'SELECT sum(CASE WHEN n > 2 THEN n END * 2) FROM t'
    expect((await ask('a.csv', mails, numbered)).rows).toEqual([[6]])
    await expect(ask('a.csv', mails, 'SELECT "From" * 2 FROM t')).rejects.toThrow('"From" holds text')
    const orders =
      '{"sales":[{"product":"a","qty":2},{"product":"b","qty":3}],"products":[{"sku":"a","price":5},{"sku":"b","price":7}]}'
    const joined = 'SELECT sum(s.qty * product.price) FROM t s JOIN t2 product ON product.sku = s.product'
    expect((await ask('a.json', orders, joined)).rows).toEqual([[31]])
  })

  test('a name that is a number in one table and a text in another has no sum of digits', async () => {
    const months = '{"jan":[{"amount":1},{"amount":2}],"feb":[{"amount":"1.250"},{"amount":"3.500"}]}'
    const all = 'WITH a AS (SELECT amount FROM t UNION ALL SELECT amount FROM t2) SELECT sum(amount) FROM a'
    await expect(ask('a.json', months, all)).rejects.toThrow(/sum\(\) got the text "1.250"/)
    expect((await ask('a.json', months, 'SELECT sum(t.amount) FROM t')).rows).toEqual([[3]])
  })

  test.each([
    ['DROP TABLE t', /only one SELECT/],
    ['SELECT 1; SELECT 2', /only one statement/],
    ['SELECT 1; DROP TABLE t', /only one statement/],
    ['WITH x AS (SELECT 1) DELETE FROM t', /readonly/],
    ["ATTACH '/etc/passwd' AS p", /only one SELECT/],
    ['PRAGMA query_only = 0', /only one SELECT/],
    ["SELECT load_extension('/tmp/x')", /load_extension|not authorized/],
    ["SELECT readfile('/etc/passwd')", /no such function: readfile/],
    ['SELECT cost FROM t', /no such column: cost/],
    ['SELECT * FROM other', /no such table: other/],
    ['', /only one SELECT/],
  ])('%s is refused', async (sql, reason) => {
    await expect(ask('a.csv', csv, sql)).rejects.toThrow(reason)
  })
})

describe('other files', () => {
  test('an image: its size, nothing of its pixels', async () => {
    const { facts } = await open('a.png', pngOf(640, 480))
    expect(facts).toMatchObject({ type: 'png', width: 640, height: 480 })
  })

  test('an archive: its files under names of ours, without those that lead out of it', async () => {
    const found = await open('a.zip', await zipOf({ 'data/a.csv': 'x\n1\n', 'b.txt': 'hello' }))
    expect(found.unpacked?.map(({ name }) => name)).toEqual(['data/a.csv', 'b.txt'])
  })

  test('a file with a wrong extension is read by its content, with a note', async () => {
    const found = await open('a.csv', await pdfOf([['Hello', 'world']]))
    expect(found.format).toBe('pdf')
    expect(found.notes[0]).toBe('it is a PDF, although its name or type says a CSV table')
  })
})
