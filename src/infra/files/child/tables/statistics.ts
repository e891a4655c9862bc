import { cutText } from '../../../../state/cut-text.ts'
import type { ColumnType, PreparedColumn } from '../../../../state/files/prepared.ts'
import { isNull, isoDate, kindOf, numberOf } from './values.ts'

const mostDistinct = 1000
const mostSamples = 5
const sampleChars = 80

type Kind = Exclude<ColumnType, 'empty'>
type Seen = { kind: Kind; count: number }

/** One pass over the cells of a column. Values that come again and again are counted, and looked at once, at the end. */
const createColumn = (name: string) => {
  const kinds = { integer: 0, number: 0, boolean: 0, date: 0, text: 0 }
  const seen = new Map<string, Seen>()
  let many = false
  let isText = false
  let nulls = 0
  let low = Number.POSITIVE_INFINITY
  let high = Number.NEGATIVE_INFINITY
  let sum = 0
  let first: string | null = null
  let last: string | null = null

  const take = (cell: string, kind: Kind, count: number): void => {
    kinds[kind] += count
    if (kind === 'integer' || kind === 'number') {
      const value = numberOf(cell)
      if (value < low) low = value
      if (value > high) high = value
      sum += value * count
    } else if (kind === 'date') {
      const iso = isoDate(cell)
      if (first === null || iso < first) first = iso
      if (last === null || iso > last) last = iso
    }
  }
  const typeOf = (): ColumnType => {
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
      const known = seen.get(cell)
      if (known) known.count += 1
      else if (isNull(cell)) nulls += 1
      // one text makes the column text, whatever comes after it
      else if (many) take(cell, isText ? 'text' : kindOf(cell), 1)
      else {
        const kind = kindOf(cell)
        isText ||= kind === 'text'
        seen.set(cell, { kind, count: 1 })
        many = seen.size > mostDistinct
      }
    },
    describe(): PreparedColumn {
      for (const [cell, { kind, count }] of seen) take(cell, kind, count)
      const type = typeOf()
      const isNumber = type === 'integer' || type === 'number'
      const count = kinds.integer + kinds.number
      return {
        name,
        type,
        nulls,
        distinct: many ? null : seen.size,
        min: isNumber ? low : type === 'date' ? first : null,
        max: isNumber ? high : type === 'date' ? last : null,
        mean: isNumber ? Number((sum / count).toPrecision(12)) : null,
        samples: [...seen.keys()]
          .slice(0, mostSamples)
          .map((value) => cutText(value.toWellFormed(), sampleChars)),
      }
    },
  }
}

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
