import type { Cell } from '../../../files/child/reader-definition.ts'
import type { PreparedColumn } from '../../../state/files/prepared-files.ts'
import { cutText } from '../../../state/text/cut-text.ts'
import { type Marks, toSeconds } from './cell-dates.ts'
import { isNullText, isNullWord, neutralCell, type Reading, readings } from './cell-values.ts'
import {
  type ColumnDecision,
  type ColumnFacts,
  decideColumn,
  findEvidence,
  type TableHints,
} from './column-decision.ts'
import { isFilledCell } from './row-source.ts'

const maxDistinct = 1000
const maxSamples = 5
const sampleChars = 80

type Value = number | string
const isSmaller = (a: Value, b: Value): boolean => a < b
const isShorter = (a: Value, b: Value): boolean => (toSeconds(String(a)) ?? 0) < (toSeconds(String(b)) ?? 0)

/** A reading that all cells have had so far, with what they gave under it. */
const createTrack = (reading: Reading) => {
  const marks: Marks = new Set()
  // of numbers, or of texts
  let min: number | string | null = null
  let max: number | string | null = null
  let sum = 0
  let count = 0
  const isLess = reading.id === 'duration' ? isShorter : isSmaller
  return {
    reading,
    marks,
    read: (cell: Cell) => reading.read(cell, marks),
    add(value: number | string, times: number): void {
      if (min === null || isLess(value, min)) min = value
      if (max === null || isLess(max, value)) max = value
      if (typeof value === 'string') return
      sum += value * times
      count += times
    },
    sum: () => sum,
    describe: () => ({ min, max, mean: count === 0 ? null : Number((sum / count).toPrecision(12)) }),
  }
}

/** See `createTrack`. */
type Track = ReturnType<typeof createTrack>

/** One pass over the cells of a column. Counts up to 1,000 distinct values; all cells decide how they are read. */
const createColumn = (name: string) => {
  // of each distinct value how often it came, and how many of these were read
  const counts = new Map<Cell, { count: number; read: number; isNull: boolean }>()
  let hasManyValues = false
  let nulls = 0
  let nullWords = 0
  let tracks = readings.map(createTrack)
  let example: Cell | undefined
  let misfit: Cell | undefined

  /** Drops the readings that the cell is not of. False: it is of none, and all are still there. */
  const readCell = (cell: Cell, times: number): boolean => {
    const isNeutral = tracks.length > 1 && neutralCell.test(String(cell))
    let first: number | string | undefined
    let dropped = 0
    for (const track of tracks) {
      const isSame = isNeutral && first !== undefined && track.reading.id !== 'utc'
      const value = isSame ? first : track.read(cell)
      if (value === undefined) {
        dropped += 1
        continue
      }
      if (first === undefined) first = value
      else if (value !== first && track.reading.id !== 'utc') example ??= cell
      track.add(value, times)
    }
    if (dropped === tracks.length) return false
    if (dropped > 0) tracks = tracks.filter((track) => track.read(cell) !== undefined)
    return true
  }
  const readOrDropAll = (cell: Cell, times: number): void => {
    if (readCell(cell, times)) return
    misfit = cell
    tracks = []
  }
  const readCounted = (): void => {
    for (const [cell, entry] of counts) {
      if (tracks.length === 0) return
      if (!entry.isNull && entry.count > entry.read) readOrDropAll(cell, entry.count - entry.read)
      entry.read = entry.count
    }
  }
  /** A cell that is neither empty nor counted. */
  const addNew = (cell: Cell): void => {
    if (hasManyValues && tracks.length > 0 && readCell(cell, 1)) return
    const isWord = typeof cell === 'string' && isNullWord(cell)
    if (isWord) nullWords += 1
    if (isWord || !hasManyValues) counts.set(cell, { count: 1, read: 0, isNull: isWord })
    else if (tracks.length > 0) readOrDropAll(cell, 1)
    if (hasManyValues || counts.size - nullWords <= maxDistinct) return
    readCounted()
    hasManyValues = true
  }
  return {
    add(raw: Cell | undefined): void {
      const cell = typeof raw === 'string' ? raw.trim() : raw
      const entry = cell === undefined ? undefined : counts.get(cell)
      if (entry) entry.count += 1
      else if (cell === undefined || cell === '') nulls += 1
      else addNew(cell)
    },
    /** Of the cells so far. */
    facts(): ColumnFacts<Track> {
      readCounted()
      const distinct = [...counts].filter(([, { isNull }]) => !isNull).map(([cell]) => cell)
      return { alive: tracks, example, misfit, distinct }
    },
    /** Its texts, of the first distinct ones, that say total, or so of another of them: "North Total". */
    listTotals: (): string[] =>
      [...counts.keys()]
        .map(String)
        .filter(
          (cell) =>
            says(totalLabel, cell) || (groupTotal.test(cell) && counts.has(cell.replace(groupTotal, ''))),
        ),
    /** The words of empty cells that were met. */
    words: (): string[] => [...counts].filter(([, { isNull }]) => isNull).map(([cell]) => String(cell)),
    /** `isNull`: whether such a word is an empty cell in this column. */
    describe(
      { type, reading, alive }: ColumnDecision<Track>,
      isNull: (word: string) => boolean,
    ): PreparedColumn {
      const words: string[] = []
      const values: Cell[] = []
      let empty = nulls
      for (const [cell, entry] of counts)
        if (!entry.isNull || !isNull(String(cell))) values.push(cell)
        else {
          words.push(String(cell))
          empty += entry.count
        }
      const samples = values.slice(0, maxSamples).map((cell) => {
        const value = type === 'boolean' ? cell : (alive?.read(cell) ?? cell)
        return cutText(String(value).toWellFormed(), sampleChars)
      })
      const range = alive === null || type === 'boolean' ? noRange : alive.describe()
      const distinct = hasManyValues ? null : values.length
      return {
        name,
        type,
        nulls: empty,
        distinct,
        ...range,
        samples,
        ...(reading && { reading }),
        ...(words.length > 0 && { null_words: words }),
      }
    },
  }
}

/** A small σ is a standard deviation; patterns that look past case do not tell it from Σ. */
const says = (words: RegExp, text: string): boolean => words.test(text) && !/[σς]/.test(text)

const totalWords =
  /^[\s*=#_.:>([-]{0,5}(?:(?:grand|sub)?[\s-]?tota(?:l[est]?|als|al)\b|[Σ∑]$|sum(?:me|ma)?\b|gesamt|insgesamt|zusammen|somme\b|suma\b|razem\b|celkem\b|toplam\b|összesen|yhteensä|i alt$|итого|всего|合计|总计|合計|總計|합계|총계)/i

/** A whole cell that says so; the last row may be "Total of the year" too. */
const totalLabel =
  /^[\s*=#_.:>([-]{0,5}(?:[Σ∑]|(?:grand|sub|eind)?[\s-]?tota(?:l[est]?|als|al)|(?:gesamt|zwischen|total)?summ[ea]|gesamt(?:ergebnis)?|insgesamt|(?:sous-)?totale?(?:\s(?:général|general|geral|complessivo|result|ht|ttc|due))?|somme|suma(?:\skońcowa)?|razem|celkem|toplam|összesen|yhteensä|i alt|(?:общий\s)?итого?|всего|小计|小計|合计|总计|合計|總計|소계|합계|총계)[\s*=#_.:<)\]-]{0,5}$/i
const groupTotal =
  /^(?:sub-?|sous-|zwischen)?(?:tota(?:l[es]?|al)|summ?[ae]|sum|somme|ergebnis)(?:\s(?:for|of|für|de)|:)?\s|(?:\s[-–]\s|\s?:\s?|\s)(?:(?:sub-?|sous-|zwischen)?(?:tota(?:l[es]?|al)|summ?[ae]|sum|somme|ergebnis|result)|小计|合计|小計|合計)$/i
const averageWords = /^(?:(?:averages?|avg|mean|durchschnitt|mittelwert|moyenne|promedio)\b|среднее|平均)/i

const noRange = { min: null, max: null, mean: null }
const maxNames = 8

/** A decision, with the columns it is about. */
const toNote = (text: string, names: readonly string[]): string => {
  const more = names.length > maxNames ? `, and ${names.length - maxNames} more` : ''
  return `${text} (${names.slice(0, maxNames).join(', ')}${more})`
}

/** The statistics of all columns of a table, from batches of its rows. */
export const createStatistics = (header: readonly string[], hints: TableHints) => {
  const columns = header.map(createColumn)
  let rows = 0
  return {
    add(batch: readonly Cell[][]): void {
      rows += batch.length
      for (const row of batch) for (const [index, column] of columns.entries()) column.add(row[index])
    },
    /** Whether the row after those added says that it is a total, or has no name and is one; `isSum`: each of its numbers is a sum, and it is left out. */
    findTotal(row: readonly Cell[]): { note: string; isSum: boolean } | null {
      const isLabel = (cell: Cell, words: RegExp): boolean =>
        typeof cell === 'string' && says(words, cell.trim())
      const total = row.findIndex((cell) => isLabel(cell, totalWords))
      const first = row.findIndex(isFilledCell)
      const isAverage = isLabel(row[first] ?? '', averageWords)
      const isNamed = isAverage || (first === 0 && isLabel(row[0] ?? '', /\p{L}/u))
      const label = total < 0 && isNamed ? first : total
      if ((label < 0 && first <= 0) || rows < 2) return null
      const facts = columns.map((column) => column.facts())
      const evidence = findEvidence(facts, hints)
      // those of zeros say nothing
      let sums = 0
      const isSum = row.every((cell, at) => {
        if (at === label || cell === '' || facts[at] === undefined) return true
        const { alive, type } = decideColumn(facts[at], evidence)
        const value = alive?.read(typeof cell === 'string' ? cell.trim() : cell)
        if (alive === null || type === 'boolean' || typeof value !== 'number') return false
        const isEqual = Math.abs(alive.sum() - value) <= Math.max(1e-6, Math.abs(value) * 1e-9)
        if (isEqual && value !== 0) sums += 1
        // beside sums of a row without a name may be an average
        return isEqual || (total < 0 && !isNamed)
      })
      const text = String(row[label] ?? '').trim()
      const name = JSON.stringify(cutText(text, 40))
      if (total >= 0 && isSum && sums > 0)
        return { isSum: true, note: `the last row, ${name}, is the sum of the others and is left out` }
      // the note of all such rows says it
      if (says(totalLabel, text)) return null
      const subject = isNamed || total >= 0 ? `, ${name},` : ' has no name and'
      const toNote = (note: string) => ({ isSum: false, note: `the last row${subject} ${note}` })
      if (total >= 0 || isAverage) return toNote('may be a total or an average of the others')
      const condition = isNamed ? ' where it is their total' : ''
      // of few numbers one is often the sum of the others
      if (isSum && sums > 0 && (facts[0]?.distinct.length ?? 0) > 0 && (!isNamed || rows + sums > 3))
        return toNote(`is the sum of the others: leave it out of sums${condition}`)
      const isAlone = row.filter(isFilledCell).length === 1 && header.length > 1
      return isAlone && /[:：*.;()]|\s\S+\s/.test(text) ? toNote('may be a footnote') : null
    },
    describe() {
      const facts = columns.map((column) => column.facts())
      const evidence = findEvidence(facts, hints)
      const decisions = facts.map((one, at): ColumnDecision<Track> => {
        const decision = decideColumn(one, evidence)
        const words = columns[at]?.words() ?? []
        // different ones are names, as None and Null are
        const areNames = decision.type === 'empty' && words.filter((word) => !isNullText(word)).length > 1
        return areNames ? { type: 'text', alive: null, notes: [] } : decision
      })
      // a word that is an empty cell among numbers is one among the texts of the file
      const fileWords = new Set(columns.flatMap((column, at) => (decisions[at]?.alive ? column.words() : [])))
      const names = new Map<string, string[]>()
      const addNote = (note: string, name: string) => names.set(note, [...(names.get(note) ?? []), name])
      const described = columns.map((column, at) => {
        const decision = decisions[at] as ColumnDecision<Track>
        const isText = decision.type === 'text'
        const areCodes = isText && facts[at]?.distinct.every((cell) => /^[A-Z]{2}$/.test(String(cell)))
        const isNull = (word: string) => !isText || isNullText(word) || (!areCodes && fileWords.has(word))
        const prepared = column.describe(decision, isNull)
        for (const note of decision.notes) addNote(note, prepared.name)
        const words = prepared.null_words?.map((word) => JSON.stringify(word)).join(', ')
        if (words) addNote(`read as empty: ${words}`, prepared.name)
        return prepared
      })
      const labels = new Set(columns.flatMap((column) => column.listTotals()))
      const totals = [...labels].slice(0, maxSamples).map((label) => JSON.stringify(label))
      const doubts = decisions.flatMap(({ doubt }, at) => (doubt ? [`${header[at]} is text: ${doubt}`] : []))
      return {
        rows,
        columns: described,
        notes: [
          ...[...names].map(([text, of]) => toNote(text, of)),
          ...doubts,
          ...(totals.length > 0
            ? [`rows that say ${totals.join(', ')} may be sums of others: leave them out of sums`]
            : []),
        ],
      }
    },
  }
}
