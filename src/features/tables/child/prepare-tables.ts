import { prepareText } from '../../../files/child/formats/plain-text.ts'
import {
  type Cell,
  type FileReaders,
  type ReadFile,
  unreadFormat,
} from '../../../files/child/reader-definition.ts'
import type { FileFormat } from '../../../files/child/sniff.ts'
import {
  fileBounds,
  type TableContents,
  UnreadableFileError,
} from '../../../files/protocol/child-protocol.ts'
import { createStatistics } from './column-statistics.ts'
import { openDelimited } from './delimited.ts'
import { openJson, openJsonLines } from './json-records.ts'
import { describeLines, isFilledCell, openRowSource, type RowSource } from './row-source.ts'

/** With more columns their statistics would fill the state: then only names and types are stored. */
const maxDescribedColumns = 60
/** Of one file. */
const maxTables = 50
/** Of the name of a sheet. */
const maxPartChars = 200

/** Uses the tables of a file, which are open for that long. The same bytes give the same tables every time. */
export const withTables = async <Result>(
  path: string,
  name: string,
  format: FileFormat,
  bytes: number,
  readers: FileReaders,
  use: (sources: RowSource[]) => Promise<Result>,
): Promise<Result> => {
  if (format === 'csv') return use(await openDelimited(path, name))
  if (format === 'json') return use(await openJson(path, bytes))
  if (format === 'ndjson') return use((await openJsonLines(path)).sources)
  const withSheets = readers.find(({ sheets }) => sheets?.[format])?.sheets?.[format]
  if (!withSheets) throw unreadFormat(format)
  return withSheets(path, async (sheets) => {
    const sources: RowSource[] = []
    for (const { name, openRows, notes } of sheets.slice(0, maxTables)) {
      const source = await openRowSource(name, openRows, notes)
      if (source) sources.push(source)
    }
    return await use(sources)
  })
}

/** Describes the tables of a file: rows, columns, statistics. */
export const prepareTables: ReadFile = async (job, bytes, readers, format) => {
  const notes: string[] = []
  const tables = await withTables(job.path, job.name, format, bytes, readers, async (sources) => {
    const named = sources.filter(({ part }) => part === null || part.length <= maxPartChars)
    if (named.length < sources.length)
      notes.push(`tables with names of more than ${maxPartChars} characters are not read`)
    if (named.length > maxTables)
      notes.push(`only the first ${maxTables} of its ${named.length} tables are read`)
    const described: TableContents[] = []
    for (const source of named.slice(0, maxTables)) described.push(await describeSource(source))
    return described
  })
  if (tables.length > 0) return { format, tables, notes }
  // JSON without a list of objects is read as text
  if (format === 'json') return { ...(await prepareText(job, 'text', bytes)), format }
  if (format === 'ndjson')
    throw new UnreadableFileError('none of its lines is a JSON object; write one object on each line')
  throw new UnreadableFileError('it holds no rows; check it and upload it again')
}

const maxFootnotes = 10

/** A line below a table that says something of it: a single cell in a line of text without others, or a short one like "Source: the shop". */
const isFootnote = ([first = '', ...others]: readonly Cell[], width: number): boolean =>
  (2 * (others.length + 1) < width || !others.some(isFilledCell)) &&
  (others.length === 0
    ? /[:：*.;()。]|\s\S+\s|\p{Script=Han}|^[-=+*_]{3,}$/u
    : /\p{L}[:：]|^[-=+*_]{3,}$/u
  ).test(String(first))

const describeSource = async (source: RowSource): Promise<TableContents> => {
  const notes: string[] = []
  const header = source.header.slice(0, fileBounds.columns)
  if (source.header.length > header.length)
    notes.push(`only the first ${fileBounds.columns} of its ${source.header.length} columns are read`)
  const statistics = createStatistics(header, source)
  let longer = 0
  // the last rows may be footnotes, and the one before them a total
  let last: Cell[][] = []
  for await (const batch of source.batches()) {
    for (const row of batch)
      if (row.length > source.header.length && row.slice(source.header.length).some(isFilledCell)) longer += 1
    const rows = [...last, ...batch]
    last = rows.slice(-maxFootnotes - 1)
    statistics.add(rows.slice(0, -maxFootnotes - 1))
  }
  const rowsAbove =
    header.length > 1 ? last.findLastIndex((row) => !isFootnote(row, header.length)) + 1 : last.length
  const footnotes = last.splice(rowsAbove)
  const lastRow = last.splice(-1)
  statistics.add(last)
  const total = lastRow[0] && statistics.findTotal(lastRow[0])
  if (total) notes.push(total.note)
  if (!total?.isSum) statistics.add(lastRow)
  if (longer > 0) notes.push(`cells beyond the last column are not read, in ${longer} of its rows`)
  const { rows, columns, notes: decisions } = statistics.describe()
  const withoutValues = { samples: [], distinct: null, min: null, max: null, mean: null }
  const isWide = columns.length > maxDescribedColumns
  const described = columns.map((column) => (isWide ? { ...column, ...withoutValues } : column))
  const more = [...decisions, ...describeLines(footnotes, 'below the rows'), ...source.notes()]
  return { part: source.part, rows, columns: described, notes: [...notes, ...more] }
}
