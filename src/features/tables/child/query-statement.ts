import { readFile, rename, writeFile } from 'node:fs/promises'
import initSqlJs, { type Database, type Statement } from 'sql.js'
import type { Cell, FileReaders } from '../../../files/child/reader-definition.ts'
import { claimedFormat, detectFormat } from '../../../files/child/sniff.ts'
import { RefusedStatementError } from '../../../files/protocol/child-protocol.ts'
import type { ColumnType } from '../../../state/files/prepared-files.ts'
import { quoteName } from '../../../state/files/table-names.ts'
import { toSeconds } from './cell-dates.ts'
import { findReading } from './cell-values.ts'
import { checkLiterals, plainNumber } from './compared-literals.ts'
import { withTables } from './prepare-tables.ts'
import type { LoadedTable, QueryJob, TableCell, TableRows } from './query-job.ts'
import { maySumTexts } from './text-operands.ts'

/**
 * Runs one statement over tables loaded into SQLite in this process's memory, which has no files and no network to reach.
 * Two guards keep it read-only: it must be one SELECT, and `query_only` is on. Throws `RefusedStatementError`.
 */
export const runStatement = async (job: QueryJob, readers: FileReaders): Promise<TableRows> => {
  const sql = await initSqlJs()
  const loaded = job.cached && (await readFile(job.cached.path).catch(() => null))
  const database = new sql.Database(loaded)
  if (loaded === null) {
    for (const table of job.tables) await loadTable(database, table, readers)
    if (job.cached !== null) await saveDatabase(database, job.cached)
  }
  database.run('PRAGMA query_only = 1')
  try {
    addFunctions(database, job)
    return readResultRows(parseSingleStatement(database, job.sql))
  } catch (error) {
    if (error instanceof RefusedStatementError) throw error
    throw new RefusedStatementError((error as Error).message)
  } finally {
    database.close()
  }
}

const loadTable = async (database: Database, table: LoadedTable, readers: FileReaders): Promise<void> => {
  const claimed = claimedFormat(table.name, table.type)
  const { format, bytes } = await detectFormat(table.path, claimed)
  await withTables(table.path, table.name, format, bytes, readers, async (sources) => {
    const source = sources.find(({ part }) => part === table.part)
    if (!source) throw new RefusedStatementError(`the table ${table.table} is no longer in its file`)
    const columns = table.columns.map(
      ({ name, type }) => `"${name.replaceAll('"', '""')}" ${sqlTypes[type] ?? 'TEXT'}`,
    )
    database.run(`CREATE TABLE ${quoteName(table.table)} (${columns.join(', ')})`)
    const places = columns.map(() => '?').join(', ')
    const insert = database.prepare(`INSERT INTO ${quoteName(table.table)} VALUES (${places})`)
    database.run('BEGIN')
    const readers = table.columns.map(openCellReader)
    let rows = 0
    for await (const batch of source.batches())
      for (const row of batch)
        if (rows++ < table.rows) insert.run(readers.map((read, index) => read(row[index])))
    database.run('COMMIT')
    insert.free()
  })
}

/** Dates and all others are texts. */
const sqlTypes: Partial<Record<ColumnType, string>> = {
  integer: 'INTEGER',
  number: 'REAL',
  boolean: 'INTEGER',
}

/** Reads the cells of a column as its description says. */
const openCellReader = ({ type, reading, null_words }: LoadedTable['columns'][number]) => {
  const found = findReading(type, reading)
  const words = new Set(null_words)
  const marks = new Set<string>()
  return (raw: Cell | undefined): TableCell => {
    const cell = typeof raw === 'string' ? raw.trim() : raw
    if (cell === undefined || cell === '' || (words.size > 0 && words.has(String(cell)))) return null
    // SQLite writes a large number with ".0"
    return found === undefined ? String(cell) : (found.read(cell, marks) ?? null)
  }
}

/** Adds `seconds` of times and durations, functions that know all letters, and sums that refuse a text which is not a number or is ambiguous. */
const addFunctions = (database: Database, { sql, tables }: QueryJob): void => {
  database.create_function('seconds', (text: unknown) => toSeconds(String(text)))
  // SQLite's own know the letters of ASCII only
  database.create_function('lower', (text: unknown) => text && String(text).toLowerCase())
  database.create_function('upper', (text: unknown) => text && String(text).toUpperCase())
  // the pattern of a statement's own text may have such letters, and that of an expression
  if (/\blike\b(?!\s*'[\s!-&(-~]*')/i.test(sql)) {
    database.create_function('like', (like: unknown, text: unknown) => isLike(like, text))
    database.create_function('like', (like: unknown, text: unknown, mark: string) => isLike(like, text, mark))
  }
  checkLiterals(sql, tables, (what, table) => {
    const [found] = database.exec(`SELECT ${what} FROM ${quoteName(table)} LIMIT 1000`)
    return found?.values.flatMap(([value]) => value ?? []) ?? []
  })
  if (!maySumTexts(sql, tables)) return
  const isDoubtful = tables.some(({ columns }) => columns.some(({ reading }) => reading === 'doubtful'))
  const aggregates = database as WithAggregates
  for (const [name, finalize] of [
    ['sum', ({ sum, count }: Sum) => (count === 0 ? null : sum)],
    ['total', ({ sum }: Sum) => sum],
    ['avg', ({ sum, count }: Sum) => (count === 0 ? null : sum / count)],
  ] as const)
    aggregates.create_aggregate(name, {
      init: (): Sum => ({ sum: 0, count: 0 }),
      step(state: Sum, value: unknown) {
        if (value === null) return state
        const isNumber = typeof value === 'number' || (!isDoubtful && plainNumber.test(String(value)))
        if (!isNumber)
          throw new RefusedStatementError(
            `${name}() got the text ${JSON.stringify(String(value).slice(0, 40))}, which is not a number or may be another one: convert it first (times and durations by seconds(x))`,
          )
        return { sum: state.sum + Number(value), count: state.count + 1 }
      },
      finalize,
    })
}

/** LIKE as SQLite has it, with all letters: what is between two "%" matches as early as it can, and what is after the last one at the end. */
const isLike = (like: unknown, text: unknown, mark?: string): boolean | null => {
  if (like === null || text === null) return null
  // an undefined sign is any one
  const parts: (string | undefined)[][] = [[]]
  let isEscaped = false
  for (const sign of String(like)) {
    const isPlain: boolean = isEscaped
    isEscaped = !isPlain && sign === mark
    if (sign === '%' && !isPlain && !isEscaped) parts.push([])
    else if (!isEscaped) parts.at(-1)?.push(sign === '_' && !isPlain ? undefined : sign.toLowerCase())
  }
  const signs = [...String(text)].map((sign) => sign.toLowerCase())
  const [first = [], ...others] = parts
  const last = others.pop()
  const fits = (part: typeof first, at: number): boolean =>
    at + part.length <= signs.length &&
    part.every((sign, nth) => sign === undefined || sign === signs[at + nth])
  if (last === undefined) return signs.length === first.length && fits(first, 0)
  let at = fits(first, 0) ? first.length : signs.length + 1
  for (const part of others) {
    while (at <= signs.length && !fits(part, at)) at += 1
    at += part.length
  }
  return at + last.length <= signs.length && fits(last, signs.length - last.length)
}

/** What the types of sql.js lack. */
type WithAggregates = Database & { create_aggregate(name: string, steps: object): void }
type Sum = { sum: number; count: number }

/** Writes a draft and renames it, so that no statement reads half of it. With a full disk the next statement loads again. */
const saveDatabase = async (
  database: Database,
  { path, draft }: NonNullable<QueryJob['cached']>,
): Promise<void> => {
  try {
    await writeFile(draft, database.export(), { mode: 0o600 })
    await rename(draft, path)
  } catch {}
}

const comments = /^(?:\s*(?:--[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/))+/
const withoutComments = (text: string): string => text.replace(comments, '').trim()

/** The only statement of a text. Throws `RefusedStatementError` when there are more or it may write. */
const parseSingleStatement = (database: Database, text: string): Statement => {
  if (!/^(select|with|values)\b/i.test(withoutComments(text)))
    throw new RefusedStatementError('only one SELECT (or WITH … SELECT) is run; tables cannot be changed')
  const statements = database.iterateStatements(text)
  const { value } = statements.next()
  if (!value) throw new RefusedStatementError('there is no statement')
  const rest = withoutComments(statements.getRemainingSQL().replace(/^[\s;]+/, ''))
  if (rest.replace(/[\s;]/g, '') !== '')
    throw new RefusedStatementError('only one statement is run at a time')
  return value
}

const maxRows = 200
const maxChars = 60_000

/** What the types of sql.js lack. */
type ExactStatement = Statement & { get(params: null, config: { useBigInt: true }): unknown[] }

const readResultRows = (statement: Statement): TableRows => {
  const rows: TableCell[][] = []
  let chars = 0
  let hasMore = false
  while (!hasMore && statement.step()) {
    const row = (statement as ExactStatement).get(null, { useBigInt: true }).map(toCell)
    chars += row.reduce<number>((sum, cell) => sum + String(cell).length + 3, 0)
    hasMore = rows.length === maxRows || chars > maxChars
    if (!hasMore) rows.push(row)
  }
  return { columns: statement.getColumnNames(), rows, hasMore }
}

const maxCellChars = 2000

const toCell = (value: unknown): TableCell => {
  if (value === null || typeof value === 'number') return value
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value)
  if (value instanceof Uint8Array) return `(${value.length} bytes)`
  const text = String(value)
  return text.length > maxCellChars ? `${text.slice(0, maxCellChars).toWellFormed()}…` : text
}
