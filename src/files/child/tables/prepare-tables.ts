import {
  type FileContents,
  fileBounds,
  type PrepareJob,
  type TableContents,
  UnreadableFileError,
} from '../../protocol/child-protocol.ts'
import { prepareText } from '../formats/plain-text.ts'
import { createStatistics } from './column-statistics.ts'
import type { RowSource } from './row-source.ts'
import { openTables, type TableFormat } from './table-sources.ts'

/** With more columns their statistics would fill the state: then only names and types are stored. */
const maxDescribedColumns = 60

/** Describes the tables of a file: rows, columns, statistics. */
export const prepareTables = async (
  job: PrepareJob,
  format: TableFormat,
  bytes: number,
): Promise<FileContents> => {
  const opened = await openTables(job.path, job.name, format, bytes)
  try {
    const tables: TableContents[] = []
    for (const source of opened.sources) tables.push(await describeSource(source))
    if (tables.length > 0) return { format, tables, notes: [] }
  } finally {
    opened.close()
  }
  // JSON without a list of objects is read as text
  if (format === 'json') return { ...(await prepareText(job, 'text', bytes)), format }
  if (format === 'ndjson')
    throw new UnreadableFileError('none of its lines is a JSON object; write one object on each line')
  throw new UnreadableFileError('it holds no rows; check it and upload it again')
}

const describeSource = async (source: RowSource): Promise<TableContents> => {
  const notes: string[] = []
  const header = source.header.slice(0, fileBounds.columns)
  if (source.header.length > header.length)
    notes.push(`only the first ${fileBounds.columns} of its ${source.header.length} columns are read`)
  const statistics = createStatistics(header)
  for await (const batch of source.batches()) statistics.add(batch)
  const { rows, columns } = statistics.describe()
  const described =
    columns.length <= maxDescribedColumns
      ? columns
      : columns.map((column) => ({
          ...column,
          samples: [],
          distinct: null,
          min: null,
          max: null,
          mean: null,
        }))
  return { part: source.part, rows, columns: described, notes: [...notes, ...source.notes()] }
}
