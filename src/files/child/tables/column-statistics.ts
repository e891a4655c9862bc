import type { ColumnType, PreparedColumn } from '../../../state/files/prepared-files.ts'
import { cutText } from '../../../state/text/cut-text.ts'
import { detectCellKind, isNullCell, parseCellNumber, toIsoDate } from './cell-values.ts'

const maxDistinct = 1000
const maxSamples = 5
const sampleChars = 80

type CellKind = Exclude<ColumnType, 'empty'>
type ValueCount = { kind: CellKind; count: number }

/** One pass over the cells of a column. Counts up to 1,000 distinct values and parses each once, at the end. */
const createColumn = (name: string) => {
  const kinds = { integer: 0, number: 0, boolean: 0, date: 0, text: 0 }
  const counts = new Map<string, ValueCount>()
  let hasManyValues = false
  let isText = false
  let nulls = 0
  let low = Number.POSITIVE_INFINITY
  let high = Number.NEGATIVE_INFINITY
  let sum = 0
  let first: string | null = null
  let last: string | null = null

  const addValue = (cell: string, kind: CellKind, count: number): void => {
    kinds[kind] += count
    if (kind === 'integer' || kind === 'number') {
      const value = parseCellNumber(cell)
      if (value < low) low = value
      if (value > high) high = value
      sum += value * count
    } else if (kind === 'date') {
      const iso = toIsoDate(cell)
      if (first === null || iso < first) first = iso
      if (last === null || iso > last) last = iso
    }
  }
  const toType = (): ColumnType => {
    const { integer, number, boolean, date, text } = kinds
    const filled = integer + number + boolean + date + text
    if (filled === 0) return 'empty'
    if (integer === filled) return 'integer'
    if (integer + number === filled) return 'number'
    if (boolean === filled) return 'boolean'
    return date === filled ? 'date' : 'text'
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
      const count = kinds.integer + kinds.number
      return {
        name,
        type,
        nulls,
        distinct: hasManyValues ? null : counts.size,
        min: isNumber ? low : type === 'date' ? first : null,
        max: isNumber ? high : type === 'date' ? last : null,
        mean: isNumber ? Number((sum / count).toPrecision(12)) : null,
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
      for (const row of batch)
        for (let index = 0; index < columns.length; index += 1) columns[index]?.add(row[index])
    },
    describe: () => ({ rows, columns: columns.map((column) => column.describe()) }),
  }
}
