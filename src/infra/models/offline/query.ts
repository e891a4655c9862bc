import type { DatePart } from './dates.ts'
import type { Filter } from './filters.ts'
import type { Aggregate, Asked } from './intent.ts'
import type { Pick } from './pick.ts'
import { type Table, valuesOf } from './tables.ts'

/** A question brought onto one table: which rows, which column, by what. */

export type Measure =
  | { kind: 'column'; column: number }
  /** Quantity times price, where a table has no amount of its own. */
  | { kind: 'product'; column: number; by: number }
  | { kind: 'rows' }
  | { kind: 'distinct'; column: number }
/** Column -1 is the file the row stands in. */
export type Group = { column: number; part: DatePart | null }
export type Query = {
  table: Table
  asked: Asked
  kind: 'aggregate' | 'groups' | 'rows' | 'pick' | 'distinct' | 'lookup' | 'share' | 'compare'
  aggregate: Aggregate
  measure: Measure
  group: Group | null
  pick: Pick | null
  filters: readonly Filter[]
  /** Columns asked for, for lookups, lists and comparisons. */
  wanted: readonly number[]
  /** How well the table fits; 0 when nothing of the question was found in it. */
  score: number
  /** Columns that fit equally well when the measure is not clear. */
  choices: readonly number[]
}

/** Values of the group column in the order of the question, for comparisons. */
export const comparedValues = (query: Query): readonly string[] => {
  if (!query.group) return []
  const { column } = query.group
  const filter = query.filters.find((f) => f.kind === 'values' && f.column === column)
  return filter?.kind === 'values'
    ? [...filter.values]
    : column === -1
      ? [...new Set(query.table.rows.map((row) => row.file))]
      : query.group.part
        ? []
        : valuesOf(query.table, column)
}
