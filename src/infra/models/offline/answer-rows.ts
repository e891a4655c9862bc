import { answerAggregate } from './answer-figures.ts'
import {
  columnName,
  type Finding,
  filterText,
  nothingMatches,
  recordOf,
  rowsOf,
  rowText,
  sourceOf,
} from './figures.ts'
import { labelOf, placesOf, rowCount, say } from './frames.ts'
import { applied, type Ledger, term } from './ledger.ts'
import { show } from './numbers.ts'
import type { Query } from './query.ts'
import { cellOf, dateOf, labelColumn, numberOf, type Row, valuesOf } from './tables.ts'
import { type Language, shorten } from './text.ts'

/** Answers that are rows: the best one, a list, the values of a column, one cell. */

const mostRows = 40
const mostColumns = 8

const escapeCell = (text: string): string =>
  shorten(text.replace(/\s*\n\s*/g, ' '), 80).replaceAll('|', '\\|')

/** Rows as a Markdown table, the place of each row in front. */
const tableText = (query: Query, rows: readonly Row[], language: Language): string => {
  const columns = query.table.columns.slice(0, mostColumns)
  const files = new Set(rows.map((row) => row.file)).size > 1
  const place = language === 'zh' ? '行' : query.table.unit
  const head = `| ${[place, ...columns.map((column) => escapeCell(column.name))].join(' | ')} |`
  const rule = `|${' --- |'.repeat(columns.length + 1)}`
  const body = rows
    .slice(0, mostRows)
    .map(
      (row) =>
        `| ${[files ? `${row.file} ${row.place}` : row.place, ...columns.map((_, i) => escapeCell(cellOf(row, i)))].join(' | ')} |`,
    )
  const more = rows.length > mostRows ? [say.more(language, rows.length - mostRows)] : []
  return [head, rule, ...body, ...more].join('\n')
}

type Valued = { row: Row; key: number | string }

const valued = (query: Query, rows: readonly Row[]): Valued[] => {
  if (query.measure.kind !== 'column') return []
  const { column } = query.measure
  const dated = query.table.columns[column]?.kind === 'date'
  return rows.flatMap((row): Valued[] => {
    const key = dated ? dateOf(row, column, query.table.columns) : numberOf(row, column)
    return key === null ? [] : [{ row, key }]
  })
}

export const answerPick = (query: Query, ledger: Ledger, language: Language): Finding => {
  const rows = rowsOf(query)
  if (rows.length === 0) return nothingMatches(query, language)
  const all = valued(query, rows)
  const column = query.measure.kind === 'column' ? query.measure.column : -1
  const { direction, n } = query.pick ?? { direction: 'max' as const, n: 1 }
  const sign = direction === 'max' ? -1 : 1
  const sorted = [...all].sort((a, b) => sign * (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
  const first = sorted[0]
  if (!first) return { text: say.noNumbers(language, columnName(query, column)), empty: true }
  const named = namer(query, column, language)
  const title = `${labelFor(query, language, column)}${filterText(query, language)}`
  if (n > 1) {
    const best = sorted.slice(0, n).map(({ row }) => row)
    const bullets = best.map(
      (row, i) =>
        `${i + 1}. **${named(row)}**: ${cellOf(row, column)} (${placesOf(language, [row], query.table)})`,
    )
    return {
      text: [`${title} (${best.length}):`, ...bullets].join('\n'),
      rows: best.map((row) => recordOf(query, row)),
      names: best.map(named),
      name: best.map(named).join(', '),
    }
  }
  const isNumber = typeof first.key === 'number'
  const terms = all.flatMap(({ key }) => (typeof key === 'number' ? [term(key)] : []))
  const value = isNumber ? ledger.apply(direction, terms).value : first.key
  const best = all.filter(({ key }) => key === (isNumber ? value : first.key)).map(({ row }) => row)
  const shown = best.length > 0 ? best : [first.row]
  const style = query.table.columns[column]?.style
  const figure = typeof value === 'number' ? show(value, style) : cellOf(first.row, column)
  const names = shown.map(named)
  const details = shown
    .slice(0, 5)
    .map((row) => `- ${rowText(query, row)} (${placesOf(language, [row], query.table)})`)
  const who = names.slice(0, 5).join(say.and(language))
  const head = query.asked.subject ? `**${who}**, ${figure}` : `**${figure}** (${who})`
  const text = [`${title}: ${head} (${rowCount(language, all.length)})`, ...details].join('\n')
  return {
    text,
    ...(typeof value === 'number' ? { number: value } : {}),
    name: names.join(', '),
    names,
    rows: shown.map((row) => recordOf(query, row)),
  }
}

/** How a row is called in a sentence: by its name where names differ, else by its line. */
const namer = (query: Query, column: number, language: Language): ((row: Row) => string) => {
  const own = labelColumn(query.table)
  const label = own === column && query.table.columns.length > 1 ? (column === 0 ? 1 : 0) : own
  const unique = valuesOf(query.table, label).length >= query.table.rows.length * 0.9
  const asked = query.asked.subject !== '' && query.wanted.some((i) => i === label)
  return (row) => (unique || asked ? cellOf(row, label) : placesOf(language, [row], query.table))
}

const labelFor = (query: Query, language: Language, column: number): string => {
  const name = columnName(query, column)
  const direction = query.pick?.direction ?? 'max'
  if (query.table.columns[column]?.kind !== 'date') return labelOf(language, direction, name)
  if (language === 'zh') return `${name}${direction === 'max' ? '最新' : '最早'}`
  return `${direction === 'max' ? 'Latest' : 'Earliest'} ${name}`
}

export const answerList = (query: Query, language: Language): Finding => {
  const rows = rowsOf(query)
  if (rows.length === 0) return nothingMatches(query, language)
  const where = filterText(query, language)
  const text = `${rowCount(language, rows.length)}${where} (${placesOf(language, rows, query.table)}):\n\n${tableText(query, rows, language)}`
  const label = labelColumn(query.table)
  return {
    text,
    number: rows.length,
    rows: rows.slice(0, 500).map((row) => recordOf(query, row)),
    names: rows.map((row) => cellOf(row, label)),
  }
}

export const answerDistinct = (query: Query, ledger: Ledger, language: Language): Finding => {
  const rows = rowsOf(query)
  if (rows.length === 0) return nothingMatches(query, language)
  const column = query.measure.kind === 'distinct' ? query.measure.column : 0
  const first = new Map<string, Row[]>()
  for (const row of rows) {
    const cell = cellOf(row, column)
    if (cell !== '') first.set(cell, [...(first.get(cell) ?? []), row])
  }
  const count = ledger.value(
    applied(
      'count',
      [...first.values()].map((found) => term(found[0]?.place ?? 0)),
    ),
  )
  const title = `${columnName(query, column)}${filterText(query, language)}: **${count}** (${sourceOf(query, rows, language)})`
  const bullets = [...first]
    .slice(0, 60)
    .map(([value, found]) => `- ${value} (${placesOf(language, found, query.table)})`)
  const more = first.size > 60 ? [say.more(language, first.size - 60)] : []
  return {
    text: [title, ...bullets, ...more].join('\n'),
    number: count,
    names: [...first.keys()],
    name: [...first.keys()].join(', '),
    rows: rows.map((row) => recordOf(query, row)),
  }
}

/** "the price of Widget": the cells asked for of the rows that fit; a measure over several rows is added up. */
export const answerLookup = (query: Query, ledger: Ledger, language: Language): Finding => {
  const rows = rowsOf(query)
  if (rows.length === 0) return nothingMatches(query, language)
  const fixed = new Set(query.filters.map((filter) => filter.column))
  const wanted = query.wanted.filter((column) => !fixed.has(column) || query.wanted.length === 1).slice(0, 5)
  const first = wanted[0]
  const numeric =
    first !== undefined &&
    query.table.columns[first]?.kind === 'number' &&
    !query.table.columns[first]?.idLike
  if (
    numeric &&
    rows.length > 1 &&
    first !== undefined &&
    !/price|rate|age$|score|salary|价格|单价|率|年龄|工资/i.test(columnName(query, first))
  )
    return answerAggregate(
      { ...query, aggregate: 'sum', measure: { kind: 'column', column: first } },
      ledger,
      language,
    )
  if (
    first === undefined ||
    rows.length > 12 ||
    (query.filters.every(({ kind }) => kind === 'number') && rows.length > 1)
  )
    return answerList(query, language)
  const values = [...new Set(rows.map((row) => cellOf(row, first)))]
  const lines = rows.map((row) => {
    const cells = wanted
      .map((column) => `${columnName(query, column)}: **${cellOf(row, column)}**`)
      .join(', ')
    return `- ${cells} (${placesOf(language, [row], query.table)}: ${rowText(query, row)})`
  })
  const where = filterText(query, language)
  const number = rows.length === 1 && numeric && rows[0] ? numberOf(rows[0], first) : null
  const text = `${columnName(query, first)}${where}: **${values.join(say.and(language))}**\n${lines.join('\n')}`
  return {
    text,
    ...(number === null ? {} : { number }),
    name: values.join(', '),
    names: values,
    rows: rows.map((row) => recordOf(query, row)),
  }
}
