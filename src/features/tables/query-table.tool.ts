import { z } from 'zod'
import { describeColumns } from '../../context/file-descriptions.ts'
import { errorDraft, readCallInput, resultDraft } from '../../graph/call-drafts.ts'
import { defineTool } from '../../graph/definitions.ts'
import { findFile } from '../../state/files/find-file.ts'
import { isTableFromFile, listTables, type PreparedTable } from '../../state/files/prepared-files.ts'
import { quoteName } from '../../state/files/table-names.ts'
import type { Json } from '../../state/runtime-state.ts'
import type { TableQueryResult } from './tables.ref.ts'

/** The names of tables among the words of a statement. */
const findNamedTables = (sql: string, tables: readonly PreparedTable[]): PreparedTable[] => {
  const words = new Set(sql.toLowerCase().match(/[\p{L}\p{N}_]+/gu))
  return tables.filter(({ table }) => words.has(table))
}

const describe = ({ table, rows, columns }: PreparedTable): string =>
  `${quoteName(table)} (${rows} rows): ${describeColumns(columns)}`

const toErrorText = (reason: string, tables: readonly PreparedTable[]): string => {
  const there =
    tables.length === 0
      ? 'There are no tables in this run.'
      : `Tables there are:\n${tables.map(describe).join('\n')}`
  return `Error: ${reason}.\n${there}\nThe dialect is SQLite; one SELECT, names with spaces in double quotes.`
}

const cell = (value: Json): string =>
  value === null
    ? ''
    : String(value)
        .replaceAll('|', '\\|')
        .replace(/(?<!\s)\s*\n\s*/g, ' ')

const line = (cells: readonly Json[]): string => `| ${cells.map(cell).join(' | ')} |`

const toTableText = ({ columns, rows, hasMore }: Extract<TableQueryResult, { ok: true }>): string => {
  if (rows.length === 0) return `No rows. Columns: ${columns.join(', ')}.`
  const table = [line(columns), line(columns.map(() => '---')), ...rows.map(line)].join('\n')
  return hasMore ? `${table}\n[more rows: aggregate, or use LIMIT and OFFSET]` : table
}

export default defineTool({
  server: 'search_tool_server',
  name: 'query_table',
  description:
    "Runs one SQL SELECT (SQLite) over the tables of the run's files (CSV, XLSX, JSON) and gives at most 200 rows; " +
    'the list of files names the tables and their columns. Dates are ISO texts, booleans 1 or 0.',
  kinds: ['call'],
  pure: true,
  provenance: 'file',
  input: z.strictObject({
    sql: z.string().min(1).max(20_000).describe('One SELECT; names with spaces in double quotes'),
  }),
  reads: ['origin_files', 'preprocessed_files'],
  writes: [],
  needs: ['tables'],
  async run(state, context, signal) {
    const { sql } = readCallInput(context)
    const all = listTables(state).filter((table) =>
      state.origin_files.some((file) => isTableFromFile(table, file)),
    )
    const tables = findNamedTables(sql, all).flatMap((table) => {
      const file = findFile(state.origin_files, table.file)
      return file ? [{ table, file }] : []
    })
    const answer: TableQueryResult =
      all.length === 0
        ? { ok: false, reason: 'no file of this run holds a table' }
        : await context.tables.query({ sql, tables }, signal)
    if (!answer.ok)
      return context.checkpoint(errorDraft('Could not query the tables', toErrorText(answer.reason, all)))
    const { columns, rows, hasMore } = answer
    const summary = `Queried ${tables.map(({ table }) => table.table).join(', ') || 'no table'}: ${hasMore ? 'more than ' : ''}${rows.length} ${rows.length === 1 ? 'row' : 'rows'}`
    const notes = tables.flatMap(({ table }) => table.notes.filter((note) => note.includes('out of sums')))
    const text = [toTableText(answer), ...notes].join('\nNote: ')
    return context.checkpoint(
      resultDraft(summary, text, { columns, rows, more: hasMore, found: rows.length }),
    )
  },
})
