import { conceptsOf, findColumn, findConcept } from './concepts.ts'
import type { DatePart } from './dates.ts'
import type { Asked } from './intent.ts'
import type { Group, Measure } from './query.ts'
import { cellOf, type Row, type Table } from './tables.ts'
import { readText, type Text } from './text.ts'

/** Columns a question speaks of: the number it is about, and what to group by. */

export type Mentioned = { column: number; score: number; at: number }

export const mentionedColumns = (text: Text, table: Table): Mentioned[] =>
  table.columns
    .flatMap((column, i) => {
      const mention = findColumn(text, column.name)
      return mention ? [{ column: i, score: mention.score, at: mention.at }] : []
    })
    .sort((a, b) => b.score - a.score)

export const bestColumn = (
  phrase: string,
  table: Table,
  accept: (column: number) => boolean,
  least = 0.45,
): number => {
  const found = mentionedColumns(readText(phrase), table).filter(
    ({ column, score }) => score >= least && accept(column),
  )
  return found[0]?.column ?? -1
}

const parts: readonly (readonly [RegExp, DatePart])[] = [
  [/^(?:years?|annum)\b|^年/i, 'year'],
  [/^quarters?\b|^季/i, 'quarter'],
  [/^months?\b|^月/i, 'month'],
  [/^(?:days?|dates?)\b|^[日天]/i, 'day'],
]

export const groupOf = (phrase: string, table: Table): Group | null => {
  if (/^files?\b|^文件/i.test(phrase)) return { column: -1, part: null }
  const exact = bestColumn(
    phrase,
    table,
    (i) => table.columns[i]?.kind !== 'number' || (table.columns[i]?.idLike ?? false),
  )
  const dated = table.columns.findIndex((column) => column.kind === 'date')
  const part = parts.find(([pattern]) => pattern.test(phrase))?.[1]
  if (part && dated >= 0 && (exact < 0 || table.columns[exact]?.kind === 'date'))
    return { column: dated, part }
  return exact >= 0 ? { column: exact, part: table.columns[exact]?.kind === 'date' ? 'day' : null } : null
}

const has = (table: Table, column: number, concept: string): boolean =>
  conceptsOf(table.columns[column]?.name ?? '').has(concept)

const measures = (table: Table): number[] =>
  table.columns.flatMap((column, i) => (column.kind === 'number' && !column.idLike ? [i] : []))

const moneyWords = new Set(['revenue'])

const productOf = (table: Table): Measure | null => {
  const quantity = measures(table).find((i) => has(table, i, 'quantity'))
  const price = measures(table).find((i) => has(table, i, 'price'))
  return quantity !== undefined && price !== undefined
    ? { kind: 'product', column: quantity, by: price }
    : null
}

/** The number a question is about; `choices` when several columns fit equally and the words don't tell. */
export const findMeasure = (
  asked: Asked,
  rest: Text,
  table: Table,
  taken: ReadonlySet<number>,
): { measure: Measure | null; named: boolean; choices: number[] } => {
  const numeric = measures(table)
  const sure = (column: number) => ({
    measure: { kind: 'column', column } as const,
    named: true,
    choices: [],
  })
  const mentions = mentionedColumns(rest, table).filter(
    ({ column, score }) =>
      numeric.includes(column) ||
      (table.columns[column]?.kind === 'number' && score >= 1 && !taken.has(column)),
  )
  const named = mentions.filter(({ score }) => score > 0.45)[0]
  const money = findConcept(rest, moneyWords) !== null || /\b(?:value|worth)\b|总值|价值/i.test(rest.raw)
  const direct = named && named.score > 0.5 ? named : undefined
  if (direct) return sure(direct.column)
  const product = productOf(table)
  if (money && product && !numeric.some((i) => has(table, i, 'revenue')))
    return { measure: product, named: true, choices: [] }
  const meant = mentions[0]
  if (meant && (numeric.length === 1 || mentions.filter(({ score }) => score === meant.score).length === 1))
    return sure(meant.column)
  const free = numeric.filter((i) => !taken.has(i) || numeric.length === 1)
  const only = free.length === 1 ? free[0] : undefined
  if (only !== undefined) return { measure: { kind: 'column', column: only }, named: false, choices: [] }
  const likely = free.filter((i) => has(table, i, 'revenue'))
  const otherMoney = free.some(
    (i) => !likely.includes(i) && (has(table, i, 'cost') || has(table, i, 'profit')),
  )
  if (likely.length === 1 && likely[0] !== undefined && !otherMoney)
    return { measure: { kind: 'column', column: likely[0] }, named: false, choices: [] }
  const full = likely.length > 1 && !otherMoney ? likely : free
  return { measure: null, named: false, choices: asked.pick?.time ? [] : full }
}

export const notAdditive =
  /price|rate|rating|age$|score|grade|salary|wage|temp|percent|%|margin|population|speed|latency|duration|height|weight|density|价格|单价|率|评分|年龄|分数|成绩|工资|薪|温度/i

export const isEntity = (table: Table, column: number): boolean =>
  table.columns[column]?.kind !== 'number' || (table.columns[column]?.idLike ?? false)

/** Whether a value of the column stands in several rows, so that rows can be grouped by it. */
export const repeats = (rows: readonly Row[], column: number): boolean =>
  column === -1 || new Set(rows.map((row) => cellOf(row, column))).size < rows.length
