import { type DateRange, inRange, showRange } from './dates.ts'
import { plain } from './numbers.ts'
import { cellOf, dateOf, isYes, numberOf, type Row, type Table } from './tables.ts'

/** Conditions on rows, found in the words of a question and the values of a table. */

export type Comparison = '>' | '>=' | '<' | '<=' | '=' | '!='
export type Filter =
  | { kind: 'values'; column: number; values: readonly string[]; not: boolean }
  | { kind: 'number'; column: number; comparison: Comparison; value: number }
  /** Within any of the periods. */
  | { kind: 'date'; column: number; ranges: readonly DateRange[] }
  | { kind: 'flag'; column: number; yes: boolean }

export const passes = (row: Row, filter: Filter, table: Table): boolean => {
  if (filter.kind === 'values') {
    const cell = cellOf(row, filter.column).toLowerCase()
    return filter.values.some((value) => value.toLowerCase() === cell) !== filter.not
  }
  if (filter.kind === 'flag') return isYes(cellOf(row, filter.column)) === filter.yes
  if (filter.kind === 'date') {
    const date = dateOf(row, filter.column, table.columns)
    return date !== null && filter.ranges.some((range) => inRange(date, range))
  }
  const value = numberOf(row, filter.column)
  if (value === null) return false
  const tests: Record<Comparison, boolean> = {
    '>': value > filter.value,
    '>=': value >= filter.value,
    '<': value < filter.value,
    '<=': value <= filter.value,
    '=': value === filter.value,
    '!=': value !== filter.value,
  }
  return tests[filter.comparison]
}

export const showFilter = (filter: Filter, table: Table): string => {
  const name = table.columns[filter.column]?.name ?? ''
  if (filter.kind === 'values') return `${name} ${filter.not ? '!=' : '='} ${filter.values.join(' / ')}`
  if (filter.kind === 'flag') return `${name} = ${filter.yes ? 'yes' : 'no'}`
  if (filter.kind === 'date') return `${name} ${filter.ranges.map(showRange).join(' / ')}`
  return `${name} ${filter.comparison} ${plain(filter.value)}`
}
