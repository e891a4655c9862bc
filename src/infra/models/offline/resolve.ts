import { bestColumn, findMeasure, groupOf, isEntity, type Mentioned, mentionedColumns } from './columns.ts'
import type { Filter } from './filters.ts'
import { findFilters } from './find-filters.ts'
import type { Asked } from './intent.ts'
import type { Query } from './query.ts'
import { shapeOf } from './shape.ts'
import { personColumn, type Table } from './tables.ts'
import { readText } from './text.ts'

const keepFilters = (now: readonly Filter[], before: readonly Filter[]): Filter[] => [
  ...before.filter((old) => !now.some((filter) => filter.column === old.column)),
  ...now,
]

/** The query a question makes on a table. A follow-up takes what it does not say from `before`. */
export const resolve = (asked: Asked, table: Table, before: Query | null): Query => {
  const base = asked.elliptical && before?.table.name === table.name ? before : null
  const found = findFilters(asked.text.raw, table)
  const rest = readText(found.rest)
  const filters = base ? keepFilters(found.filters, base.filters) : found.filters
  const taken = new Set(filters.map((filter) => filter.column))
  const grouped =
    asked.groupPhrases.map((phrase) => groupOf(phrase, table)).find((group) => group !== null) ?? null
  const who = asked.subject === 'who' ? personColumn(table) : -1
  const subject =
    who >= 0 ? who : asked.subject ? bestColumn(asked.subject, table, (i) => isEntity(table, i)) : -1
  const subjectGroup = asked.subject && asked.subject !== 'who' ? groupOf(asked.subject, table) : null
  const measured = findMeasure(asked, rest, table, taken)
  const mentions = mentionedColumns(rest, table)
  const nothingSaid = asked.aggregate === null && asked.pick === null && asked.manner === 'figure'
  const pick = asked.pick ?? (base && nothingSaid ? base.pick : null)
  const aggregate = asked.aggregate ?? (base && !asked.pick ? base.aggregate : null)
  const manner = nothingSaid && base ? base.asked.manner : asked.manner
  const wanted = mentions.filter(({ score }) => score >= 0.45).map(({ column }) => column)
  const common = {
    table,
    asked: { ...asked, manner },
    filters,
    wanted,
    score: scoreOf(mentions, found.filters, subjectGroup !== null || grouped !== null),
    choices: measured.choices,
  }
  const column = measured.measure ?? (base && !measured.named ? base.measure : null)
  const measure = base && !measured.named && base.measure.kind !== 'rows' ? base.measure : column
  const group = grouped ?? (base && nothingSaid ? base.group : null)
  const shape = shapeOf({
    table,
    asked: common.asked,
    aggregate,
    pick,
    group,
    subject,
    subjectGroup,
    measure,
    named: measured.named,
    filters,
    wanted,
  })
  return { ...common, ...shape, choices: shape.measure.kind === 'rows' && shape.open ? measured.choices : [] }
}

const scoreOf = (mentions: readonly Mentioned[], filters: readonly Filter[], grouped: boolean): number =>
  mentions.slice(0, 4).reduce((sum, mention) => sum + mention.score, 0) + filters.length + (grouped ? 0.3 : 0)
