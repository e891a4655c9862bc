import type { ColumnType, PreparedColumn } from '../../../state/files/prepared-files.ts'
import { cutText } from '../../../state/text/cut-text.ts'
import { detectCellKind, isNullCell, parseCellNumber, toIsoDate } from './cell-values.ts'

const maxDistinct = 1000
const maxSamples = 5
const sampleChars = 80

type CellKind = Exclude<ColumnType, 'empty'>

/** One pass over the cells of a column. Counts up to 1,000 distinct values and parses each once, at the end. */
const createColumn = (name: string) => {
  const kinds = new Set<CellKind>()
  const counts = new Map<string, { kind: CellKind; count: number }>()
  let hasManyValues = false
  let isText = false
  let nulls = 0
  // of numbers, or of dates as texts: a column of both is text
  let min: number | string | null = null
  let max: number | string | null = null
  let sum = 0
  let numbers = 0

  const addValue = (cell: string, kind: CellKind, count: number): void => {
    kinds.add(kind)
    if (kind === 'text' || kind === 'boolean') return
    const value = kind === 'date' ? toIsoDate(cell) : parseCellNumber(cell)
    if (min === null || value < min) min = value
    if (max === null || value > max) max = value
    if (typeof value === 'string') return
    sum += value * count
    numbers += count
  }
  const toType = (): ColumnType => {
    const [type = 'empty', ...others] = kinds
    if (others.length === 0) return type
    return [...kinds].every((kind) => kind === 'integer' || kind === 'number') ? 'number' : 'text'
  }
  return {
    add(raw: string | undefined): void {
      const cell = raw === undefined ? '' : raw.trim()
      const entry = counts.get(cell)
      if (entry) entry.count += 1
      else if (isNullCell(cell)) nulls += 1
      // one text makes the whole column text
      else if (hasManyValues) addValue(cell, isText ? 'text' : detectCellKind(cell), 1)
      else {
        const kind = detectCellKind(cell)
        isText ||= kind === 'text'
        counts.set(cell, { kind, count: 1 })
        hasManyValues = counts.size > maxDistinct
      }
    },
    describe(): PreparedColumn {
      for (const [cell, { kind, count }] of counts) addValue(cell, kind, count)
      const type = toType()
      const isNumber = type === 'integer' || type === 'number'
      const range = isNumber || type === 'date' ? { min, max } : { min: null, max: null }
      return {
        name,
        type,
        nulls,
        distinct: hasManyValues ? null : counts.size,
        ...range,
        mean: isNumber ? Number((sum / numbers).toPrecision(12)) : null,
        samples: [...counts.keys()]
          .slice(0, maxSamples)
          .map((value) => cutText(value.toWellFormed(), sampleChars)),
      }
    },
  }
}

/** The statistics of all columns of a table, from batches of its rows. */
export const createStatistics = (header: readonly string[]) => {
  const columns = header.map(createColumn)
  let rows = 0
  return {
    add(batch: readonly string[][]): void {
      rows += batch.length
      for (const row of batch) for (const [index, column] of columns.entries()) column.add(row[index])
    },
    describe: () => ({ rows, columns: columns.map((column) => column.describe()) }),
  }
}
