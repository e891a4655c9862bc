import type { PrepareJob } from '../../../files/protocol/child-protocol.ts'
import type { PreparedColumn } from '../../../state/files/prepared-files.ts'

/** A table to load for a statement: its SQL name, its file, and its part inside the file. */
export type LoadedTable = Pick<PrepareJob, 'path' | 'name' | 'type'> & {
  table: string
  part: string | null
  /** How many rows there are: what comes after them in the file is a total. */
  rows: number
  columns: readonly Pick<PreparedColumn, 'name' | 'type' | 'reading' | 'null_words'>[]
}

/** The job `query` of the file process: runs one statement over tables. */
export type QueryJob = {
  sql: string
  tables: readonly LoadedTable[]
  /** The file of the loaded tables, for the next statement, and the draft that is written first; null: they are small. */
  cached: { path: string; draft: string } | null
}

/** A value of a result; booleans are 0 and 1. */
export type TableCell = string | number | null
/** The rows of a result, at most 200. */
export type TableRows = { columns: string[]; rows: TableCell[][]; hasMore: boolean }
