import { titles } from '../../context/sections.ts'
import { type OfflineRequest, partText } from './request.ts'

/** A column as SQL names it and as people do. */
export type Column = { sql: string; name: string; type: string }
export type Table = { sql: string; file: string; columns: readonly Column[] }

/** What the files of a run hold: tables for query_table, and texts to search. */
export type FileContent = { tables: readonly Table[]; texts: readonly string[] }

const tableLine = /^ {2}table for query_table: (.+?), \d+ rows; columns: (.*)/
const columnPattern = /(?:^|, )("(?:[^"]|"")*"|[^\s,"]+) (integer|number|boolean|date|text|empty)(?=,|$)/g

const readColumns = (text: string): Column[] =>
  [...text.matchAll(columnPattern)].map(([, sql = '', type = '']) => {
    const name = sql.startsWith('"') ? sql.slice(1, -1).replaceAll('""', '"') : sql
    return { sql, name, type }
  })

/** Reads the list of files in a prompt: a line a file, and under it what was found in it. */
export const readFiles = (request: OfflineRequest): FileContent => {
  const tables: Table[] = []
  const texts = new Set<string>()
  let file = ''
  for (const line of partText(request, titles.files).split('\n')) {
    const [, sql, columns = ''] = tableLine.exec(line) ?? []
    if (line.startsWith('- ')) file = line.slice(2).replace(/ \([^()]*\)$/, '')
    if (line.startsWith('- ')) texts.add(file)
    if (sql !== undefined) tables.push({ sql, file, columns: readColumns(columns) })
    if (sql !== undefined || line.startsWith('  image:')) texts.delete(file)
  }
  return { tables, texts: [...texts] }
}

export const isNumber = ({ type }: Column): boolean => type === 'integer' || type === 'number'

/** Whether it numbers the rows, so that its values are names and no amounts. */
export const isId = ({ name }: Column): boolean =>
  /(?:^|[\s_-])(?:id|no|number|code)$|[a-z]Id$|编号$|单号$/i.test(name)

export const isAmount = (column: Column): boolean => isNumber(column) && !isId(column)

/** A text as an SQL string. */
export const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`

const cellsOf = (line: string): string[] =>
  line
    .slice(2, -2)
    .split(' | ')
    .map((cell) => cell.replaceAll('\\|', '|'))

export type Row = Readonly<Record<string, string>>
export type Rows = readonly Row[]

/** The rows of a result of query_table, by column; null where it shows no table. */
export const readRows = (result: string): Row[] | null => {
  if (result.startsWith('No rows.')) return []
  const [head, , ...rows] = result.split('\n').filter((line) => line.startsWith('| '))
  if (head === undefined) return null
  const names = cellsOf(head)
  return rows.map((row) => Object.fromEntries(cellsOf(row).map((cell, at) => [names[at] ?? '', cell])))
}
