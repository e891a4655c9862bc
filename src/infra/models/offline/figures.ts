import type { Json } from '../../../state/runtime-state.ts'
import { periodOf } from './dates.ts'
import { passes, showFilter } from './filters.ts'
import { labelOf, placesOf, rowCount, say, whereOf } from './frames.ts'
import { applied, type Expression, type FunctionName, type Ledger, showExpression, term } from './ledger.ts'
import { bareStyle, decimalsOf, type NumberStyle, plain, show } from './numbers.ts'
import type { Measure, Query } from './query.ts'
import { cellOf, dateOf, numberOf, type Row, valuesOf } from './tables.ts'
import { type Language, shorten } from './text.ts'

/** What all answers from tables are built of: rows, terms of a figure, its label, its source. */

/** An answer: the sentence, and the bare values in it for structured output. */
export type Finding = {
  text: string
  number?: number
  name?: string
  names?: readonly string[]
  rows?: readonly Record<string, Json>[]
  /** Nothing was found; the text says so. */
  empty?: boolean
}

export const rowsOf = (query: Query): Row[] =>
  query.table.rows.filter((row) => query.filters.every((filter) => passes(row, filter, query.table)))

export const columnName = (query: Query, column: number): string =>
  column === -1 ? 'file' : (query.table.columns[column]?.name ?? '')

/** The name of what rows are grouped by: a column, its month, the file. */
export const groupName = (query: Query): string => {
  if (!query.group) return ''
  const name = columnName(query, query.group.column)
  return query.group.part && query.group.part !== 'day' ? `${query.group.part} (${name})` : name
}

export const measureName = (query: Query, language: Language, measure: Measure = query.measure): string => {
  if (measure.kind === 'rows') {
    if (query.group) return language === 'zh' ? '行' : 'rows'
    const subject = query.asked.subject.trim()
    if (/^(?:who|的|times?|lines?|percent\w*|of)?$/i.test(subject)) return language === 'zh' ? '行' : 'rows'
    return shorten(subject, 40)
  }
  if (measure.kind === 'distinct')
    return `${language === 'zh' ? '不同的 ' : 'different '}${columnName(query, measure.column)}`
  if (measure.kind === 'product')
    return `${columnName(query, measure.column)} × ${columnName(query, measure.by)}`
  return columnName(query, measure.column)
}

export const styleOf = (query: Query, measure: Measure = query.measure): NumberStyle => {
  if (measure.kind === 'column') return query.table.columns[measure.column]?.style ?? bareStyle
  if (measure.kind !== 'product') return bareStyle
  const style = query.table.columns[measure.by]?.style ?? bareStyle
  return {
    ...style,
    decimals: Math.min(6, style.decimals + (query.table.columns[measure.column]?.style.decimals ?? 0)),
  }
}

/** The terms a figure is made of, one per row; rows without a number give none. Counts name the rows by their place. */
export const termsOf = (
  query: Query,
  rows: readonly Row[],
  measure: Measure = query.measure,
): Expression[] => {
  if (measure.kind === 'rows') return rows.map((row) => term(row.place))
  if (measure.kind === 'distinct') {
    const first = new Map<string, Row>()
    for (const row of rows) {
      const cell = cellOf(row, measure.column)
      if (cell !== '' && !first.has(cell)) first.set(cell, row)
    }
    return [...first.values()].map((row) => term(row.place))
  }
  if (measure.kind === 'column') return rows.flatMap((row) => numberOf(row, measure.column) ?? []).map(term)
  return rows.flatMap((row) => {
    const a = numberOf(row, measure.column)
    const b = numberOf(row, measure.by)
    return a === null || b === null
      ? []
      : [{ text: `${plain(a)} * ${b < 0 ? `(${plain(b)})` : plain(b)}`, local: a * b }]
  })
}

export const functionOf = (query: Query, measure: Measure = query.measure): FunctionName =>
  measure.kind === 'rows' || measure.kind === 'distinct'
    ? 'count'
    : query.aggregate === 'count'
      ? 'sum'
      : query.aggregate

export type Figure = {
  value: number
  shown: string
  work: string
  terms: readonly Expression[]
  expression: Expression
}

/** One figure over rows, its value from the ledger. */
export const figureOf = (
  query: Query,
  rows: readonly Row[],
  ledger: Ledger,
  measure: Measure = query.measure,
): Figure => {
  const terms = termsOf(query, rows, measure)
  const name = functionOf(query, measure)
  const { value, expression } =
    terms.length === 0 ? { value: 0, expression: applied(name, [term(0)]) } : ledger.apply(name, terms)
  const extra = name === 'avg' || name === 'median' ? 2 : Math.min(6, decimalsOf(value))
  const shown = name === 'count' ? show(value) : show(value, styleOf(query, measure), extra)
  return { value, shown, work: name === 'count' ? '' : showExpression(name, terms, value), terms, expression }
}

export const filterText = (query: Query, language: Language, skip = -2): string =>
  whereOf(
    language,
    query.filters.filter((filter) => filter.column !== skip).map((filter) => showFilter(filter, query.table)),
  )

export const figureLabel = (query: Query, language: Language, measure: Measure = query.measure): string => {
  const name = functionOf(query, measure)
  return labelOf(language, name, measureName(query, language, measure))
}

/** `12 rows: sales.csv, lines 2-13`. */
export const sourceOf = (query: Query, rows: readonly Row[], language: Language): string =>
  `${rowCount(language, rows.length)}${language === 'zh' ? '：' : ': '}${placesOf(language, rows, query.table)}`

/** What to add about rows that were left out, so that a total can be checked. */
export const remarksOf = (query: Query, rows: readonly Row[], figure: Figure, language: Language): string => {
  const missing =
    query.measure.kind === 'column' || query.measure.kind === 'product'
      ? rows.length - figure.terms.length
      : 0
  const skipped = missing > 0 ? say.skipped(language, missing, measureName(query, language)) : ''
  return skipped + (query.table.totals.length > 0 ? say.totals(language, query.table.totals.join(', ')) : '')
}

/** No row passed the conditions: says so, and which values there are, so that the next question can be right. */
export const nothingMatches = (query: Query, language: Language): Finding => {
  const hints = query.filters.flatMap((filter) => {
    if (filter.kind !== 'values') return []
    const values = valuesOf(query.table, filter.column)
    return [
      say.values(language, columnName(query, filter.column), shorten(values.slice(0, 12).join(', '), 200)),
    ]
  })
  return {
    text: [say.noRows(language, filterText(query, language), query.table.name), ...hints].join(' '),
    number: 0,
    names: [],
    rows: [],
    empty: true,
  }
}

/** The key a row is grouped by. */
const keyOf = (query: Query, row: Row): string => {
  if (!query.group) return ''
  if (query.group.column === -1) return row.file
  const { column, part } = query.group
  const date = part ? dateOf(row, column, query.table.columns) : null
  return date && part ? periodOf(date, part) : cellOf(row, column)
}

export const groupRows = (query: Query, rows: readonly Row[]): Map<string, Row[]> => {
  const groups = new Map<string, Row[]>()
  for (const row of rows) {
    const key = keyOf(query, row)
    if (key === '') continue
    const open = groups.get(key)
    if (open) open.push(row)
    else groups.set(key, [row])
  }
  return groups
}

/** A row as data: column name to number or text. */
export const recordOf = (query: Query, row: Row): Record<string, Json> =>
  Object.fromEntries(
    query.table.columns.map((column, i) => [
      column.name,
      column.kind === 'number' ? (numberOf(row, i) ?? cellOf(row, i)) : cellOf(row, i),
    ]),
  )

/** A row for people: `product: Widget, price: 10`. */
export const rowText = (query: Query, row: Row, max = 8): string =>
  query.table.columns
    .slice(0, max)
    .map((column, i) => `${column.name}: ${shorten(cellOf(row, i), 80)}`)
    .join(', ')
