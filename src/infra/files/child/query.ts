import { readFile, rename, writeFile } from 'node:fs/promises'
import initSqlJs, { type Database, type Statement } from 'sql.js'
import { quoted } from '../../../state/files/table-names.ts'
import { bounds, type Cell, type LoadedTable, type QueryJob, Refused, type Rows } from './protocol.ts'
import { claimedFormat, sniff } from './sniff.ts'
import { openTables, type TableFormat } from './tables/open.ts'
import { isNull, isoDate, numberOf } from './tables/values.ts'

/**
 * One statement over tables that are loaded into SQLite, which lives in this process's memory: it has no files and no
 * network to reach. Read-only twice: one SELECT, and `query_only`.
 */
export const queryTables = async (job: QueryJob): Promise<Rows> => {
  const sql = await initSqlJs()
  const kept = job.kept && (await readFile(job.kept.path).catch(() => null))
  const database = new sql.Database(kept)
  if (kept === null) {
    for (const table of job.tables) await load(database, table)
    if (job.kept !== null) await keep(database, job.kept)
  }
  database.run('PRAGMA query_only = 1')
  try {
    return read(onlyStatement(database, job.sql))
  } catch (error) {
    if (error instanceof Refused) throw error
    throw new Refused((error as Error).message)
  } finally {
    database.close()
  }
}

const load = async (database: Database, table: LoadedTable): Promise<void> => {
  const claimed = claimedFormat(table.name, table.type)
  const { format, bytes } = await sniff(table.path, claimed)
  const opened = await openTables(table.path, table.name, format as TableFormat, bytes)
  try {
    const source = opened.sources.find(({ part }) => part === table.part)
    if (!source) throw new Refused(`the table ${table.table} is not in its file any more`)
    const columns = table.columns.map(({ name, type }) => `"${name.replaceAll('"', '""')}" ${sqlTypes[type]}`)
    database.run(`CREATE TABLE ${quoted(table.table)} (${columns.join(', ')})`)
    const insert = database.prepare(
      `INSERT INTO ${quoted(table.table)} VALUES (${table.columns.map(() => '?').join(', ')})`,
    )
    database.run('BEGIN')
    for await (const batch of source.batches())
      for (const row of batch) insert.run(table.columns.map(({ type }, index) => cellValue(row[index], type)))
    database.run('COMMIT')
    insert.free()
  } finally {
    opened.close()
  }
}

const sqlTypes = {
  integer: 'INTEGER',
  number: 'REAL',
  boolean: 'INTEGER',
  date: 'TEXT',
  text: 'TEXT',
  empty: 'TEXT',
} as const

const cellValue = (raw: string | undefined, type: LoadedTable['columns'][number]['type']): Cell => {
  const cell = raw?.trim() ?? ''
  if (isNull(cell)) return null
  if (type === 'integer' || type === 'number') return numberOf(cell)
  if (type === 'boolean') return /^true$/i.test(cell) ? 1 : 0
  return type === 'date' ? isoDate(cell) : cell
}

/** Written beside and moved there, so that nobody reads half of it. Without room on the disk the next one loads anew. */
const keep = async (database: Database, { path, beside }: NonNullable<QueryJob['kept']>): Promise<void> => {
  try {
    await writeFile(beside, database.export(), { mode: 0o600 })
    await rename(beside, path)
  } catch {}
}

const comment = /^\s*(--[^\n]*(\n|$)|\/\*[\s\S]*?\*\/)/

const withoutComments = (text: string): string => {
  let rest = text
  while (comment.test(rest)) rest = rest.replace(comment, '')
  return rest.trim()
}

/** The one statement there is, when it only reads. */
const onlyStatement = (database: Database, text: string): Statement => {
  if (!/^(select|with|values)\b/i.test(withoutComments(text)))
    throw new Refused('only one SELECT (or WITH … SELECT) is run; tables cannot be changed')
  const statements = database.iterateStatements(text)
  const { value } = statements.next()
  if (!value) throw new Refused('there is no statement')
  const rest = withoutComments(statements.getRemainingSQL().replace(/^[\s;]+/, ''))
  if (rest.replace(/[\s;]/g, '') !== '') throw new Refused('only one statement is run at a time')
  return value
}

const read = (statement: Statement): Rows => {
  const rows: Cell[][] = []
  let chars = 0
  let more = false
  while (!more && statement.step()) {
    const row = statement.get().map(shown)
    chars += row.reduce<number>((sum, cell) => sum + String(cell).length + 3, 0)
    more = rows.length === bounds.rows || chars > bounds.answerChars
    if (!more) rows.push(row)
  }
  return { columns: statement.getColumnNames(), rows, more }
}

const mostCellChars = 2000

const shown = (value: unknown): Cell => {
  if (value === null || typeof value === 'number') return value
  if (value instanceof Uint8Array) return `(${value.length} bytes)`
  const text = String(value)
  return text.length > mostCellChars ? `${text.slice(0, mostCellChars).toWellFormed()}…` : text
}
