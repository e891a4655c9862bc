import type { Cell } from '../../../files/child/reader-definition.ts'
import { fileBounds } from '../../../files/protocol/child-protocol.ts'
import { cutText } from '../../../state/text/cut-text.ts'
import { findFamily, isNullWord } from './cell-values.ts'

/** Of a row of CSV. */
export const maxRecordChars = 1_000_000

/** The rows of one table of a file, in batches, without the header. */
export type RowSource = {
  /** The sheet or the path inside the file; null when the file is the table. */
  part: string | null
  header: readonly string[]
  /** How many of its columns the first line of a text file has cells for, where others have more. */
  named?: number
  /** The rows below the header; a shorter row lacks its last cells. May be called again. */
  batches(): AsyncIterable<Cell[][]>
  /** What was decided about the table and what could not be read, complete once all rows were. */
  notes(): string[]
  /** The decimal sign that the format suggests where no column decides. */
  decimalHint?: 'point'
}

/** Names for columns: trimmed, not empty, unique regardless of case. */
export const toColumnNames = (cells: readonly Cell[]): string[] => {
  const taken = new Set<string>()
  const lastCounts = new Map<string, number>()
  return cells.map((cell, index) => {
    const base = String(cell).replace(/\s+/g, ' ').trim().slice(0, 120) || `column_${index + 1}`
    let name = base
    let count = lastCounts.get(base.toLowerCase()) ?? 1
    while (taken.has(name.toLowerCase())) {
      count += 1
      name = `${base}_${count}`
    }
    lastCounts.set(base.toLowerCase(), count)
    taken.add(name.toLowerCase())
    return name
  })
}

/** Whether a cell has more than spaces. */
export const isFilledCell = (cell: Cell | undefined): cell is Cell =>
  cell !== undefined && (typeof cell === 'number' || cell.trim() !== '')
/** Below the header of a printed table. */
const rule = /^\s*[-=+]{3,}\s*$/
const isFilled = (cells: readonly Cell[]): boolean =>
  cells.some((cell) => isFilledCell(cell) && (cells.length === 1 || !rule.test(String(cell))))

/** Rows, and cells in all, that decide where the table begins; above the header are at most so many rows. */
const sampledRows = 100
const sampledCells = 100_000
const maxRowsAbove = 20

type Kind = ReturnType<typeof findFamily> | 'text' | 'none'

/** By its text alone; an empty cell, and a word for one, is of no kind. */
const findKind = (cell: Cell): Kind => {
  const text = typeof cell === 'string' ? cell.trim() : cell
  return text === '' || isNullWord(String(text)) ? 'none' : (findFamily(text) ?? 'text')
}

/** A row of the sample, and the kinds of its cells. */
type SampledRow = { cells: readonly Cell[]; kinds: readonly Kind[]; filled: number; width: number }

const toSampledRow = (cells: readonly Cell[]): SampledRow => ({
  cells,
  kinds: cells.slice(0, fileBounds.columns).map(findKind),
  filled: cells.filter(isFilledCell).length,
  width: cells.findLastIndex(isFilledCell) + 1,
})

/** How many rows are above the header, how many lines it has, and how many columns there are. */
type Layout = { above: number; lines: 0 | 1 | 2; width: number }

/** Decides by the first rows. A header is a row of names, or one whose kinds differ from those of the columns below. */
const decideLayout = (rows: readonly SampledRow[]): Layout => {
  const usual = findUsualWidth(rows)
  const start = rows.slice(0, maxRowsAbove + 1).findIndex(({ filled }) => filled * 2 > usual)
  const found = start < 0 ? 0 : findNames(rows, start, usual)
  const pair = [found, found - 1].find((at) => at >= 0 && areTwoLines(rows, at))
  const above = pair ?? found
  const lines = pair === undefined ? (isHeader(rows, above) ? 1 : 0) : 2
  return { above, lines, width: Math.max(...rows.slice(above).map(({ width }) => width)) }
}

/** Whether a header has a line of names, of which some span columns, above one of years, parts or units. */
const areTwoLines = (rows: readonly SampledRow[], at: number): boolean => {
  const [upper, lower, ...below] = rows.slice(at)
  if (!upper || !lower || below.length < 2) return false
  const columns = [...lower.kinds.keys()]
  const isBlank = (row: SampledRow, column: number): boolean => (row.kinds[column] ?? 'none') === 'none'
  const isNamed = (row: SampledRow, column: number): boolean =>
    row.kinds[column] === 'text' || isBlank(row, column) || isYear(row.cells[column])
  const isLabel = (column: number): boolean =>
    (isBlank(upper, column) || isBlank(lower, column)) && below.every((row) => !isBlank(row, column))
  const hasSpan = columns.some((column) => isBlank(upper, column) && !isBlank(lower, column) && column > 0)
  const isText = (column: number): boolean => findKindsBelow(rows, at + 1, column).has('text')
  const isPart = (column: number): boolean => !isBlank(lower, column) && !isText(column)
  return (
    (isLabel(0) || (isPart(0) && columns.every((column) => !isBlank(upper, column)))) &&
    columns.every((column) => isNamed(upper, column) && isNamed(lower, column)) &&
    columns.slice(1).every((column) => isPart(column) || (isBlank(lower, column) && isText(column))) &&
    (hasSpan || columns.every((column) => !isYear(lower.cells[column])))
  )
}

/** The names of columns; one of the upper line is that of the columns to its right without one, too. */
const joinNames = ([first = [], second]: readonly (readonly Cell[])[], width: number): string[] => {
  let group: Cell = ''
  return Array.from({ length: width }, (_, at) => {
    const [upper = '', lower = ''] = [first[at], second?.[at]]
    if (!second || !isFilledCell(lower)) group = ''
    if (isFilledCell(upper)) group = upper
    return `${group} ${lower}`
  })
}

const areNames = ({ kinds }: SampledRow): boolean => kinds.every((kind) => kind === 'text' || kind === 'none')

/** The width that most rows have, of two the larger; or that of names below many short lines, from which on most have it. */
const findUsualWidth = (rows: readonly SampledRow[]): number => {
  const counts = new Map<number, number>()
  for (const { width } of rows) counts.set(width, (counts.get(width) ?? 0) + 1)
  const [[usual] = [1]] = [...counts].toSorted(([a, times], [b, others]) => others - times || b - a)
  const wide = rows.findIndex((row, at) => {
    // lines below the last of these are footnotes
    const isWide = ({ width }: SampledRow): boolean => width >= row.width
    const below = rows.slice(at, rows.findLastIndex(isWide) + 1)
    const isMost = below.filter(isWide).length * 2 > below.length
    return row.width > usual && areNames(row) && isMost && countVotes(rows, at) > 0
  })
  return rows[wide]?.width ?? usual
}

/** The kinds of the cells of a column below a row. */
const findKindsBelow = (rows: readonly SampledRow[], at: number, column: number): Set<Kind> => {
  const kinds = new Set(rows.slice(at + 1).map((row) => row.kinds[column] ?? 'none'))
  kinds.delete('none')
  return kinds
}

/** The columns that say that a row is a header, less those that say that it is data. */
const countVotes = (rows: readonly SampledRow[], at: number): number =>
  (rows[at]?.kinds ?? []).reduce((votes, kind, column) => {
    if (kind === 'none') return votes
    if (kind !== 'text') return votes - 1
    const below = findKindsBelow(rows, at, column)
    return below.size > 0 && !below.has('text') ? votes + 1 : votes
  }, 0)

/** The row of names at or below `start`, where the rows between are no data of the table below it: "Created", "2026-01-05". */
const findNames = (rows: readonly SampledRow[], start: number, usual: number): number => {
  const isData = ({ filled, kinds }: SampledRow, at: number): boolean =>
    filled >= usual &&
    kinds.every((kind, column) => kind === 'none' || findKindsBelow(rows, at, column).has(kind))
  for (const [at, row] of rows.slice(0, maxRowsAbove + 1).entries()) {
    if (at < start) continue
    if (row.filled >= usual && areNames(row)) return at === start || countVotes(rows, at) > 0 ? at : start
    if (isData(row, at)) return start
  }
  return start
}

const isHeader = (rows: readonly SampledRow[], at: number): boolean => {
  const { cells, kinds, filled } = rows[at] as SampledRow
  const typed = [...kinds.entries()].filter(([, kind]) => kind !== 'text' && kind !== 'none')
  if (typed.length === 0) return true
  const below = rows.slice(at + 1)
  if (below.length === 0) return false
  const isDistinct = new Set(cells.filter(isFilledCell).map((cell) => String(cell).trim())).size === filled
  /** Whether each number of a row is one more than the one before. */
  const counts = (row: readonly Cell[]): boolean =>
    typed.every(
      ([column], nth) => nth === 0 || Number(row[column]) === Number(row[typed[nth - 1]?.[0] ?? 0]) + 1,
    )
  const [first = 0] = typed.map(([column]) => Number(cells[column]))
  const isSequence = counts(cells)
  const areYears = typed.every(([column]) => isYear(cells[column]))
  const yearsBelow = (column: number) =>
    below.every(({ cells: row }) => !isFilledCell(row[column]) || isYear(row[column]))
  const isName = ([column, kind]: [number, Kind]): boolean =>
    kind === 'number'
      ? isYear(cells[column]) && !yearsBelow(column)
      : !findKindsBelow(rows, at, column).has(kind)
  if (isDistinct && typed.every(isName)) return true
  // consecutive years; or 0, 1, 2 beside an empty cell above filled ones, as pandas names columns that have no name; or 1 to 4 and more beside a name
  if (isSequence && typed.length > 1 && areYears) return !typed.every(([column]) => yearsBelow(column))
  const isCount =
    first === 0
      ? !isFilledCell(cells[0])
      : first === 1 && typed.length > 3 && kinds[0] === 'text' && !below.some((row) => counts(row.cells))
  if (isSequence && isCount && below.every(({ cells: row }) => isFilledCell(row[0]))) return true
  return countVotes(rows, at) > 0
}

const isYear = (cell: Cell | undefined): boolean => /^(?:19|20|21)\d\d$/.test(String(cell).trim())

/** A table whose first rows decide where it begins. Null: it has no rows. `open` reads the rows from the start each time. */
export const openRowSource = async (
  part: string | null,
  open: () => AsyncIterable<Cell[][]>,
  notes: () => string[] = () => [],
): Promise<RowSource | null> => {
  const sample: Cell[][] = []
  let cells = 0
  const isEnough = () => sample.length === sampledRows || cells > sampledCells
  for await (const batch of open()) {
    for (const row of batch.filter(isFilled)) {
      if (isEnough()) break
      sample.push(row)
      cells += row.length
    }
    if (isEnough()) break
  }
  if (sample.length === 0) return null
  const { above, lines, width } = decideLayout(sample.map(toSampledRow))
  const skipped = above + lines
  const names = sample.slice(above, skipped)
  const header = toColumnNames(joinNames(names, width))
  // a sheet has a place for each cell, and a line of text only those before the next
  const named = part === null && lines > 0 ? Math.max(...names.map(({ length }) => length)) : width
  const decisions = new Set([
    ...describeLines(sample.slice(0, above), 'above the header'),
    ...(named < width ? [`its header has ${named} of ${width} cells: values may be of other columns`] : []),
    ...(lines === 0 ? ['no header: its first row is data'] : []),
    ...(lines === 2 ? ['its header has two lines'] : []),
    ...(lines === 1 && header.filter((name) => /^\d{1,3}$/.test(name)).length > 3
      ? ['its first row has numbers and was read as names']
      : []),
  ])
  const isRepeated = (row: readonly Cell[]): boolean =>
    names.some(
      (line) => row.length > 1 && line.length === row.length && line.every((cell, at) => cell === row[at]),
    )
  return {
    part,
    header,
    named,
    async *batches() {
      let at = 0
      for await (const batch of open()) {
        const below = batch.filter((row) => isFilled(row) && at++ >= skipped)
        const rows = below.filter((row) => !isRepeated(row))
        if (rows.length < below.length) decisions.add('rows that repeat the header are left out')
        if (rows.length > 0) yield rows
      }
    },
    notes: () => [...decisions, ...notes()],
  }
}

/** The note of lines that are no rows; empty: there are none. */
export const describeLines = (rows: readonly Cell[][], where: string): string[] => {
  const texts = rows.map((row) => row.filter(isFilledCell).join(' ').replace(/\s+/g, ' ').trim())
  const quoted = JSON.stringify(cutText(texts.join(' / ').toWellFormed(), 200))
  if (rows.length === 0) return []
  return [`${rows.length} ${rows.length === 1 ? 'line' : 'lines'} ${where}: ${quoted}`]
}
