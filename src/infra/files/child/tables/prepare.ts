import { prepareText } from '../formats/text.ts'
import { bounds, type Found, type FoundTable, type PrepareJob, Unreadable } from '../protocol.ts'
import { openTables, type TableFormat } from './open.ts'
import type { RowSource } from './source.ts'
import { createStatistics } from './statistics.ts'

/** Beyond so many columns their statistics would fill the state: names and types are kept. */
const mostDescribed = 60

export const prepareTables = async (job: PrepareJob, format: TableFormat, bytes: number): Promise<Found> => {
  const opened = await openTables(job.path, job.name, format, bytes)
  try {
    const tables: FoundTable[] = []
    for (const source of opened.sources) tables.push(await describe(source))
    if (tables.length > 0) return { format, tables, notes: [] }
  } finally {
    opened.close()
  }
  // JSON without a list of objects is a text like any other
  if (format === 'json') return { ...(await prepareText(job, 'text', bytes)), format }
  if (format === 'ndjson')
    throw new Unreadable('none of its lines is a JSON object; write one object on each line')
  throw new Unreadable('it holds no rows; check it and upload it again')
}

const describe = async (source: RowSource): Promise<FoundTable> => {
  const notes: string[] = []
  const header = source.header.slice(0, bounds.columns)
  if (source.header.length > header.length)
    notes.push(`only the first ${bounds.columns} of its ${source.header.length} columns are read`)
  const statistics = createStatistics(header)
  for await (const batch of source.batches()) statistics.add(batch)
  const { rows, columns } = statistics.describe()
  const described =
    columns.length <= mostDescribed
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
