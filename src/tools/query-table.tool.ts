import { z } from 'zod'
import { defineTool } from '../graph/tool.ts'
import type { TableAnswer } from '../state/files/ports.ts'
import { isTableOf, type PreparedTable, tablesOf } from '../state/files/prepared.ts'
import { quoted } from '../state/files/table-names.ts'
import type { Json } from '../state/runtime-state.ts'
import { callInput, faultDraft, resultDraft } from './call-draft.ts'
import { findFile } from './files/text.ts'

const mostNamed = 60

/** The names of tables that stand in a statement, as words of it. */
const named = (sql: string, tables: readonly PreparedTable[]): PreparedTable[] => {
  const words = new Set(sql.toLowerCase().match(/[\p{L}\p{N}_]+/gu))
  return tables.filter(({ table }) => words.has(table))
}

const describe = ({ table, rows, columns }: PreparedTable): string => {
  const shown = columns.slice(0, mostNamed).map(({ name, type }) => `${quoted(name)} ${type}`)
  const more = columns.length > mostNamed ? `, and ${columns.length - mostNamed} more` : ''
  return `${quoted(table)} (${rows} rows): ${shown.join(', ')}${more}`
}

const fault = (reason: string, tables: readonly PreparedTable[]): string => {
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
        .replace(/\s*\n\s*/g, ' ')

const line = (cells: readonly Json[]): string => `| ${cells.map(cell).join(' | ')} |`

const show = ({ columns, rows, more }: Extract<TableAnswer, { ok: true }>): string => {
  if (rows.length === 0) return `No rows. Columns: ${columns.join(', ')}.`
  const table = [line(columns), line(columns.map(() => '---')), ...rows.map(line)].join('\n')
  return more ? `${table}\n[more rows: aggregate, or use LIMIT and OFFSET]` : table
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
  input: z.strictObject({ sql: z.string().min(1).max(20_000) }),
  reads: ['origin_files', 'preprocessed_files'],
  writes: [],
  async run(state, context, signal) {
    const { sql } = callInput(context)
    const all = tablesOf(state)
      .map(({ table }) => table)
      .filter((table) => state.origin_files.some((file) => isTableOf(table, file)))
    const tables = named(sql, all).flatMap((table) => {
      const file = findFile(state.origin_files, table.file)
      return file ? [{ table, file }] : []
    })
    const answer: TableAnswer =
      all.length === 0
        ? { ok: false, reason: 'no file of this run holds a table' }
        : await context.files.query({ sql, tables }, signal)
    if (!answer.ok)
      return context.checkpoint(faultDraft('Could not query the tables', fault(answer.reason, all)))
    const { columns, rows, more } = answer
    const summary = `Queried ${tables.map(({ table }) => table.table).join(', ') || 'no table'}: ${more ? 'more than ' : ''}${rows.length} ${rows.length === 1 ? 'row' : 'rows'}`
    return context.checkpoint(resultDraft(summary, show(answer), { columns, rows, more }))
  },
})
