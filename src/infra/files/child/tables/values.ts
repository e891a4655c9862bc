import type { ColumnType } from '../../../../state/files/prepared.ts'

/** What one cell is, by its text alone. */

const integer = /^[-+]?(0|[1-9]\d{0,14})$/
const decimal = /^[-+]?(\d{1,15}(\.\d{1,15})?|\.\d{1,15})([eE][-+]?\d{1,3})?$/
const grouped = /^[-+]?\d{1,3}(,\d{3})+(\.\d{1,15})?$/
/** ISO, or with slashes, year first; the only orders that mean one thing. */
const date =
  /^(\d{4})[-/](\d{1,2})[-/](\d{1,2})([T ]\d{1,2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[-+]\d{2}:?\d{2})?)?$/

export const kindOf = (cell: string): Exclude<ColumnType, 'empty'> => {
  const first = cell.charCodeAt(0)
  // letters begin no number and no date
  if (first > 57) return cell.length <= 5 && /^(true|false)$/i.test(cell) ? 'boolean' : 'text'
  if (integer.test(cell)) return 'integer'
  // a leading zero is part of a code, not of a number
  if (grouped.test(cell)) return 'number'
  if (decimal.test(cell)) return /^[-+]?0\d/.test(cell) ? 'text' : 'number'
  return date.test(cell) ? 'date' : 'text'
}

export const isNull = (cell: string): boolean =>
  cell === '' || (cell.length <= 4 && /^(null|n\/a|na|nan|none|-)$/i.test(cell))

export const numberOf = (cell: string): number => Number(cell.includes(',') ? cell.replaceAll(',', '') : cell)

/** ISO, so that dates sort as texts. */
export const isoDate = (cell: string): string => {
  const match = date.exec(cell)
  if (!match) return cell
  const [, year = '', month = '', day = '', time = ''] = match
  return `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}${time.replace('T', ' ')}`
}
