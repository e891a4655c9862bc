import { bestColumn, isEntity, notAdditive, repeats } from './columns.ts'
import { partOf } from './dates.ts'
import type { Filter } from './filters.ts'
import type { Aggregate, Asked } from './intent.ts'
import type { Pick } from './pick.ts'
import type { Group, Measure, Query } from './query.ts'
import type { Table } from './tables.ts'

/** Which of the ways to answer a question asks for. */

type Ground = {
  table: Table
  asked: Asked
  aggregate: Aggregate | null
  pick: Pick | null
  group: Group | null
  subject: number
  subjectGroup: Group | null
  measure: Measure | null
  named: boolean
  filters: readonly Filter[]
  wanted: readonly number[]
}
type Shape = {
  kind: Query['kind']
  aggregate: Aggregate
  measure: Measure
  group: Group | null
  pick: Pick | null
  open: boolean
}

const shape = (
  kind: Query['kind'],
  aggregate: Aggregate,
  measure: Measure | null,
  more: Partial<Shape> = {},
): Shape => ({
  kind,
  aggregate,
  measure: measure ?? { kind: 'rows' },
  group: null,
  pick: null,
  open: measure === null,
  ...more,
})

const rowsMeasure: Measure = { kind: 'rows' }

/** Which of the ways to answer fits: group, pick a row, count, add up, look up, list. */
export const shapeOf = (g: Ground): Shape => {
  const { table, asked, aggregate, pick, measure } = g
  if (asked.manner === 'compare') return shapeCompare(g)
  if (asked.manner === 'share') {
    const money = g.named ? measure : rowsMeasure
    return shape('share', g.named ? 'sum' : 'count', money, { group: g.group, open: false })
  }
  if (aggregate === 'count' && !pick) return shapeCount(g)
  if (pick) return shapePick(g)
  if (asked.manner === 'list' && (aggregate === null || g.subject >= 0) && g.group === null) {
    const listed =
      g.subject >= 0 && table.columns[g.subject]?.kind === 'text'
        ? { kind: 'distinct' as const, column: g.subject }
        : rowsMeasure
    return shape(listed.kind === 'distinct' ? 'distinct' : 'rows', 'count', listed, { open: false })
  }
  if (g.group)
    return shape('groups', aggregate ?? (measure ? 'sum' : 'count'), measure ?? rowsMeasure, {
      group: g.group,
      open: measure === null && aggregate !== null,
    })
  const named =
    g.subject >= 0 &&
    table.columns[g.subject]?.kind === 'text' &&
    !g.filters.some((f) => f.column === g.subject)
  if (aggregate === null && named && !g.named)
    return shape('distinct', 'count', { kind: 'distinct', column: g.subject }, { open: false })
  if (aggregate === null && g.filters.length > 0) return shape('lookup', 'sum', measure, { open: false })
  if (aggregate === null && g.subject >= 0)
    return shape('distinct', 'count', { kind: 'distinct', column: g.subject }, { open: false })
  if (
    aggregate === 'sum' &&
    !g.named &&
    g.filters.some((f) => f.kind === 'values') &&
    g.wanted.some((i) => table.columns[i]?.kind === 'text')
  )
    return shape('lookup', 'sum', measure, { open: false })
  return shape('aggregate', aggregate ?? 'sum', measure)
}

const shapeCount = (g: Ground): Shape => {
  const numeric = g.asked.subject ? bestColumn(g.asked.subject, g.table, (i) => !isEntity(g.table, i)) : -1
  if (numeric >= 0)
    return shape(
      g.group ? 'groups' : 'aggregate',
      'sum',
      { kind: 'column', column: numeric },
      { group: g.group },
    )
  const entity =
    g.subject >= 0 &&
    (g.asked.distinct || repeats(g.table.rows, g.subject)) &&
    !g.filters.some((f) => f.column === g.subject)
  const measure: Measure = entity ? { kind: 'distinct', column: g.subject } : rowsMeasure
  return shape(g.group ? 'groups' : 'aggregate', 'count', measure, { group: g.group, open: false })
}

/** "the most orders" counts rows; "the most revenue" and "the most expensive" speak of a column. */
const countsRows = (noun: string, table: Table): boolean => {
  if (bestColumn(noun, table, (i) => !isEntity(table, i)) >= 0) return false
  return (
    /订单|记录|次数/.test(noun) ||
    (/[^s]s$/.test(noun) && noun.length > 3) ||
    bestColumn(noun, table, (i) => isEntity(table, i)) >= 0
  )
}

const shapePick = (g: Ground): Shape => {
  const { table, pick } = g
  if (!pick) return shape('aggregate', 'sum', g.measure)
  const dated = table.columns.findIndex((column) => column.kind === 'date')
  if (pick.time && !g.named && g.aggregate === null && dated >= 0)
    return shape('pick', 'max', { kind: 'column', column: dated }, { pick, open: false })
  const by = g.subjectGroup ?? (g.subject >= 0 ? { column: g.subject, part: null } : null) ?? g.group
  const counts = pick.noun !== '' && countsRows(pick.noun, table)
  const countWanted = counts || pick.counted || g.aggregate === 'count' || (g.measure === null && by !== null)
  if (by && countWanted && (counts || !g.named))
    return shape('groups', 'count', rowsMeasure, { group: by, pick, open: false })
  if (g.group && by && by.column === g.group.column && !g.asked.subject && g.aggregate === null)
    return shape('groups', pick.direction, g.measure, { group: g.group })
  const name = g.measure?.kind === 'column' ? (table.columns[g.measure.column]?.name ?? '') : ''
  const additive = g.aggregate !== null || !notAdditive.test(name)
  if (
    by &&
    g.measure &&
    (by.part !== null || repeats(table.rows, by.column)) &&
    additive &&
    by.column !== (g.measure.kind === 'column' ? g.measure.column : -2)
  )
    return shape(
      'groups',
      g.aggregate === 'avg' || g.aggregate === 'median' ? g.aggregate : 'sum',
      g.measure,
      { group: by, pick },
    )
  return shape('pick', pick.direction, g.measure, { pick })
}

const shapeCompare = (g: Ground): Shape => {
  const values = g.filters.find((filter) => filter.kind === 'values' && filter.values.length > 1)
  const dated = g.filters.find((filter) => filter.kind === 'date' && filter.ranges.length > 1)
  const period =
    dated?.kind === 'date' && dated.ranges[0] ? { column: dated.column, part: partOf(dated.ranges[0]) } : null
  const byFile = new Set(g.table.rows.map((row) => row.file)).size > 1
  const group: Group | null = values
    ? { column: values.column, part: null }
    : (period ?? g.group ?? (byFile ? { column: -1, part: null } : null))
  const open = group !== null && g.measure === null && g.aggregate !== 'count'
  return shape('compare', g.aggregate ?? (g.measure || open ? 'sum' : 'count'), g.measure ?? rowsMeasure, {
    group,
    open: false,
  })
}
