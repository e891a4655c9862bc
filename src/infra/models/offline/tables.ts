import { conceptsOf } from './concepts.ts'
import { isDayFirst, readDate } from './dates.ts'
import { bareStyle, decimalsOf, type NumberStyle, readNumber, unitOf } from './numbers.ts'

/** One table of a file, each row with the place it came from, so that an answer can name its lines. */
export type Row = { file: string; place: number; cells: readonly string[] }
type ColumnKind = 'number' | 'date' | 'flag' | 'text'
export type Column = {
  name: string
  kind: ColumnKind
  style: NumberStyle
  idLike: boolean
  dayFirst: boolean
  /** The different values in the order of their first row. */
  values: readonly string[]
}
export type Table = {
  /** The file, or the file and the part of it the table stands in. */
  name: string
  /** Rows are named by line of the file, or by item of a JSON list. */
  unit: 'line' | 'item'
  columns: readonly Column[]
  rows: readonly Row[]
  /** Lines with totals, left out of `rows` so that nothing is counted twice. */
  totals: readonly number[]
}

const yes = /^(?:yes|y|true|t|是|对|✓|✔|x)$/i
const no = /^(?:no|n|false|f|否|不|✗|✘|-)?$/i
const idName =
  /(?:^|[\s_-])(?:id|no|nr|number|code|phone|tel|zip|postcode|postal|uuid|sku|index|#)$|[a-z]I[dD]$|^#$|编号|代码|电话|邮编|序号|^订单号$|单号/i
const yearName = /^(?:year|年|年份|fiscal[ _]?year)$/i

export const isYes = (cell: string): boolean => yes.test(cell.trim()) || cell.trim() === '1'

/** Enough cells to tell what a column holds, spread over all of it. */
const sampleOf = (cells: readonly string[]): readonly string[] => {
  const step = Math.ceil(cells.length / 300)
  return step < 2 ? cells : cells.filter((_, i) => i % step === 0 || i < 50)
}

const isFilled = (cell: string): boolean =>
  cell.trim() !== '' && !/^(?:n\/?a|null|none|-|—)$/i.test(cell.trim())

const describeColumn = (name: string, cells: readonly string[]): Column => {
  const filled = sampleOf(cells.filter(isFilled))
  const share = (test: (cell: string) => boolean): boolean =>
    filled.length > 0 && filled.filter(test).length >= filled.length * 0.8
  const base = {
    name,
    style: bareStyle,
    idLike: idName.test(name) || yearName.test(name),
    dayFirst: false,
    values: [],
  }
  const dayFirst = isDayFirst(cells)
  if (share((cell) => readDate(cell, dayFirst) !== null)) return { ...base, kind: 'date', dayFirst }
  if (share((cell) => readNumber(cell) !== null)) {
    const flag =
      filled.every((cell) => cell.trim() === '0' || cell.trim() === '1') && /^(?:is|has|was)/i.test(name)
    return flag ? { ...base, kind: 'flag' } : { ...base, kind: 'number', style: styleOf(name, filled) }
  }
  if (filled.length > 0 && cells.every((cell) => yes.test(cell.trim()) || no.test(cell.trim())))
    return { ...base, kind: 'flag' }
  return { ...base, kind: 'text' }
}

const styleOf = (name: string, cells: readonly string[]): NumberStyle => {
  const first = unitOf(cells[0] ?? '')
  const same = cells.every((cell) => {
    const unit = unitOf(cell)
    return unit.before === first.before && unit.after === first.after
  })
  const after = same ? first.after : /[(（]%[)）]$|percent$/i.test(name) ? '%' : ''
  const written = (cell: string): number =>
    /^[^,]*\.\d*0\D*$|,\d{3}\.\d*0\D*$/.test(cell) ? (/\.(\d+)\D*$/.exec(cell)?.[1]?.length ?? 0) : 0
  const decimals = cells.reduce(
    (most, cell) => Math.max(most, written(cell), decimalsOf(readNumber(cell) ?? 0)),
    0,
  )
  return { before: same ? first.before : '', after, decimals: Math.min(decimals, 6) }
}

const isTotal = (cells: readonly string[], columns: readonly Column[]): boolean => {
  const first = cells.find((cell) => cell.trim() !== '')?.trim() ?? ''
  return (
    /^(?:grand total|sub-?total|totals?|sum|overall|合计|总计|总和|小计|共计)[:：]?$/i.test(first) &&
    cells.some((cell, i) => columns[i]?.kind === 'number' && readNumber(cell) !== null)
  )
}

/** Names, kinds and rows from raw cells; null when nothing is left to ask about. */
export const makeTable = (
  name: string,
  unit: Table['unit'],
  names: readonly string[],
  rows: readonly Row[],
): Table | null => {
  if (names.length === 0 || rows.length === 0) return null
  const trimmed = rows.map((row) => ({ ...row, cells: row.cells.map((cell) => cell.trim()) }))
  const columns = names.map((column, i) =>
    describeColumn(
      column.trim() || `column ${i + 1}`,
      trimmed.map((row) => row.cells[i] ?? ''),
    ),
  )
  const kept = rows.length > 2 ? trimmed.filter((row) => !isTotal(row.cells, columns)) : trimmed
  if (kept.length === 0) return null
  const totals =
    kept.length === rows.length
      ? []
      : trimmed.filter((row) => isTotal(row.cells, columns)).map((row) => row.place)
  return { name, unit, columns: withValues(columns, kept), rows: kept, totals }
}

export const cellOf = (row: Row, column: number): string => row.cells[column] ?? ''

export const numberOf = (row: Row, column: number): number | null => readNumber(cellOf(row, column))

export const dateOf = (row: Row, column: number, columns: readonly Column[]): string | null =>
  readDate(cellOf(row, column), columns[column]?.dayFirst)

export const valuesOf = (table: Table, column: number): readonly string[] =>
  table.columns[column]?.values ?? []

const withValues = (columns: readonly Column[], rows: readonly Row[]): Column[] =>
  columns.map((column, i) => {
    const values = new Set(rows.map((row) => row.cells[i] ?? ''))
    values.delete('')
    return { ...column, values: [...values] }
  })

/** Tables with the same columns as one, so that "in all files" can be asked. */
export const joinRows = (tables: readonly Table[]): Table | null => {
  const first = tables[0]
  if (!first) return null
  const same = tables.filter(
    (t) => t.columns.map((c) => c.name).join('\n') === first.columns.map((c) => c.name).join('\n'),
  )
  if (same.length < 2) return null
  const rows = same.flatMap((t) => t.rows)
  return {
    ...first,
    name: same.map((t) => t.name).join(' + '),
    columns: withValues(first.columns, rows),
    rows,
    totals: [],
  }
}

/** The column that says who: a customer, an employee, a name. */
export const personColumn = (table: Table): number => {
  const person = table.columns.findIndex((c) => {
    const meant = conceptsOf(c.name)
    return c.kind === 'text' && !c.idLike && (meant.has('customer') || meant.has('person'))
  })
  return person >= 0 ? person : labelColumn(table)
}

/** The column that names a row for people: a name if there is one, else the first text, else the first. */
export const labelColumn = (table: Table): number => {
  const named = table.columns.findIndex((c) => c.kind === 'text' && /name|title|姓名|名称|名字/i.test(c.name))
  if (named >= 0) return named
  const unique = table.columns.findIndex(
    (c, i) => (c.kind === 'text' || c.idLike) && valuesOf(table, i).length === table.rows.length,
  )
  if (unique >= 0) return unique
  const text = table.columns.findIndex((c) => c.kind === 'text')
  return Math.max(0, text)
}
