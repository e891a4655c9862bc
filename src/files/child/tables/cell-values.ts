import type { ColumnType } from '../../../state/files/prepared-files.ts'

const integer = /^[-+]?(0|[1-9]\d{0,14})$/
const decimal = /^[-+]?(\d{1,15}(\.\d{1,15})?|\.\d{1,15})([eE][-+]?\d{1,3})?$/
const grouped = /^[-+]?\d{1,3}(,\d{3})+(\.\d{1,15})?$/
/** ISO, or with slashes, year first: every other order is ambiguous. */
const date =
  /^(\d{4})[-/](\d{1,2})[-/](\d{1,2})([T ]\d{1,2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[-+]\d{2}:?\d{2})?)?$/

/** The type of one cell, by its text alone. */
export const detectCellKind = (cell: string): Exclude<ColumnType, 'empty'> => {
  const first = cell.charCodeAt(0)
  // no number and no date begins with a letter
  if (first > 57) return cell.length <= 5 && /^(true|false)$/i.test(cell) ? 'boolean' : 'text'
  if (integer.test(cell)) return 'integer'
  if (grouped.test(cell)) return 'number'
  // a leading zero belongs to a code, not to a number
  if (decimal.test(cell)) return /^[-+]?0\d/.test(cell) ? 'text' : 'number'
  return date.test(cell) ? 'date' : 'text'
}

/** Whether a cell is empty or one of the usual words for it. */
export const isNullCell = (cell: string): boolean =>
  cell === '' || (cell.length <= 4 && /^(null|n\/a|na|nan|none|-)$/i.test(cell))

/** The number of a cell; commas group thousands. */
export const parseCellNumber = (cell: string): number =>
  Number(cell.includes(',') ? cell.replaceAll(',', '') : cell)

/** A date in ISO form, so that dates sort as texts. */
export const toIsoDate = (cell: string): string => {
  const match = date.exec(cell)
  if (!match) return cell
  const [, year = '', month = '', day = '', time = ''] = match
  return `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}${time.replace('T', ' ')}`
}
